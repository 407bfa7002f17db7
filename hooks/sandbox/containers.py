"""Containers that are processes of this machine: what pods/exec runs commands in.

Idea: a container is an environment, an account and the processes that run with them. Ending it
kills them, as a kubelet does.

Limits: Linux; no file system, network or process namespace of its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hooks.sandbox.spawning import Account, spawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NOT_STARTED = "OCI runtime exec failed: exec failed: unable to start container process"
_NOT_FOUND = "executable file not found in $PATH: unknown"


class NotExecutable(Exception):
    """There is no such program in the container."""


@dataclass(slots=True)
class Container:
    """A running container."""

    environment: Mapping[str, str]
    account: Account | None = None
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, command: Sequence[str], *, stdin: bool) -> subprocess.Popen[bytes]:
        """Start a command with pipes; its standard input is empty unless it is asked for.

        Raises:
            NotExecutable: PATH does not lead to it.
        """
        program = shutil.which(command[0], path=self.environment.get("PATH", os.defpath))
        if program is None:
            raise NotExecutable(f'{_NOT_STARTED}: exec: "{command[0]}": {_NOT_FOUND}')
        process = spawn(
            [program, *command[1:]],
            (subprocess.PIPE if stdin else subprocess.DEVNULL, subprocess.PIPE, subprocess.PIPE),
            env=self.environment,
            account=self.account,
            stop_signal=signal.SIGKILL,
        )
        with self._lock:
            running = [one for one in self._processes if one.poll() is None]
            self._processes = [*running, process]
        return process

    def kill(self) -> None:
        """Kill every process that was started in it, with its children."""
        with self._lock:
            processes, self._processes = self._processes, []
        for process in processes:
            while alive := _session(process.pid):
                for pid in alive:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)


def _session(leader: int) -> list[int]:
    """Return the processes of a session that have not ended: a group is left by `timeout`."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # After the name in brackets: state, parent, group, session.
            state, _, _, session = file.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state not in "ZX":
                found.append(int(file.parent.name))
    return found


Containers = dict[tuple[str, str], Container]
"""The running containers, by the UID of their Pod and their name."""
