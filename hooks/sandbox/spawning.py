"""Start child processes that end with us, however we end.

A child runs in its own session, so that Ctrl-C in the terminal reaches only us and we can stop the
children in order. On Linux the kernel sends it its stop signal when we die without doing so. That
signal comes when the *thread* that started the child ends, so one thread, which lives as long as
the process, starts them all. It is armed by a small launcher between fork and exec: `preexec_fn`
may deadlock in a program with threads, and a change of user disarms it.

Elsewhere than on Linux a child outlives a parent that was killed.
"""

from __future__ import annotations

import functools
import os
import queue
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Stream = int | IO[bytes]

# The last check closes the gap between fork and prctl: a parent that died in it sends no signal.
_LAUNCHER = """
import ctypes, os, sys
parent, signal, uid, gid = map(int, sys.argv[1:5])
if uid >= 0:
    os.setgroups([]); os.setgid(gid); os.setuid(uid)
if sys.platform == "linux":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal)
    if os.getppid() != parent:
        sys.exit("the parent is gone")
os.execv(sys.argv[5], sys.argv[5:])
"""


@dataclass(frozen=True, slots=True)
class Account:
    """A user to run as."""

    uid: int
    gid: int


def spawn(
    argv: Sequence[str],
    streams: tuple[Stream, Stream, Stream],
    *,
    env: Mapping[str, str],
    account: Account | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start a program in / as a session of its own.

    Args:
        argv: The program, by its absolute path, and its arguments. Anybody may read them: no
            secrets.
        streams: What its standard input, output and error are, as subprocess takes them.
        env: Its whole environment; nothing of ours is inherited.
        account: Whom it runs as; None for the same user.
        stop_signal: What the kernel sends it when we die.
    """
    ids = (account.uid, account.gid) if account else (-1, -1)
    numbers = (os.getpid(), int(stop_signal), *ids)
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *map(str, numbers)]
    stdin, stdout, stderr = streams
    return _spawner(os.getpid()).spawn(
        lambda: subprocess.Popen(
            [*launcher, *argv],
            env=dict(env),
            cwd="/",
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    )


class _Spawner:
    """The thread that starts every child."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[
            tuple[Future[subprocess.Popen[bytes]], Callable[[], subprocess.Popen[bytes]]]
        ] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="spawner", daemon=True).start()

    def spawn(self, job: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        future: Future[subprocess.Popen[bytes]] = Future()
        self._jobs.put((future, job))
        return future.result()

    def _run(self) -> None:
        while True:
            future, job = self._jobs.get()
            try:
                future.set_result(job())
            except (OSError, ValueError, TypeError, subprocess.SubprocessError) as error:
                future.set_exception(error)


@functools.cache
def _spawner(_pid: int) -> _Spawner:
    """One per process: a fork takes no threads along."""
    return _Spawner()
