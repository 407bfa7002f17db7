"""Find programs and run those that end by themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_PLACES = f"{os.defpath}:/usr/sbin:/sbin:/usr/local/sbin"


class NotInstalled(Exception):
    """A program is missing."""


class Failed(Exception):
    """A program failed; the text is what it complained about."""


def find(name: str) -> Path:
    """Return the path of a program that Debian packages.

    Raises:
        NotInstalled: It is not there.
    """
    found = shutil.which(name, path=_PLACES)
    if found is None:
        raise NotInstalled(f"{name} is not installed; run make e2e-node as root")
    return Path(found)


def built(path: Path) -> Path:
    """Return the path of a program that is built from source.

    Raises:
        NotInstalled: It is not there.
    """
    if not path.exists():
        raise NotInstalled(f"{path} is missing; run make e2e-node")
    return path


def run(program: str | Path, *arguments: str, stdin: str = "", timeout: float = 120) -> str:
    """Run a program and return what it printed.

    Raises:
        Failed: It ended with another code than 0.
    """
    path = find(program) if isinstance(program, str) else program
    done = subprocess.run(
        [str(path), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env={"PATH": _PLACES, "LC_ALL": "C.UTF-8"},
    )
    if done.returncode:
        command = " ".join((path.name, *arguments))
        raise Failed(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
