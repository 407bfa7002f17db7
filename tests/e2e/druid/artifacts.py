"""The jars of Druid and Kafka, as Maven resolves the poms in `maven`.

They go into the user's cache, a directory a pom, with the pom itself beside the jars: a directory
is complete when its pom is the one that is here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

_POMS = Path(__file__).parent / "maven"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


class NotInstalled(Exception):
    """Something that the servers need is not there."""


def jars(name: str) -> Path:
    """Return the directory with the jars of a pom, named by its path without the suffix.

    Raises:
        NotInstalled: They were not resolved yet, or for another version of the pom.
    """
    if not _complete(name):
        raise NotInstalled(f"the jars of {name} are missing; run make e2e-druid")
    return _directory(name)


def names() -> list[str]:
    """Return the names of all poms."""
    return sorted(str(pom.relative_to(_POMS).with_suffix("")) for pom in _POMS.rglob("*.xml"))


def java() -> str:
    """Return the program that runs them.

    Raises:
        NotInstalled: There is none.
    """
    return _program("java")


def resolve(name: str) -> None:
    """Fetch what a pom names from Maven Central, unless it is there already.

    Raises:
        NotInstalled: Maven could not; the text is what it says.
    """
    if _complete(name):
        return
    sys.stderr.write(f"Fetching {name} from Maven Central\n")
    target = _directory(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    pom = _pom(name)
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={unfinished}"]
    command = [_program("mvn"), "--batch-mode", "--quiet", "--file", str(pom), _COPY, *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotInstalled(f"{name}: {done.stdout}{done.stderr}")
        shutil.copy(pom, unfinished / "pom.xml")
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _complete(name: str) -> bool:
    copy = _directory(name) / "pom.xml"
    return copy.exists() and copy.read_bytes() == _pom(name).read_bytes()


def _pom(name: str) -> Path:
    return _POMS / f"{name}.xml"


def _directory(name: str) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")  # noqa: TID251  the tests have no settings
    base = Path(cache) if cache else Path.home() / ".cache"
    return base / "database-hooks" / "druid" / name


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotInstalled(f"{name} is not installed; run make e2e-druid as root")
    return found


if __name__ == "__main__":
    for each in names():
        resolve(each)
