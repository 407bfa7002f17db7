"""Take secrets out of what is shown: Druid quotes specifications, and they may hold passwords.

What the member's name says is secret is masked, and so are its values wherever else they stand.
Limits: a secret under an innocent name is shown. With very many secrets nothing is shown, for each
is looked for in each text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hooks.ingestion.document import Document, write

MASK = "***"
SHORTEST = 4
"""Characters; a shorter value is masked where its name stands beside it, and nowhere else."""
MOST = 200
"""Secrets of one specification."""

# All repetitions are bounded: users and Druid write the texts, and a long one must not take long.
_PART = r"[\w.\-]{0,64}"
_NAMES = (
    rf"{_PART}(?:passw(?:or)?d|passphrase|secret|credential|jaas\.config|access[_.\-]?key"
    rf"|api[_.\-]?key|private[_.\-]?key|storage[_.\-]?key){_PART}"
    rf"|{_PART}(?:auth|session|access|sas|storage|bearer)[_.\-]?token|token"
)
_SECRET = re.compile(rf"(?:{_NAMES})\Z", re.IGNORECASE)
_REFERENCE = frozenset({"type", "variable", "variables"})
"""Members beside a password that name where it is, and do not hold it."""

# A member as it stands in JSON, in JSON inside of a string, in JAAS and in SQL.
_MEMBER = re.compile(
    rf"""(?P<name>(?<![\w.\-])(?:{_NAMES})\\{{0,8}}["']?\s{{0,8}}[:=]\s{{0,8}})"""
    r"""(?P<quote>\\{0,8}["'])(?P<value>(?:(?!(?P=quote)).){1,16384})(?P=quote)""",
    re.IGNORECASE | re.DOTALL,
)
_BARE = re.compile(
    rf"(?P<name>(?<![\w.\-])(?:{_NAMES})\s{{0,8}}=\s{{0,8}})(?P<value>[^\s\"'\\,;&]+)",
    re.IGNORECASE,
)
_USERINFO = re.compile(
    r"(?P<name>(?<![\w+.\-])[a-z][a-z0-9+.\-]{0,32}://[^\s/:@\"']{0,256}:)"
    r"(?P<value>[^\s/@\"']{1,256})@",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Masker:
    """What must not be shown.

    Attributes:
        values: the secrets, longest first, so that none is cut by a shorter one.
        too_many: there are more than can be looked for.
    """

    values: tuple[str, ...] = field(repr=False)
    too_many: bool = False

    @classmethod
    def of(cls, document: Document | None, *, more: Iterable[str] = ()) -> Masker:
        """Collect the secrets of a specification, and those known otherwise."""
        found = set(more)
        if document is not None:
            found |= set(_secrets(document, inside=False))
        values = sorted((text for text in found if len(text) >= SHORTEST), key=_longest)
        return cls((), too_many=True) if len(values) > MOST else cls(tuple(values))

    def text(self, text: str, *, limit: int | None = None) -> str:
        """Mask a text and cut it to so many bytes, between two characters."""
        if self.too_many:
            return MASK
        for value in self.values:
            text = text.replace(value, MASK)
        text = _MEMBER.sub(rf"\g<name>\g<quote>{MASK}\g<quote>", text)
        text = _BARE.sub(rf"\g<name>{MASK}", text)
        text = _USERINFO.sub(rf"\g<name>{MASK}@", text)
        encoded = text.encode(errors="replace")
        return encoded[:limit].decode(errors="ignore")

    def document(self, document: Document, written: str) -> str:
        """Return a specification as it may be shown: as it was written, if nothing is secret."""
        masked = self._masked(document, inside=False)
        return written if masked == document else write(masked)

    def _masked(self, value: object, *, inside: bool) -> object:
        match value:
            case str():
                return MASK if inside and value else self.text(value)
            case Mapping():
                return {
                    key: self._masked(item, inside=_inside(key, inside))
                    for key, item in value.items()
                }
            case list():
                return [self._masked(item, inside=inside) for item in value]
            case bool() | None:
                return value
            case _:
                return MASK if inside else value


def _inside(key: str, inside: bool) -> bool:  # noqa: FBT001  told on from level to level
    return bool(_SECRET.match(key)) or (inside and key not in _REFERENCE)


def _longest(text: str) -> tuple[int, str]:
    return (-len(text), text)


def _secrets(value: object, *, inside: bool) -> Iterator[str]:
    match value:
        case str():
            if inside:
                yield value
            for pattern in (_MEMBER, _BARE, _USERINFO):
                yield from (match["value"] for match in pattern.finditer(value))
        case Mapping():
            for key, item in value.items():
                yield from _secrets(item, inside=_inside(key, inside))
        case list():
            for item in value:
                yield from _secrets(item, inside=inside)
        case _:
            return
