"""What the report of an ended task says: the whole error, the first bad rows, how many rows.

Native, Hadoop and streaming tasks write `ingestionStatsAndErrors`, with one entry per interval
for compaction. SQL writes `multiStageQuery`, whose counters are per stage and worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hooks.effects.druid.text import string, traceless
from hooks.effects.ports.druid import Report, Rows

_SHOWN_PARSE_ERRORS = 5
_NATIVE, _SQL = "ingestionStatsAndErrors", "multiStageQuery"


def report(shown: dict[str, Any]) -> Report | None:
    """Return what a report says; None when the answer holds none, as for a task that runs."""
    payloads = {
        kind: [
            one["payload"]
            for one in shown.values()
            if isinstance(one, dict)
            and one.get("type") == kind
            and isinstance(one.get("payload"), dict)
        ]
        for kind in (_NATIVE, _SQL)
    }
    if payloads[_SQL]:
        return _sql(payloads[_SQL][0])
    return _native(payloads[_NATIVE]) if payloads[_NATIVE] else None


def _native(payloads: list[dict[str, Any]]) -> Report:
    errors = (traceless(string(one.get("errorMsg"))) for one in payloads)
    counts = [_counts(one) for one in payloads]
    known = [count for count in counts if count is not None]
    return Report(
        error=next((error for error in errors if error), ""),
        parse_errors=tuple(_bad_rows(payloads))[:_SHOWN_PARSE_ERRORS],
        rows=_sum(known) if known else None,
    )


def _counts(payload: dict[str, Any]) -> Rows | None:
    """Read the counts of the phase that was reached.

    Tasks that ran in parallel have them under `totals`.
    """
    stats = _object(payload, "rowStats")
    early = payload.get("ingestionState") == "DETERMINE_PARTITIONS"
    phases = stats.get("totals", stats)
    found = _object(phases, "determinePartitions" if early else "buildSegments")
    keys = ("processed", "processedWithError", "unparseable", "thrownAway")
    return Rows(*(_count(found.get(key)) for key in keys)) if found else None


def _sum(counts: list[Rows]) -> Rows:
    return Rows(
        processed=sum(one.processed for one in counts),
        with_error=sum(one.with_error for one in counts),
        unparseable=sum(one.unparseable for one in counts),
        thrown_away=sum(one.thrown_away for one in counts),
    )


def _bad_rows(payloads: list[dict[str, Any]]) -> Iterator[str]:
    for payload in payloads:
        phases = payload.get("unparseableEvents")
        for events in phases.values() if isinstance(phases, dict) else ():
            for event in events if isinstance(events, list) else ():
                # Before Druid 24 an event is its text alone.
                details = event.get("details") if isinstance(event, dict) else [event]
                yield from (text for text in map(string, details or ()) if text)


def _sql(payload: dict[str, Any]) -> Report:
    status = _object(payload, "status")
    warnings = status.get("warnings")
    return Report(
        error=_sql_error(_object(status, "errorReport")),
        parse_errors=tuple(
            text
            for one in (warnings if isinstance(warnings, list) else ())[:_SHOWN_PARSE_ERRORS]
            if isinstance(one, dict) and (text := _sql_error(one))
        ),
        rows=_sql_rows(_object(payload, "counters")),
    )


def _sql_error(reported: dict[str, Any]) -> str:
    """Put code and message together, as the task's status does."""
    error = _object(reported, "error")
    parts = (string(error.get("errorCode")), string(error.get("errorMessage")))
    return traceless(": ".join(part for part in parts if part))


def _sql_rows(counters: dict[str, Any]) -> Rows | None:
    """Add up the rows that the workers made segments of."""
    workers = [
        _object(worker, "segmentGenerationProgress")
        for stage in counters.values()
        if isinstance(stage, dict)
        for worker in stage.values()
        if isinstance(worker, dict)
    ]
    made = [worker for worker in workers if worker]
    return Rows(sum(_count(one.get("rowsProcessed")) for one in made)) if made else None


def _object(parent: object, key: str) -> dict[str, Any]:
    found = parent.get(key) if isinstance(parent, dict) else None
    return found if isinstance(found, dict) else {}


def _count(found: object) -> int:
    return found if isinstance(found, int) else 0
