"""From a decision to a status: the Ready condition, the phase, and when to look again.

For kinds that promise one condition, Ready, and show their progress as a phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal

from hooks.core.conditions import MIN_RECHECK, READY, RECONCILING, Condition, backoff, settle
from hooks.core.decision import A, Act, Decision, Met, Stuck, Wait
from hooks.core.manifests import Manifest, condition, generation


def ready(decision: Decision[A], before: Manifest, *, met: str) -> Condition:
    """Say in one Ready condition what the gates decided.

    Args:
        decision: of the last look.
        before: the Ready condition as it was written last.
        met: the message when every gate is met.
    """
    match decision.verdict:
        case Met():
            return Condition(READY, "True", READY, met)
        case Wait(reason="Reconciling", unread=True) if before:
            # Nothing was learnt, so nothing is said anew.
            return replace(_written(before), judged=False)
        case Act(message=message):
            current = Condition(READY, "Unknown", RECONCILING, message)
        case Wait(reason=reason, message=message) | Stuck(reason=reason, message=message):
            in_flight = reason == RECONCILING
            current = Condition(READY, "Unknown" if in_flight else "False", reason, message)
    return current.or_still(before, decision.reasons)


def _written(before: Manifest) -> Condition:
    status: Literal["True", "False", "Unknown"] = "Unknown"
    if before.get("status") in ("True", "False"):
        status = before["status"]
    return Condition(READY, status, str(before.get("reason")), str(before.get("message")))


def unread(decision: Decision[A]) -> bool:
    """Say whether the facts could not be read, so that nothing is known to have changed."""
    return isinstance(decision.verdict, Wait) and decision.verdict.unread


def phase(decision: Decision[A], previous: object, phases: Sequence[str]) -> str:
    """Return the phase: it stays while facts are unread, and falls on what was seen."""
    reached = decision.phase or phases[0]
    if unread(decision) and isinstance(previous, str) and previous in phases:
        return max(reached, previous, key=phases.index)
    return reached


def recheck(decision: Decision[A], status: Manifest, now: datetime) -> float:
    """Return the seconds until a Ready that is not True is looked at again."""
    verdict = decision.verdict
    if isinstance(verdict, Act):
        return MIN_RECHECK
    if isinstance(verdict, Wait) and verdict.recheck is not None:
        return verdict.recheck
    return backoff(condition({"status": status}, READY), now=now, cap=decision.cap)


def write(fields: Manifest, current: Condition, parent: Manifest, now: datetime) -> Manifest:
    """Return the whole status: these fields over the previous ones, and the condition.

    Metacontroller writes observedGeneration itself; it is answered too, so that the status that
    is written is the status that was answered.
    """
    before = parent.get("status") or {}
    conditions = settle(
        before.get("conditions") or (), [current], generation=generation(parent), now=now
    )
    return {
        **before,
        **fields,
        "observedGeneration": generation(parent),
        "conditions": conditions,
    }
