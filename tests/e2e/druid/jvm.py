"""Java programs as processes of ours: small heaps, one log file each."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hooks.sandbox.processes import Process
from tests.e2e.druid import artifacts

# The second compiler costs more time than it saves in servers that live for minutes.
_FLAGS = [
    "-Xms64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Duser.timezone=UTC",
    "-Dfile.encoding=UTF-8",
]
_ENVIRONMENT = {"PATH": os.defpath}


def start(
    main: Sequence[str],
    *,
    classpath: Sequence[Path | str],
    heap: str,
    log: Path,
    flags: Sequence[str] = (),
) -> Process:
    """Start a server, which `stop_in_order` ends.

    Args:
        main: Its main class and arguments.
        classpath: Directories, and jars as `directory/*`.
        heap: The size of its heap, as 256m.
        log: Where its output goes.
        flags: More flags of Java. Anybody may read them: no secrets.
    """
    argv = [artifacts.java(), f"-Xmx{heap}", *_FLAGS, *flags, "-cp", _joined(classpath), *main]
    # If we die, all of them are told at once, and Druid cannot stop in order without ZooKeeper.
    process = Process(argv, log=log, env=_ENVIRONMENT, stop_signal=signal.SIGKILL)
    process.name = log.stem
    return process


def stop_in_order(process: Process) -> None:
    """Ask a server to end, and kill it if it takes too long."""
    process.stop(how=signal.SIGTERM, timeout=30)


def run(main: Sequence[str], *, classpath: Sequence[Path | str], text: str = "") -> str:
    """Run a tool with this text as its input, and return what it prints.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    argv = [artifacts.java(), "-XX:TieredStopAtLevel=1", "-cp", _joined(classpath), *main]
    done = subprocess.run(
        argv, input=text, capture_output=True, text=True, check=True, env=_ENVIRONMENT, timeout=60
    )
    return done.stdout


def _joined(classpath: Sequence[Path | str]) -> str:
    return os.pathsep.join(map(str, classpath))
