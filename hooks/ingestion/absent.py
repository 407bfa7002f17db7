"""When is a DruidIngestion gone, and what is the next step towards it?

Nothing is submitted here. The deletion ends when Druid itself shows that nothing of it runs.
"""

from __future__ import annotations

from hooks.core.decision import Act, Decision, Gate, Met, Verdict, Wait, decide
from hooks.core.errors import EffectError
from hooks.ingestion.actions import Removal, ShutDown, Terminate, WritePolicy
from hooks.ingestion.model import LET_GO, STREAMING
from hooks.ingestion.past import seconds_since
from hooks.ingestion.reasons import CANNOT_REACH, STOPPING, Fault
from hooks.ingestion.record import Record
from hooks.ingestion.remains import Remains

ASK_AGAIN = 90.0
LOOK_AGAIN = 5.0

WAY_OUT = f'to delete it at once, whatever Druid runs, annotate it with {LET_GO}: "true"'


def reachable(remains: Remains) -> Verdict[Removal]:
    """The Router and the Secrets are there, or nobody waits for them any more."""
    if remains.abandoned:
        return Met()
    if isinstance(remains.access, Fault):
        return Wait(remains.access.reason, remains.access.message)
    if isinstance(remains.access, EffectError):
        return Wait.on(remains.access)
    return Met()


def ended(remains: Remains) -> Verdict[Removal]:
    """Druid shows that nothing of it runs."""
    if remains.abandoned or not remains.live:
        return Met()
    entry = remains.live[0]
    if remains.unread is not None:
        return Wait.on(remains.unread)
    if entry.state == "Submitting":
        message = f"{entry.id} was being submitted: waiting whether it arrives"
        return Wait(STOPPING, message, recheck=LOOK_AGAIN)
    recently = seconds_since(entry.stopping_at, remains.now) < ASK_AGAIN
    if entry.id in remains.asked or (entry.state == "Stopping" and recently):
        return Wait(STOPPING, f"waiting for {entry.id} to end", recheck=LOOK_AGAIN)
    return Act(_stop(entry), "", f"ending {entry.id}")


def _stop(entry: Record) -> Removal:
    return Terminate(entry.id) if entry.type in STREAMING else ShutDown(entry.id)


def policies_gone(remains: Remains) -> Verdict[Removal]:
    """Compaction and rules that were ours are taken away."""
    if remains.abandoned or remains.policy is None:
        return Met()
    policy = remains.policy
    return Act(WritePolicy(policy), "", f"removing {policy.kind} of {policy.datasource}")


ABSENT: tuple[Gate[Remains, Removal], ...] = (
    Gate("Reachable", reachable, "", CANNOT_REACH),
    Gate("Ended", ended, "", CANNOT_REACH),
    Gate("PoliciesGone", policies_gone, "", CANNOT_REACH),
)


def absent(remains: Remains) -> Decision[Removal]:
    """Judge what a DruidIngestion still needs to be gone."""
    return decide(ABSENT, remains)
