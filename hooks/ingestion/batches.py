"""Has a batch ended well?"""

from __future__ import annotations

from hooks.core.decision import Met, Stuck, Verdict, Wait
from hooks.ingestion import hadoop
from hooks.ingestion.actions import Action
from hooks.ingestion.facts import Facts
from hooks.ingestion.reasons import TASK_FAILED, TASK_LOST, TASK_RUNNING
from hooks.ingestion.record import Record


def ended(entry: Record, facts: Facts) -> Verdict[Action]:
    """Judge the current task."""
    if entry.state == "Succeeded":
        return Met()
    if entry.state in ("Running", "Stopping"):
        held = "; it was submitted before spec.suspend, and runs on" if facts.spec.suspend else ""
        return Wait(TASK_RUNNING, f"task {entry.id} is running{held}")
    if facts.retry_in is not None:
        message = f"{_failure(entry)}. It is run again, as spec.retryPolicy says"
        reason = TASK_LOST if entry.state == "Lost" else TASK_FAILED
        return Wait(reason, message, recheck=max(1.0, facts.retry_in))
    removed = hadoop.refusal(entry.error)
    if removed:
        reason, advice = removed
        return Stuck(reason, f"{advice}. Druid: {entry.error}")
    return Stuck(TASK_LOST if entry.state == "Lost" else TASK_FAILED, _failure(entry))


def _failure(entry: Record) -> str:
    if entry.state == "Lost":
        return (
            f"Druid does not know task {entry.id} any more, and how it ended was not seen: look"
            " whether its data are there"
        )
    return f"task {entry.id} failed: {entry.error}"
