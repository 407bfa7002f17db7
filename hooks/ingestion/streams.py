"""Is a supervisor as asked, and healthy?"""

from __future__ import annotations

from hooks.core.decision import Act, Met, Stuck, Verdict, Wait
from hooks.ingestion.actions import Action, Resume, Submit, Suspend
from hooks.ingestion.facts import Facts
from hooks.ingestion.reasons import (
    DRIFTED,
    SUPERVISOR_LOST,
    SUPERVISOR_UNHEALTHY,
)
from hooks.ingestion.record import Record

LOOK_AGAIN = 30.0


def judge(entry: Record, facts: Facts) -> Verdict[Action]:
    """Judge the current supervisor."""
    restore = facts.spec.restore_drift
    if entry.state == "Lost":
        return _lost(entry, restore=restore)
    if facts.drift:
        return _edited(entry, facts, restore=restore)
    return suspension(entry, facts) or _health(facts)


def _lost(entry: Record, *, restore: bool) -> Verdict[Action]:
    message = f"Druid has no supervisor {entry.id} any more: somebody terminated it"
    if restore:
        return Act(Submit(entry.id), "", message)
    return Stuck(
        SUPERVISOR_LOST, f"{message}. Set spec.drift to Restore, or delete this DruidIngestion"
    )


def _edited(entry: Record, facts: Facts, *, restore: bool) -> Verdict[Action]:
    message = f"supervisor {entry.id} was changed in Druid: {facts.drift}"
    if facts.refused:
        return Stuck(DRIFTED, message)
    if restore:
        return Act(Submit(entry.id), "", message)
    return Stuck(DRIFTED, f"{message}. Set spec.drift to Restore, or change it back there")


def suspension(entry: Record, facts: Facts) -> Verdict[Action] | None:
    """Return what is wrong with the suspension: ours is carried out, somebody else's is drift."""
    seen, asked = facts.supervisor, facts.spec.suspend
    if seen is None or seen.suspended == asked:
        return None
    change: Action = Suspend(entry.id) if asked else Resume(entry.id)
    done = "resumed" if asked else "suspended"
    if entry.suspended != asked:
        verb = "suspending" if asked else "resuming"
        return Act(change, "", f"{verb} supervisor {entry.id}")
    message = f"supervisor {entry.id} was {done} in Druid"
    if facts.spec.restore_drift:
        return Act(change, "", message)
    return Stuck(
        DRIFTED, f"{message}. Set spec.drift to Restore, correct spec.suspend, or undo it there"
    )


def _health(facts: Facts) -> Verdict[Action]:
    """A suspended supervisor needs no health: without a stream it is never healthy."""
    seen = facts.supervisor
    if seen is None or seen.suspended or seen.healthy is not False:
        return Met()
    state = seen.detailed_state or seen.state
    return Wait(
        SUPERVISOR_UNHEALTHY,
        f"supervisor {seen.id} is {state}: see status.supervisor.errors",
        recheck=LOOK_AGAIN,
    )
