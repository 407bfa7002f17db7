"""Programs that build.sh makes, and those that somebody gives."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

_BUILD = Path(__file__).with_name("build.sh")


class NotBuilt(Exception):
    """A program could not be built; the text is what the build said."""


@cache
def program(name: str) -> Path:
    """Return a program's path; the first time it may be minutes until it is built."""
    ended = subprocess.run([str(_BUILD), name], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise NotBuilt(ended.stderr)
    return Path(ended.stdout.strip())


def given(variable: str) -> Path | None:
    """Return the path in an environment variable, None when it is not set."""
    value = os.environ.get(variable)  # noqa: TID251  the suite's, not the program's
    return Path(value).resolve() if value else None
