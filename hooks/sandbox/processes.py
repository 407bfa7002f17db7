"""Servers as child processes: their ports and accounts, starting, waiting and stopping.

They end with us, however we end; see spawning.py.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import signal
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from hooks.sandbox.spawning import Account, spawn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = [
    "Account",
    "Process",
    "ServerFailed",
    "free_port",
    "open_to_others",
    "unprivileged_account",
]

# Below the range from which Linux takes the ports of outgoing connections: a port that was free
# a moment ago stays free until its server listens on it.
_FIRST_PORT, _LAST_PORT = 15_000, 32_000


class ServerFailed(Exception):
    """A child ended, or did not get ready; the text carries the end of its log."""


def unprivileged_account() -> Account | None:
    """The account for programs that refuse to run as root; None when we are not root.

    It must have an entry in the user database: initdb looks its own name up.
    """
    if os.geteuid() != 0:
        return None
    entries = pwd.getpwall()
    nobody = [entry for entry in entries if entry.pw_name == "nobody"]
    others = [entry for entry in entries if entry.pw_uid != 0]
    for entry in nobody + others:
        return Account(entry.pw_uid, entry.pw_gid)
    raise ServerFailed("the user database has nobody but root, whom PostgreSQL refuses to run as")


def open_to_others(directory: Path) -> bool:
    """Whether any account can reach what is in the directory."""
    directory = directory.resolve()
    return all(path.stat().st_mode & 0o001 for path in (directory, *directory.parents))


def free_port() -> int:
    """Return a port on which nothing listens, on 127.0.0.1 and, where there is one, ::1."""
    hosts = [host for host in ("127.0.0.1", "::1") if _bindable(host, 0)]
    for _ in range(1000):
        port = _FIRST_PORT + secrets.randbelow(_LAST_PORT - _FIRST_PORT)
        if all(_bindable(host, port) for host in hosts):
            return port
    raise ServerFailed(f"no free port from {_FIRST_PORT} to {_LAST_PORT}")


def _bindable(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.bind((host, port))
    except OSError:
        return False
    return True


class Process:
    """A running child whose output goes to the end of a log file."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        account: Account | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Start the program, given by its absolute path.

        Args:
            argv: The program and its arguments. Anybody may read them: no secrets.
            log: The file that its output is appended to; its working directory is /.
            env: Its whole environment; nothing of ours is inherited. No secrets.
            account: Whom it runs as; None for the same user.
            stop_signal: How it is asked to go, by `stop` and by the kernel when we die.
        """
        self.name = os.path.basename(argv[0])  # noqa: PTH119 - argv is text, not a Path
        self.log = log
        self.stop_signal = stop_signal
        with log.open("ab") as output:
            self._popen = spawn(
                argv,
                (subprocess.DEVNULL, output, subprocess.STDOUT),
                env=env or {},
                account=account,
                stop_signal=stop_signal,
            )

    @property
    def pid(self) -> int:
        """Its process id: the launcher becomes the program, so it is the program's own."""
        return self._popen.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._popen.poll() is None

    def tail(self, lines: int = 20) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait(self, timeout: float | None) -> int | None:
        """Wait for a program that ends by itself; its exit code, None when the time is over.

        A program that a signal ended has 128 and its number, as in a shell.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._popen.wait(timeout)
            return code if code >= 0 else 128 - code
        return None

    def finish(self, timeout: float = 60.0) -> None:
        """Wait for a program that ends by itself.

        Raises:
            ServerFailed: It failed, or was still running after `timeout` seconds and was killed.
        """
        try:
            code = self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ServerFailed(f"{self.name} took more than {timeout:g} s\n{self.tail()}") from None
        finally:
            self.kill()
        if code != 0:
            raise ServerFailed(f"{self.name} ended with {code}\n{self.tail()}")

    def wait_until(
        self,
        ready: Callable[[], bool],
        *,
        despite: tuple[type[Exception], ...] = (),
        timeout: float = 30.0,
    ) -> None:
        """Wait until `ready` says so; these exceptions of it mean not yet.

        Raises:
            ServerFailed: The child ended first, or the time is over.
        """
        deadline = time.monotonic() + timeout
        pause = threading.Event()
        while True:
            with contextlib.suppress(*despite):
                if ready():
                    return
            if not self.running:
                self.finish()
                raise ServerFailed(f"{self.name} ended before it was ready\n{self.tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} is not ready after {timeout:g} s\n{self.tail()}")
            pause.wait(0.01)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        self._popen.send_signal(number)

    def stop(self, *, how: signal.Signals | None = None, timeout: float = 10.0) -> None:
        """Ask it to go, wait, and kill it if it does not. Stopping twice is harmless."""
        self.send(how or self.stop_signal)
        try:
            self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it and its process group, at once."""
        if self.running:
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()
