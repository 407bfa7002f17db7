"""Kubernetes status conditions: what they say, and when their time moves.

`lastTransitionTime` moves only when the status flips, and nothing else in a status is a time, so
two syncs that see the same world write the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from hooks.core.manifests import Manifest, timestamp

RECONCILING = "Reconciling"
READY = "Ready"

MIN_RECHECK = 2.0
HEALS_ITSELF = 60.0
"""Cap of the back-off for what ends without a person, in seconds."""
NEEDS_A_PERSON = 300.0
"""Cap of the back-off for what somebody must mend, in seconds."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, before it is set against the previous status.

    Attributes:
        type, status, reason, message: as in metav1.Condition.
        judged: this generation was judged; False for an older verdict that is carried on.
    """

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    judged: bool = True

    @property
    def conclusive(self) -> bool:
        """Say whether this generation was judged to its end."""
        return self.judged and self.status != "Unknown"

    def or_still(self, before: Manifest, reasons: frozenset[str]) -> Condition:
        """Return this, or the failure that stands while nothing has got better.

        Work in flight is Unknown. When the last verdict was a failure of the same gate, it
        stays: otherwise each retry would flip the status, and with it wake everybody.

        Args:
            before: the condition as it was written last.
            reasons: the failures that the gate which is worked on can have.
        """
        failing = before.get("status") == "False" and before.get("reason") in reasons
        if self.status != "Unknown" or not failing:
            return self
        return Condition(
            self.type, "False", str(before["reason"]), str(before.get("message")), judged=False
        )


def settle(
    previous: Sequence[Manifest],
    current: Iterable[Condition],
    *,
    generation: int,
    now: datetime,
) -> list[Manifest]:
    """Return the conditions to write, in the order of `current`.

    observedGeneration is the last generation that was judged to its end: an inconclusive
    condition carries the previous one on, and has none when there was none.
    """
    before = {str(entry.get("type")): entry for entry in previous}
    return [
        _settle_one(before.get(condition.type, {}), condition, generation, now)
        for condition in current
    ]


def _settle_one(before: Manifest, condition: Condition, generation: int, now: datetime) -> Manifest:
    moved = before.get("status") != condition.status or not before.get("lastTransitionTime")
    settled: Manifest = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": stamp(now) if moved else before["lastTransitionTime"],
    }
    observed = generation if condition.conclusive else before.get("observedGeneration")
    if observed is not None:
        settled["observedGeneration"] = observed
    return settled


def stamp(moment: datetime) -> str:
    """Write a time as Kubernetes does: UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def backoff(condition: Manifest, *, now: datetime, cap: float) -> float:
    """Return when to look again, in whole seconds: as long as the condition has lasted.

    The delay doubles by itself, needs no counter, and survives a restart.
    """
    since = timestamp(condition.get("lastTransitionTime")) or now
    lasted = int((now - since).total_seconds())
    return min(max(float(lasted), MIN_RECHECK), cap)
