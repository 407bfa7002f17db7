"""What is remembered of a program's output: little, whatever it writes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_KEPT = 4096

# As psql writes them with VERBOSITY=sqlstate. What psql itself refuses has no code.
_PROBLEM = re.compile(
    rb"psql:(?P<file>.*?):(?P<line>\d+): "
    rb"(?:(?:ERROR|FATAL|PANIC):  (?P<code>[0-9A-Z]{5}\b)?|error: )"
)
_BEFORE_THE_SCRIPT = re.compile(rb"ERROR:  ([0-9A-Z]{5})\b")
_STARTING = b"psql: error: "


class Tail:
    """The end of a stream."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, chunk: bytes) -> None:
        """Take what came next."""
        self._kept = (self._kept + chunk)[-_KEPT:]

    def has_line(self, text: str) -> bool:
        """Say whether a line of it is this text."""
        return text.encode() in self._kept.splitlines()


@dataclass(frozen=True, slots=True)
class Problem:
    """A failure that psql reported, without a word of it.

    Attributes:
        line: the line on which the statement ends.
        code: its SQLSTATE; None for what psql itself refused.
        included: it is in a file that the script includes.
    """

    line: int
    code: str | None
    included: bool


class Problems:
    """What psql's standard error says went wrong; nothing else of it is kept.

    Attributes:
        first: the first failure inside the script.
        before: the SQLSTATE of a failure before the script was read.
        unconnected: psql got no connection when it started.
    """

    def __init__(self) -> None:
        self.first: Problem | None = None
        self.before: str | None = None
        self.unconnected = False
        self._line = b""

    def feed(self, chunk: bytes) -> None:
        """Take what came next."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._judge((self._line + line)[:_KEPT])
            self._line = b""
        self._line = (self._line + rest)[:_KEPT]

    def close(self) -> None:
        """Take the last line, which may have no end."""
        self.feed(b"\n")

    def _judge(self, line: bytes) -> None:
        self.unconnected = self.unconnected or line.startswith(_STARTING)
        if match := _BEFORE_THE_SCRIPT.match(line):
            self.before = match[1].decode()
        if self.first is None and (match := _PROBLEM.match(line)):
            code = match["code"]
            self.first = Problem(
                line=int(match["line"]),
                code=code.decode() if code else None,
                included=match["file"] != b"<stdin>",
            )
