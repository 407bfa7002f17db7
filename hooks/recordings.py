"""Recorded calls: a request of Metacontroller, and what was answered.

A recording is a JSON file of four members: `resource` and `hook` as in the path, `request` as
Metacontroller POSTs it, `answer` as it was given. `hooks replay` answers it again and shows what
differs; `hooks check` only looks whether it is one.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from hooks.app import Hook
from hooks.core.manifests import Manifest


class BadRecording(Exception):
    """The file holds no recorded call; the text says why."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded call."""

    resource: str
    hook: Hook
    request: Manifest
    answer: Manifest

    def body(self) -> bytes:
        """Return the request as it was POSTed."""
        return json.dumps(self.request).encode()

    def differences(self, body: bytes) -> str:
        """Return a unified diff from the recorded answer to this one; empty when they are equal."""
        lines = difflib.unified_diff(
            _lines(self.answer), _lines(json.loads(body)), "recorded", "answered", lineterm=""
        )
        return "\n".join(lines)


def _lines(document: object) -> list[str]:
    return json.dumps(document, indent=2, sort_keys=True).splitlines()


def read(path: Path) -> Recording:
    """Read a recording.

    Raises:
        BadRecording: the file cannot be read, or is none.
    """
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadRecording(str(error)) from error
    for problem in _problems(found):
        raise BadRecording(problem)
    return Recording(
        str(found["resource"]), cast("Hook", found["hook"]), found["request"], found["answer"]
    )


def _problems(found: object) -> Iterator[str]:
    if not isinstance(found, dict):
        yield "it is not a JSON object"
        return
    if not isinstance(found.get("resource"), str):
        yield "resource is missing or not a string"
    if found.get("hook") not in get_args(Hook):
        yield f"hook is not one of {', '.join(get_args(Hook))}"
    for member in ("request", "answer"):
        if not isinstance(found.get(member), dict):
            yield f"{member} is missing or not an object"
