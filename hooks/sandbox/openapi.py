"""Validate a value by a structural schema, by way of JSON Schema.

Idea: OpenAPI 3.0 follows Draft 4, so jsonschema does the work; what differs in Kubernetes
(nullable, int-or-string, int32/int64, Go's regular expressions) is translated, and its errors are
worded as the API server words them.

Limits: only the formats in `_FORMATS` are checked; the real server ignores unknown ones too.
"""

from __future__ import annotations

import ipaddress
import json
import re
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jsonschema import Draft4Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hooks.core.manifests import Manifest

_KEYWORDS = frozenset(
    (
        *("type", "format", "enum", "required", "pattern", "minLength", "maxLength", "multipleOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minItems", "maxItems", "minProperties", "maxProperties"),
    )
)
_TEXTS = {
    "pattern": "should match '{}'",
    "minLength": "should be at least {} chars long",
    "minimum": "should be greater than or equal to {}",
    "maximum": "should be less than or equal to {}",
    "minItems": "should have at least {} items",
    "minProperties": "should have at least {} properties",
    "format": "must be of type {}",
    "anyOf": "must validate at least one schema (anyOf)",
    "oneOf": "must validate one and only one schema (oneOf)",
    "not": "must not validate the schema (not)",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an object; after a `blocking` one no CEL rule is asked."""

    path: str
    text: str
    blocking: bool = False

    def __str__(self) -> str:
        return f"{self.path or '<nil>'}: {self.text}"


class SchemaValidator:
    """A structural schema, ready to validate."""

    def __init__(self, schema: Manifest) -> None:
        self._validator = _VALIDATOR(_json_schema(schema), format_checker=_format_checker())

    def problems(self, value: object) -> list[Problem]:
        """List all problems, ordered by path."""
        errors = self._validator.iter_errors(value)
        return sorted(map(_problem, errors), key=lambda problem: problem.path)


def child_schema(schema: Manifest, key: str) -> Manifest | None:
    """Return the schema of a key of an object, None when the key is unknown."""
    child: Manifest | None = (schema.get("properties") or {}).get(key)
    extra = schema.get("additionalProperties")
    if child is None and extra:
        return extra if isinstance(extra, dict) else {}
    return child


def shown(value: object) -> str:
    """Spell a value as the API server does in messages; also its identity in a set."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _problem(error: ValidationError) -> Problem:
    path = ""
    for step in error.absolute_path:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    path = path.lstrip(".")
    keyword = str(error.validator)
    limit: Any = error.validator_value
    value: Any = error.instance
    match keyword:
        case "required":
            return Problem(path, "Required value", blocking=True)
        case "enum":
            allowed = ", ".join(shown(v if isinstance(v, str) else shown(v)) for v in limit)
            text = f"Unsupported value: {shown(value)}: supported values: {allowed}"
            return Problem(path, text, blocking=True)
        case "maxLength":
            return Problem(path, f"Too long: may not be more than {limit} bytes", blocking=True)
        case "maxItems" | "maxProperties":
            text = f"Too many: {len(value)}: must have at most {limit} items"
            return Problem(path, text, blocking=True)
        case "type":
            wanted, got = limit[0] if isinstance(limit, list) else limit, shown(_type_name(value))
            text = f"Invalid value: {got}: {path} in body must be of type {wanted}: {got}"
            return Problem(path, text, blocking=True)
        case _:
            detail = _TEXTS.get(keyword, f"breaks {keyword} {{}}").format(limit)
            return Problem(path, f"Invalid value: {shown(value)}: {path} in body {detail}")


def _type_name(value: object) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")


def _json_schema(schema: Manifest) -> Manifest:
    result = {key: value for key, value in schema.items() if key in _KEYWORDS}
    for key in ("items", "not", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            result[key] = _json_schema(schema[key])
    for key in ("allOf", "anyOf", "oneOf"):
        if key in schema:
            result[key] = [_json_schema(part) for part in schema[key]]
    if "properties" in schema:
        result["properties"] = {k: _json_schema(v) for k, v in schema["properties"].items()}
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    if schema.get("nullable") and "type" in result:
        types = result["type"]
        result["type"] = [*(types if isinstance(types, list) else [types]), "null"]
    return result


def _required(_: object, names: list[str], value: object, __: object) -> Iterator[ValidationError]:
    missing = [name for name in names if isinstance(value, dict) and name not in value]
    return (ValidationError("missing", path=[name]) for name in missing)


def _pattern(_: object, pattern: str, value: object, __: object) -> Iterator[ValidationError]:
    if isinstance(value, str) and not re.search(_go_pattern(pattern), value):
        yield ValidationError("no match")


def _go_pattern(pattern: str) -> str:
    """Make $ the end of the text, as in Go; Python also takes the place before a last newline."""
    tokens = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$"
    return re.sub(tokens, lambda token: r"\Z" if token[0] == "$" else token[0], pattern)


def _parses(parse: Callable[[str], object]) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        if isinstance(value, str):
            parse(value)
        return True

    return check


def _integer(bits: int) -> Callable[[object], bool]:
    limit = 2 ** (bits - 1)
    return lambda value: not isinstance(value, int) or -limit <= value < limit


def _date_time(value: str) -> None:
    if "T" not in value.upper() or datetime.fromisoformat(value).tzinfo is None:
        raise ValueError(value)


_FORMATS: dict[str, Callable[[object], bool]] = {
    "int32": _integer(32),
    "int64": _integer(64),
    "date-time": _parses(_date_time),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": _parses(ipaddress.ip_interface),
    "uuid": _parses(uuid.UUID),
}


def _format_checker() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name, check in _FORMATS.items():
        checker.checks(name, raises=ValueError)(check)
    return checker


_VALIDATOR = extend(  # type: ignore[no-untyped-call]  # the stubs leave it untyped
    Draft4Validator, {"required": _required, "pattern": _pattern}
)
