"""The parts of the status that show what is in Druid: task, supervisor, and the state in a word."""

from __future__ import annotations

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.effects.ports.druid import Supervisor
from hooks.ingestion.document import Document
from hooks.ingestion.facts import Facts
from hooks.ingestion.masking import Masker
from hooks.ingestion.policies import MAX_TEXT
from hooks.ingestion.record import Record, State, rows_to_status

MAX_ERRORS = 5
_MILLISECONDS = 1000

_TASK_STATES: dict[State, str] = {
    "Running": "RUNNING",
    "Stopping": "RUNNING",
    "Succeeded": "SUCCESS",
    "Failed": "FAILED",
    "Stopped": "FAILED",
    "Lost": "LOST",
}


def task(facts: Facts, previous: Manifest) -> Manifest | None:
    """Return status.task: of the current submission, or the last that was in Druid."""
    if facts.spec.ingestion.streaming:
        return None
    entry = facts.current
    state = _TASK_STATES.get(entry.state) if entry else None
    kept = previous.get("task")
    if entry is None or state is None:
        return kept if isinstance(kept, dict) else None
    before = kept if isinstance(kept, dict) and kept.get("id") == entry.id else {}
    shown: Manifest = {**before, "id": entry.id, "state": state, **_times(facts)}
    if entry.rows is not None:
        shown["rows"] = rows_to_status(entry.rows)
    if entry.error:
        shown["error"] = entry.error
    return shown


def _times(facts: Facts) -> Manifest:
    seen = facts.task
    if seen is None:
        return {}
    times: Manifest = {}
    if manifests.timestamp(seen.created):
        times["startTime"] = seen.created
    if seen.duration_ms is not None and seen.state != "RUNNING":
        times["durationSeconds"] = max(seen.duration_ms, 0) // _MILLISECONDS
    return times


def supervisor(facts: Facts, previous: Manifest) -> Manifest | None:
    """Return status.supervisor: as it was read, or as it was while nobody had to ask."""
    if not facts.spec.ingestion.streaming or facts.missing:
        return None
    seen = facts.supervisor
    kept = previous.get("supervisor")
    if seen is None:
        return kept if isinstance(kept, dict) else None
    return _supervisor(seen, facts.spec.ingestion.document)


def _supervisor(seen: Supervisor, document: Document) -> Manifest:
    shown: Manifest = {"id": seen.id, "state": seen.state, "suspended": seen.suspended}
    if seen.detailed_state:
        shown["detailedState"] = seen.detailed_state
    if seen.healthy is not None:
        shown["healthy"] = seen.healthy
    if seen.errors:
        masker = Masker.of(document)
        errors = dict.fromkeys(masker.text(text, limit=MAX_TEXT) for text in seen.errors)
        shown["errors"] = list(errors)[:MAX_ERRORS]
    return shown


def suspended(facts: Facts) -> bool | None:
    """Say whether it is suspended; None when that is not known."""
    entry = facts.current
    if not facts.spec.ingestion.streaming:
        return facts.spec.suspend and (entry is None or entry.state in ("Submitting", "Rejected"))
    if facts.supervisor is not None:
        return facts.supervisor.suspended
    return entry.suspended if entry is not None and entry.state == "Running" else None


def state(facts: Facts) -> str:
    """Return the state in a word, for people."""
    newest: Record | None = facts.current or next(iter(facts.history), None)
    running = newest is not None and newest.state == "Running"
    if suspended(facts) and running == facts.spec.ingestion.streaming:
        return "Suspended"
    if newest is None or newest.state == "Superseded":
        return "Pending"
    return newest.state
