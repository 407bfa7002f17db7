"""What is told of a cluster: a condition where the status is ours, an annotation where it is not.

Both say the same. The status keeps every other field as it was observed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from hooks.core import manifests
from hooks.core.conditions import Condition, settle
from hooks.core.decision import Act, Decision, Met, Stuck, Wait
from hooks.core.errors import EffectError
from hooks.core.manifests import Manifest
from hooks.initsql import reasons
from hooks.initsql.decide import Attempt
from hooks.initsql.facts import Facts
from hooks.initsql.model import FIELD, STATE
from hooks.initsql.reconciler import MissingKey, script

CONDITION = "DatabaseInitSQLApplied"

RUNS = 60.0
WAITS = 30.0
NEEDS_A_PERSON = 300.0
"""Seconds until a cluster is looked at again. Jobs, Pods and ConfigMaps wake us before."""


def condition(decision: Decision[Attempt], facts: Facts, before: Manifest) -> Condition:
    """Say what was decided.

    Args:
        decision: about these facts.
        facts: what was observed.
        before: the condition as it was told last.
    """
    match decision.verdict:
        case Met():
            return Condition(CONDITION, "True", reasons.APPLIED, _applied(facts))
        case Act(reason=reason, message=message):
            pass
        case Wait(reason=reason, message=message) | Stuck(reason=reason, message=message):
            pass
    in_flight = reason in (reasons.RECONCILING, reasons.DEFERRED)
    current = Condition(CONDITION, "Unknown" if in_flight else "False", reason, message)
    return current.or_still(before, decision.reasons)


def _applied(facts: Facts) -> str:
    """Say that it was applied, and whether it has been changed since."""
    ran = [job.digest for job in facts.jobs if job.state == "complete"]
    source, config_map = facts.wish.source, facts.config_map
    text = "the SQL was applied"
    if not ran or source is None or config_map is None or isinstance(config_map, EffectError):
        return text
    try:
        same = facts.wish.digest(script(config_map, source.key)) in ran
    except MissingKey:
        same = False
    return text if same else f"{text}; it was changed since, and is not run again"


def invalid(problems: list[str]) -> Condition:
    """Say what is wrong with the spec."""
    return Condition(CONDITION, "False", reasons.INVALID_SPEC, "; ".join(problems))


def recheck(decision: Decision[Attempt]) -> float | None:
    """Return the seconds until the next look, None when nothing is left to do."""
    match decision.verdict:
        case Met():
            return None
        case Act():
            return RUNS
        case Wait(reason=reasons.DEFERRED):
            return None
        case Wait(recheck=seconds):
            return WAITS if seconds is None else max(seconds, 1.0)
        case Stuck():
            return NEEDS_A_PERSON


def status(
    parent: Manifest, current: Condition | None, record: str | None, now: datetime
) -> Manifest:
    """Return the observed status with our field and our condition replaced, or without them."""
    before: Manifest = parent.get("status") or {}
    conditions = before.get("conditions") or []
    settled = settle(
        conditions, [current] if current else [], generation=manifests.generation(parent), now=now
    )
    others = [entry for entry in conditions if entry.get("type") != CONDITION]
    after = {key: value for key, value in before.items() if key not in (FIELD, "conditions")}
    if record is not None:
        after[FIELD] = record
    if others or settled:
        after["conditions"] = [*others, *settled]
    return after | {"observedGeneration": manifests.generation(parent)}


def state(current: Condition) -> str:
    """Return a condition as the text of an annotation."""
    return f"{current.reason}: {current.message}"


def told(parent: Manifest) -> Manifest:
    """Return the condition that the annotation was made of, empty when there is none."""
    reason, found, message = manifests.annotations(parent).get(STATE, "").partition(": ")
    if not found:
        return {}
    stands: Literal["True", "False", "Unknown"] = "False"
    if reason in (reasons.APPLIED, reasons.RECONCILING, reasons.DEFERRED):
        stands = "True" if reason == reasons.APPLIED else "Unknown"
    return {"type": CONDITION, "status": stands, "reason": reason, "message": message}
