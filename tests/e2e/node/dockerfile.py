"""Read a Dockerfile: its stages, and the instructions of each.

Limits: what our own files use. Anything else is an error, so that no step is ever left out.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.e2e.node.oci import Config

_STEPS = frozenset({"RUN", "COPY", "WORKDIR"})
_SETTINGS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "ENTRYPOINT": ("Entrypoint", json.loads),
    "CMD": ("Cmd", json.loads),
    "USER": ("User", str),
}
_FOR_PEOPLE = frozenset({"EXPOSE", "LABEL"})
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class NotUnderstood(Exception):
    """The Dockerfile has something that is not known here."""


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction that changes files.

    Attributes:
        kind: RUN, COPY or WORKDIR.
        text: what follows that word.
        workdir: the directory that it happens in.
    """

    kind: str
    text: str
    workdir: str


@dataclass(slots=True)
class Stage:
    """What one FROM begins."""

    base: str
    name: str
    steps: list[Step] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": _DEFAULT_PATH})
    workdir: str = "/"
    settings: dict[str, object] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        """The configuration of the image that this stage makes."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return {"Env": variables, "WorkingDir": self.workdir, **self.settings}


def stages(text: str) -> list[Stage]:
    """Return the stages of a Dockerfile.

    Raises:
        NotUnderstood: An instruction is not known here.
    """
    found: list[Stage] = []
    for line in _lines(text):
        kind, _, rest = line.partition(" ")
        if kind == "FROM":
            found.append(_stage(rest))
        elif not found:
            raise NotUnderstood(line)
        else:
            _take(found[-1], kind, rest.strip())
    return found


def _lines(text: str) -> list[str]:
    without_comments = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    joined = re.sub(r"\\\n\s*", "", without_comments)
    return [line.strip() for line in joined.splitlines() if line.strip()]


def _stage(text: str) -> Stage:
    match = re.fullmatch(r"(\S+)(?: AS (\S+))?", text.strip(), flags=re.IGNORECASE)
    if match is None:
        raise NotUnderstood(f"FROM {text}")
    return Stage(base=match[1], name=match[2] or "")


def _take(stage: Stage, kind: str, text: str) -> None:
    if kind in _STEPS:
        _take_step(stage, kind, text)
    elif kind == "ENV":
        for pair in shlex.split(text):
            name, _, value = pair.partition("=")
            stage.environment[name] = value.replace("$PATH", stage.environment["PATH"])
    elif kind in _SETTINGS:
        name, read = _SETTINGS[kind]
        stage.settings[name] = read(text)
    elif kind not in _FOR_PEOPLE:
        raise NotUnderstood(f"{kind} {text}")


def _take_step(stage: Stage, kind: str, text: str) -> None:
    if "User" in stage.settings:
        raise NotUnderstood(f"{kind} {text}: after USER")
    if kind == "WORKDIR":
        stage.workdir = text
    stage.steps.append(Step(kind, text, stage.workdir))
