"""A shell with a kubectl that lists what it is given, and keeps annotations."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

KUBECTL = """#!/bin/sh
# An API server of two commands: `get` prints what it has, `annotate` keeps what it is told.
case " $* " in
*" get "*) cat "$HOME/listed" ;;
*" annotate "*)
  for word in "$@"; do
    case "$word" in database.*|druid.*) echo "$word" >>"$HOME/annotations" ;; esac
  done ;;
esac
"""


@dataclass(frozen=True)
class Shell:
    """A shell in which kubectl knows what is listed, and keeps annotations."""

    home: Path

    def types(self, block: str, *, listed: str = "") -> None:
        """Run a block of the manual."""
        (self.home / "listed").write_text(listed)
        program = self.home / "kubectl"
        program.write_text(KUBECTL)
        program.chmod(0o755)
        environment = {"PATH": f"{self.home}:{os.defpath}", "HOME": str(self.home)}
        done = subprocess.run(
            ["/bin/sh", "-c", block],
            cwd=self.home,
            env=environment,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")

    def annotations(self) -> dict[str, str]:
        """Return what was set, by key."""
        lines = (self.home / "annotations").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)
