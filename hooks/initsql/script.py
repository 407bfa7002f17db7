r"""Can it be told, of this SQL, whether it was applied?

psql reads the rows of `COPY ... FROM STDIN` from the script itself, up to a line `\.`. Where that
line is missing, what is appended to see the end of the script would become rows. A text without a
statement would "succeed", and is a mistake of who made the ConfigMap.

The scanner knows psql's quoting well enough to tell a COPY from a text that looks like one; it
judges nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
      (?P<comment>--[^\n]*)
    | (?P<block>/\*)
    | (?P<quoted>\b[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*")
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<meta>\\[^;\n][^\n]*)
    | (?P<end>;)
    | (?P<word>\w[\w$]*)
    | (?P<unclosed>['"])
    | (?P<other>[^\s\w'"$\\;/-]+ | \S)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK = re.compile(r"/\*|\*/")
_END_OF_ROWS = re.compile(r"^\\\.\r?$", re.MULTILINE)
_STDIN = re.compile("stdin", re.IGNORECASE)
_COPY = re.compile(r"COPY .*\bFROM STDIN\b")
_META_COPY = re.compile(r"\\copy\b.*\bfrom\s+p?stdin\b", re.IGNORECASE)
_SENDS = re.compile(r"\\(?:g|gx|gset|gexec|gdesc|crosstabview)\b")


def problem(sql: str) -> str | None:
    """Say why this SQL cannot be judged, or None when it can."""
    if "\0" in sql:
        return "it holds a NUL character, which no PostgreSQL text may hold"
    scanner, found = _Scanner(sql.removeprefix("\ufeff")), False
    copies = _STDIN.search(sql) is not None
    for statement in scanner.statements():
        found = True
        if not copies:  # nothing else is looked for, and dumps are long
            break
        reads_rows = _COPY.match(statement) or _META_COPY.match(statement)
        if reads_rows and not scanner.skip_rows():
            return rf"the rows of COPY ... FROM STDIN after line {scanner.line} do not end with \."
    return None if found else "it holds no statement"


class _Scanner:
    """Walks over a script."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._at = 0

    @property
    def line(self) -> int:
        """The number of the line that was reached."""
        return self._sql.count("\n", 0, self._at) + 1

    def statements(self) -> Iterator[str]:
        """Yield statements, as their words in capitals, and meta-commands, as they are."""
        words: list[str] = []
        while match := _TOKEN.search(self._sql, self._at):
            self._at = match.end()
            token, kind = match.group(), match.lastgroup
            if kind == "unclosed":
                break  # psql will say so
            if kind == "meta" and not (words and _SENDS.match(token)):
                yield token
            elif kind in ("meta", "end"):
                if words:
                    yield " ".join(words)
                words = []
            elif kind != "comment":
                words += self._words(kind, token)
        if words:
            yield " ".join(words)

    def _words(self, kind: str | None, token: str) -> list[str]:
        """Return what a token adds to its statement, having read all of it."""
        if kind == "block":
            self._skip_block()
            return []
        if kind == "dollar":
            self._skip_past(token)
        return [token.upper() if kind == "word" else "_"]

    def skip_rows(self) -> bool:
        """Go on behind the rows that follow this line; say whether they end."""
        start = self._sql.find("\n", self._at)
        end = _END_OF_ROWS.search(self._sql, start + 1) if start >= 0 else None
        if end is None:
            return False
        self._at = end.end()
        return True

    def _skip_past(self, closing: str) -> None:
        found = self._sql.find(closing, self._at)
        self._at = len(self._sql) if found < 0 else found + len(closing)

    def _skip_block(self) -> None:
        """Go on behind a block comment; they nest."""
        depth = 1
        while depth and (match := _BLOCK.search(self._sql, self._at)):
            depth += 1 if match.group() == "/*" else -1
            self._at = match.end()
        if depth:
            self._at = len(self._sql)
