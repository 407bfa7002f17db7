"""How Druid's answers are read: JSON with exact numbers, error pages, stack traces.

The content type is not looked at: Druid labels plain text as JSON.
"""

from __future__ import annotations

import html
import json
import re
from decimal import Decimal
from typing import Any, NoReturn

from hooks.effects.druid.transport import Reply

_TITLE = re.compile(rb"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_FRAME = re.compile(r"\r?\n\t(?:at |\.\.\.).*")
# The same inside JSON text.
_QUOTED_FRAME = re.compile(r'(?:\\r)?\\n\\t(?:at |\.\.\.)(?:[^"\\]|\\[^rn"])*')


def value(reply: Reply) -> Any:  # noqa: ANN401  JSON
    """Return the JSON of an answer, None for anything else; integers exact, others Decimal."""
    if not reply.whole:
        return None
    try:
        return json.loads(reply.content, parse_float=Decimal, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def document(reply: Reply) -> dict[str, Any] | None:
    """Return the JSON object of an answer, None for anything else."""
    found = value(reply)
    return found if isinstance(found, dict) else None


def title(reply: Reply) -> str:
    """Return the title of an error page; empty when it is none."""
    match = _TITLE.search(reply.content)
    return html.unescape(match[1].decode("iso-8859-1")).strip() if match else ""


def readable(reply: Reply) -> str:
    """Return an answer as a person wants it: of a page the message, and no stack trace."""
    if reply.content.lstrip()[:1] == b"<":
        return title(reply).removeprefix(f"Error {reply.status} ")
    return _QUOTED_FRAME.sub("", traceless(reply.content.decode(errors="replace")))


def traceless(text: str) -> str:
    """Leave out the frames of stack traces; what caused what stays."""
    return _FRAME.sub("", text).strip()


def string(found: object) -> str:
    """Return a string, empty for anything else."""
    return found if isinstance(found, str) else ""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
