"""What the double of Druid makes of a specification: its names, its defaults, its rows.

Idea: what Druid keeps never equals what a user wrote. Defaults are filled in, durations are
written in seconds, dimensions become objects. A client that compares must cope with that.

Limits: a few dozen defaults of some hundred, and no check of what a schema means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from hooks.sandbox.druid_replies import Document, Refusal, error, thrown

_LAST_OF_PLANE = 0xFFFF
_DURATIONS = frozenset({"taskDuration", "startDelay", "period", "completionTimeout"})
_PERIOD = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?")
_IO: Document = {
    "replicas": 1,
    "taskCount": 1,
    "taskDuration": "PT3600S",
    "startDelay": "PT5S",
    "period": "PT30S",
    "completionTimeout": "PT1800S",
    "autoScalerConfig": None,
    "idleConfig": None,
    "stopTaskCount": None,
}
_TUNING: Document = {
    "maxRowsInMemory": 150000,
    "maxBytesInMemory": 0,
    "maxRowsPerSegment": 5000000,
    "reportParseExceptions": False,
    "maxParseExceptions": 2147483647,
}
_SCHEMA: Document = {
    "metricsSpec": [],
    "granularitySpec": {"type": "uniform", "segmentGranularity": "DAY", "rollup": True},
    "transformSpec": {"filter": None, "transforms": []},
}
_EXTERN = re.compile(r"EXTERN\s*\(\s*'((?:[^']|'')*)'", re.IGNORECASE)


def datasource(document: Mapping[str, Any]) -> str:
    """Return the datasource of a task or a supervisor, flat or with a spec; empty for none."""
    inside = document.get("spec")
    schema = inside.get("dataSchema") if isinstance(inside, dict) else document.get("dataSchema")
    named = schema.get("dataSource") if isinstance(schema, dict) else document.get("dataSource")
    return named if isinstance(named, str) else ""


def decoded(part: str) -> str:
    """Return a part of a path as it was before it was percent-encoded, or refuse it."""
    text = unquote(part)
    if "/" in text:
        exception = "org.apache.druid.error.DruidException: Invalid value for field [id]"
        raise Refusal(thrown(f"{exception}: Value [{text}] cannot contain '/'."))
    return text


def check_id(what: str, text: str, *, within: str) -> None:
    """Refuse what cannot be an id."""
    wrong = ""
    if not text:
        wrong = "must not be null"
    elif "/" in text:
        wrong = f"Value [{text}] cannot contain '/'."
    elif text.startswith("."):
        wrong = f"Value [{text}] cannot start with '.'."
    else:
        outside = next((at for at, letter in enumerate(text) if ord(letter) > _LAST_OF_PLANE), None)
        if outside is not None:
            wrong = f"Value [{text}] contains illegal UTF8 character at position [{outside}]"
    if wrong:
        problem = f"problem: Invalid value for field [{what}]: {wrong}"
        raise Refusal(error(400, f"Cannot construct instance of `{within}`, {problem}"))


def supervisor(document: Document, *, own_id: str) -> Document:
    """Return Druid's copy of a supervisor; `own_id` is empty where supervisors have none."""
    inside = document.get("spec")
    parts = inside if isinstance(inside, dict) else document
    schema = {**_SCHEMA, **parts.get("dataSchema", {})}
    schema["dimensionsSpec"] = _dimensions(schema.get("dimensionsSpec") or {})
    io = {**_IO, **parts.get("ioConfig", {})}
    io.pop("type", None)
    io["stream"] = io.get("stream") or io.get("topic") or io.get("topicPattern")
    for key in _DURATIONS & io.keys():
        io[key] = _in_seconds(io[key])
    tuning = {"type": document["type"], **_TUNING, **(parts.get("tuningConfig") or {})}
    spec = {"dataSchema": schema, "ioConfig": io, "tuningConfig": tuning}
    return {
        "type": document["type"],
        **({"id": own_id} if own_id else {}),
        "spec": spec,
        **spec,
        "context": document.get("context"),
        "suspended": bool(document.get("suspended")),
    }


def rows(document: Document) -> int:
    """Count the rows of inline data, the only data that the double knows."""
    query = document.get("sqlQuery")
    if isinstance(query, str):
        return sum(_inline(source) for source in _EXTERN.findall(query))
    inside = document.get("spec")
    io = inside.get("ioConfig", {}) if isinstance(inside, dict) else {}
    source = io.get("inputSource") or {}
    return _lines(source.get("data"), headed=io.get("inputFormat", {}).get("type") == "csv")


def _inline(argument: str) -> int:
    try:
        source = json.loads(argument.replace("''", "'"))
    except ValueError:
        return 0
    return _lines(source.get("data"), headed=True) if isinstance(source, dict) else 0


def _lines(data: object, *, headed: bool) -> int:
    lines = data.splitlines() if isinstance(data, str) else []
    return max(0, len(lines) - headed)


def _dimensions(given: Document) -> Document:
    listed = [
        {"type": "string", "name": one, "multiValueHandling": "SORTED_ARRAY"}
        if isinstance(one, str)
        else one
        for one in given.get("dimensions", [])
    ]
    defaults = {"includeAllDimensions": False, "useSchemaDiscovery": False}
    return {**defaults, **given, "dimensions": listed}


def _in_seconds(period: object) -> object:
    match = _PERIOD.fullmatch(period) if isinstance(period, str) else None
    if match is None:
        return period
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return f"PT{hours * 3600 + minutes * 60 + seconds}S"
