"""The status of a DruidIngestion: what was read back, and what must be remembered."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal

from hooks.core import manifests
from hooks.core.conditions import READY, Condition, settle, stamp
from hooks.core.decision import Act, Decision, Met, Stuck, Wait
from hooks.core.manifests import Manifest
from hooks.ingestion import observed, record, words
from hooks.ingestion.absent import WAY_OUT
from hooks.ingestion.access import Access
from hooks.ingestion.actions import Action, Removal
from hooks.ingestion.decide import CONDITION
from hooks.ingestion.facts import Facts
from hooks.ingestion.model import Invalid
from hooks.ingestion.past import CURRENT_SPEC, LATE_SECONDS, seconds_since
from hooks.ingestion.reasons import (
    ACCEPTED,
    IN_FLIGHT,
    NOT_SUSPENDED,
    PROTOCOL_ERROR,
    RECONCILING,
    SUBMITTED,
    SUPERVISOR_RUNNING,
    SUSPENDED,
    TASK_SUCCEEDED,
)
from hooks.ingestion.remains import Remains
from hooks.ingestion.world import World

TYPES = ("Accepted", "Submitted", READY)
SUSPENSION = "Suspended"
MAX_MESSAGE = 16 * 1024
"""Characters; an API server refuses a whole status for one message that is too long."""

Value = Literal["True", "False", "Unknown"]


def present(facts: Facts, decision: Decision[Action], parent: Manifest, world: World) -> Manifest:
    """Return the status of a live DruidIngestion."""
    previous = parent.get("status") or {}
    facts = _sent(facts) if world.unknown else facts
    status: Manifest = {
        **previous,
        **words.fields(facts, previous, world),
        "state": observed.state(facts),
        "history": _history(facts, previous),
        "task": observed.task(facts, previous),
        "supervisor": observed.supervisor(facts, previous),
        "applied": facts.applied.to_status() or None,
        "rules": _rules(facts, parent),
    }
    current = [*_conditions(facts, decision, parent), _suspension(facts, parent)]
    return _written(status, current, parent, world.now)


def _sent(facts: Facts) -> Facts:
    """Note when something was sent that may arrive late, so that an edit waits for it.

    Not at each repetition: a status that moves wakes the next one.
    """
    entry = facts.current
    if entry is None or seconds_since(entry.submitted_at, facts.now) < LATE_SECONDS / 2:
        return facts
    return facts.changed(entry, replace(entry, submitted_at=stamp(facts.now)))


def _history(facts: Facts, previous: Manifest) -> object:
    """Return the history; an empty one says that Druid was asked and has nothing of ours."""
    asked = isinstance(facts.access, Access) and facts.unread is None
    if facts.history or asked or "history" in previous:
        return record.write(facts.history)
    return None


def _rules(facts: Facts, parent: Manifest) -> object:
    """Return the rules that were applied last, in the words of the spec."""
    if not facts.applied.rules:
        return None
    if facts.applied.rules == facts.past.applied.rules:
        return (parent.get("status") or {}).get("rules")
    return parent["spec"]["ingestion"].get("rules")


def _conditions(facts: Facts, decision: Decision[Action], parent: Manifest) -> list[Condition]:
    """Say what the gates decided: True up to the first that is not met, and Ready as that one."""
    if isinstance(decision.verdict, Met):
        return [_true(facts, type_) for type_ in TYPES]
    failing = CONDITION[decision.gate]
    met = [_true(facts, type_) for type_ in TYPES[: TYPES.index(failing)]]
    unmet = [
        _unmet(type_, decision, parent) if type_ in (failing, READY) else _carried(type_, parent)
        for type_ in TYPES[TYPES.index(failing) :]
    ]
    return [*met, *unmet]


def _true(facts: Facts, type_: str) -> Condition:
    entry, ingestion = facts.current, facts.spec.ingestion
    if type_ == "Accepted":
        message = ". ".join(ingestion.warnings) or "the specification can be submitted"
        return Condition(type_, "True", ACCEPTED, message)
    id_ = entry.id if entry else ""
    if type_ == "Submitted":
        return Condition(type_, "True", SUBMITTED, f"Druid has it as {id_}")
    if not ingestion.streaming:
        return Condition(type_, "True", TASK_SUCCEEDED, f"task {id_} succeeded")
    if facts.spec.suspend:
        return Condition(type_, "True", SUSPENDED, f"supervisor {id_} is suspended, as asked")
    return Condition(type_, "True", SUPERVISOR_RUNNING, f"supervisor {id_} is running")


def _unmet(type_: str, decision: Decision[Action], parent: Manifest) -> Condition:
    before = manifests.condition(parent, type_)
    match decision.verdict:
        case Act(message=message):
            reason = RECONCILING
        case Wait(reason=reason, message=message, unread=unread):
            if unread and reason == RECONCILING and before:
                return _carried(type_, parent)
        case Stuck(reason=reason, message=message):
            if not reason:
                reason, message = PROTOCOL_ERROR, f"Druid took it, and shows no effect: {message}"
        case _:
            raise AssertionError(decision.gate)
    status: Value = "Unknown" if reason in IN_FLIGHT else "False"
    current = Condition(type_, status, reason, message)
    return current.or_still(before, decision.reasons) if reason == RECONCILING else current


def _carried(type_: str, parent: Manifest) -> Condition:
    """Return a condition as it was: nothing was learnt about it."""
    before = manifests.condition(parent, type_)
    status: Value = before["status"] if before.get("status") in ("True", "False") else "Unknown"
    reason, message = before.get("reason") or RECONCILING, before.get("message") or "not judged yet"
    return Condition(type_, status, str(reason), str(message), judged=False)


def _suspension(facts: Facts, parent: Manifest) -> Condition:
    suspended = observed.suspended(facts)
    if suspended is None:
        return _carried(SUSPENSION, parent)
    if suspended:
        message = "it is suspended" if facts.spec.ingestion.streaming else "nothing is submitted"
        return Condition(SUSPENSION, "True", SUSPENDED, message)
    late = facts.spec.suspend and not facts.spec.ingestion.streaming
    message = "the task was submitted before spec.suspend" if late else "it is not suspended"
    return Condition(SUSPENSION, "False", NOT_SUSPENDED, message)


def invalid(problem: Invalid, parent: Manifest, now: datetime) -> Manifest:
    """Return the status of a DruidIngestion that cannot be used: what it was, and why."""
    status = _kept(parent)
    current = [
        Condition("Accepted", "False", problem.reason, problem.message),
        _carried("Submitted", parent),
        Condition(READY, "False", problem.reason, problem.message),
        _carried(SUSPENSION, parent),
    ]
    return _written(status, current, parent, now)


def deleting(
    remains: Remains, decision: Decision[Removal], parent: Manifest, now: datetime
) -> Manifest:
    """Return the status of a DruidIngestion that is being deleted."""
    previous = parent.get("status") or {}
    ready = (
        Condition(READY, "Unknown", RECONCILING, "nothing is left to end")
        if isinstance(decision.verdict, Met)
        else _with_way_out(_unmet(READY, decision, parent))
    )
    current = [
        _carried("Accepted", parent),
        _carried("Submitted", parent),
        ready,
        _carried(SUSPENSION, parent),
    ]
    status = _kept(parent) | words.ended(record.read(previous), remains.history)
    status |= {"state": "Stopping", "history": record.write(remains.history)}
    status["applied"] = remains.applied.to_status() or None
    return _written(status, current, parent, now)


def _with_way_out(condition: Condition) -> Condition:
    """Say how to end the waiting, whatever is waited for; what was carried on has it already."""
    if WAY_OUT in condition.message:
        return condition
    return replace(condition, message=f"{condition.message}; {WAY_OUT}")


def _kept(parent: Manifest) -> Manifest:
    previous = parent.get("status") or {}
    required = {key: str(previous.get(key) or "") for key in ("taskId", CURRENT_SPEC)}
    return {"state": "Pending", **previous, **required}


def _written(
    status: Manifest, current: list[Condition], parent: Manifest, now: datetime
) -> Manifest:
    """Return the whole status; lastUpdateTime moves when anything else does."""
    previous = parent.get("status") or {}
    conditions = settle(
        previous.get("conditions") or (),
        [replace(one, message=one.message[:MAX_MESSAGE]) for one in current],
        generation=manifests.generation(parent),
        now=now,
    )
    status = {key: value for key, value in status.items() if value is not None}
    status |= {"observedGeneration": manifests.generation(parent), "conditions": conditions}
    status.pop("lastUpdateTime", None)
    before = {key: value for key, value in previous.items() if key != "lastUpdateTime"}
    moved = status != before or "lastUpdateTime" not in previous
    return {**status, "lastUpdateTime": stamp(now) if moved else previous["lastUpdateTime"]}
