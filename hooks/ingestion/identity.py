"""What makes two specifications the same, and which ids follow from one.

Equality is by JSON value: order of keys and spelling of numbers do not count, types do (1 is
not true). An id holds nothing random and no time, so whoever computes it again gets the same one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Literal

Endpoint = Literal["task", "sql", "supervisor"]

MAX_ID = 255
"""Characters of an id: the width of Druid's column."""

SQL_PREFIX = "query-"
"""Druid puts it before context.sqlQueryId to name the task."""

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_.-]")
_PREFIX_LENGTH = 100
_HASH_LENGTH = 32

_REFUSED = (
    (re.compile(r"\Z"), "it is empty"),
    (re.compile(r"\."), "it begins with '.'"),
    (re.compile(r".*/", re.DOTALL), "it holds '/'"),
    (re.compile(r"(?s).*[^\S ]"), "it holds white space other than ' '"),
    (re.compile(r"(?s).*[\x00-\x1f\x7f]"), "it holds control characters"),
    (
        re.compile(r"(?s).*[^\u0000-\uffff]"),
        "it holds characters outside of Unicode's first plane, such as emoji",
    ),
    (re.compile(rf"(?s).{{{MAX_ID + 1}}}"), f"it is longer than {MAX_ID} characters"),
)
"""What Druid refuses in an id, and why it does."""


def canonical(value: object) -> str:
    """Write a JSON value so that equal values have equal texts; numbers are exact."""
    return _written(value, _exact)


def as_floats(value: object) -> str:
    """Write a JSON value as someone sees it to whom every number is a 64-bit float."""
    return _written(value, lambda number: repr(float(number)))


def _written(value: object, number: Callable[[Decimal], str]) -> str:
    match value:
        case None | bool() | str():
            return json.dumps(value)
        case int() | Decimal():
            return number(Decimal(value))
        case float():
            return number(Decimal(repr(value)))
        case Mapping():
            members = (f"{json.dumps(key)}:{_written(value[key], number)}" for key in sorted(value))
            return "{" + ",".join(members) + "}"
        case Sequence():
            return "[" + ",".join(_written(item, number) for item in value) + "]"
        case _:
            raise TypeError(type(value).__name__)


def _exact(number: Decimal) -> str:
    """Write digits and exponent; never the expanded form, which 1e999999999 would make long."""
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    if not text or not isinstance(exponent, int):
        return "0"
    kept = text.rstrip("0")
    return f"{'-' if sign else ''}{kept}e{exponent + len(text) - len(kept)}"


def digest(*parts: str) -> str:
    """Return the SHA-256 of texts that hold no line break, or of one."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def task_id(endpoint: Endpoint, label: str, uid: str, spec_hash: str, attempt: int) -> str:
    """Return the id of the task that this attempt becomes.

    Args:
        endpoint: where it is submitted.
        label: what people should recognise; what Druid would refuse in it is replaced.
        uid: of the DruidIngestion, so that a new one of the same name runs anew.
        spec_hash: of the specification.
        attempt: which run of it, from 1.
    """
    plain = _NOT_PLAIN.sub("_", label).lstrip(".")[:_PREFIX_LENGTH]
    name = f"{plain}_{digest(uid, spec_hash, str(attempt))[:_HASH_LENGTH]}"
    return SQL_PREFIX + name if endpoint == "sql" else name


def proves(id_: str, uid: str, spec_hash: str, attempt: int) -> bool:
    """Say whether an id can only be of this object: nobody else computes the same one."""
    return id_.endswith(f"_{digest(uid, spec_hash, str(attempt))[:_HASH_LENGTH]}")


def id_problem(text: str) -> str:
    """Say what Druid has against an id or the name of a datasource; empty for nothing."""
    return next((why for pattern, why in _REFUSED if pattern.match(text)), "")
