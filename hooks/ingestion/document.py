"""A specification as text: strict JSON in, exact JSON out.

What is wrong is told with line and column. Python's own reader takes what Druid would not, or
takes it another way: NaN, two members of one name, half a surrogate pair. Those are refused here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import simplejson

from hooks.core.manifests import Manifest

Document = dict[str, Any]
"""A JSON object; integers exact, other numbers as Decimal."""

MAX_BYTES = 1_500_000
"""An object of Kubernetes, this one included, ends at about this size."""
MAX_DEPTH = 200
MAX_NUMBER = 1000
"""Characters of a number; reading a long one takes time, and Druid takes none of that length."""

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+|"')
_CONSTANT = re.compile(r"-?(NaN|Infinity)\Z")
_YAML = re.compile(r"\s*(---|(#[^\n]*\n\s*)*[A-Za-z_][\w.-]*:(\s|\Z))")
_COMMENT = re.compile(r"(//|/\*|#)")


class Unreadable(Exception):
    """The text is no specification; the message says why and where."""


def read(text: str) -> Document:
    """Read a specification.

    Raises:
        Unreadable: it is not JSON, not an object, or JSON that readers disagree about.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise Unreadable(_at(text, error.start, "half of a surrogate pair")) from None
    if size > MAX_BYTES:
        raise Unreadable(f"{size} bytes are too many: {MAX_BYTES} are allowed")
    if text.startswith("\ufeff"):
        raise Unreadable("line 1, column 1: it begins with a byte order mark: remove it")
    if not text.strip():
        raise Unreadable("line 1, column 1: it is empty")
    for problem in _problems(text):
        raise Unreadable(problem)
    value = _load(text)
    if not isinstance(value, dict):
        raise Unreadable("line 1, column 1: it is valid JSON, but not an object ({...})")
    return value


def _load(text: str) -> object:
    try:
        return json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise Unreadable(_explained(text, error)) from None


def _explained(text: str, error: json.JSONDecodeError) -> str:
    where = f"line {error.lineno}, column {error.colno}"
    if _YAML.match(text):
        return (
            f"{where}: this is YAML, and spec is JSON as text: write it as JSON, or put it into"
            " spec.ingestion.nativeSpec as an object"
        )
    if _COMMENT.match(text, error.pos):
        return f"{where}: JSON has no comments: remove them"
    if text[error.pos : error.pos + 1] in ("}", "]") or _after_comma(text, error.pos):
        return f"{where}: {error.msg}; JSON has no comma after the last member"
    return f"{where}: {error.msg}"


def _after_comma(text: str, position: int) -> bool:
    return text[position : position + 1] == "," and text[position + 1 :].lstrip()[:1] in ("}", "]")


def _at(text: str, position: int, what: str) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"line {line}, column {column}: {what}"


def _problems(text: str) -> Iterator[str]:
    """Yield what Python would let pass, token by token; other nonsense is left to its reader."""
    names: list[set[str] | None] = []
    before: re.Match[str] | None = None
    for token in _TOKEN.finditer(text):
        match token.group()[0]:
            case "{" | "[" as bracket:
                names.append(set() if bracket == "{" else None)
                if len(names) > MAX_DEPTH:
                    yield _at(text, token.start(), f"nested deeper than {MAX_DEPTH} levels")
                    return
            case "}" | "]":
                del names[-1:]
            case ":":
                yield from _duplicate(text, before, names)
            case _:
                yield from _odd(text, token)
        before = token


def _odd(text: str, token: re.Match[str]) -> Iterator[str]:
    word = token.group()
    if _CONSTANT.match(word):
        yield _at(text, token.start(), f"{word} is no JSON number")
    if not word.startswith('"') and len(word) > MAX_NUMBER:
        yield _at(text, token.start(), f"a number of more than {MAX_NUMBER} characters")
    decoded = _decoded(word) if "\\u" in word else None
    if decoded is not None and any("\ud800" <= char <= "\udfff" for char in decoded):
        yield _at(text, token.start(), "the string holds half of a surrogate pair")


def _duplicate(
    text: str, name: re.Match[str] | None, names: list[set[str] | None]
) -> Iterator[str]:
    members = names[-1] if names else None
    decoded = _decoded(name.group()) if name else None
    if name is None or members is None or decoded is None:
        return
    if decoded in members:
        yield _at(text, name.start(), f"the member {decoded!r} is there twice: remove one")
    members.add(decoded)


def _decoded(token: str) -> str | None:
    try:
        value = json.loads(token)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def write(value: object) -> str:
    """Write a JSON value on one line: members in their order, numbers exact."""
    return simplejson.dumps(value, use_decimal=True, ensure_ascii=False, separators=(",", ":"))


def from_manifest(value: Mapping[str, object]) -> str:
    """Write a part of a manifest as text, so that it is read by the same rules as text.

    Raises:
        Unreadable: it is nested too deeply to be written.
    """
    try:
        # A number that is too large for a float is written so that `read` refuses it.
        return simplejson.dumps(value, ensure_ascii=True, allow_nan=True, separators=(",", ":"))
    except RecursionError:
        raise Unreadable(f"nested deeper than {MAX_DEPTH} levels") from None


def exact(value: Manifest) -> Document:
    """Return a part of a manifest with its numbers as this package has them."""
    return read(from_manifest(value))
