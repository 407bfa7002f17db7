"""When is a DruidIngestion Ready, and what is the next write towards it?

PRESENT is the whole answer, in order. Each gate belongs to a condition: Accepted, Submitted or
Ready. Each relies on those before it being met. A write that fails has the error's own reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from hooks.core.decision import Act, Decision, Gate, Met, Stuck, Verdict, Wait, decide
from hooks.core.errors import EffectError
from hooks.ingestion import planning, streams
from hooks.ingestion.actions import Action, PutBack, ShutDown, Submit, Terminate, WritePolicy
from hooks.ingestion.batches import ended
from hooks.ingestion.facts import Facts, immutable_changed
from hooks.ingestion.past import LATE_SECONDS, seconds_since
from hooks.ingestion.reasons import (
    CANNOT_REACH,
    COMPACTION_REJECTED,
    DRIFTED,
    HADOOP_DISABLED,
    HADOOP_REMOVED,
    ID_CONFLICT,
    IMMUTABLE_FIELD,
    OTHER_CONTROLLER,
    ROUTER_NOT_FOUND,
    RULES_REJECTED,
    SECRET_KEY_MISSING,
    SECRET_NOT_ALLOWED,
    SECRET_NOT_FOUND,
    STOPPING,
    STREAM_CHANGE_NOT_ALLOWED,
    SUBMISSION_REJECTED,
    SUBMITTING,
    SUPERVISOR_LOST,
    SUPERVISOR_UNHEALTHY,
    SUSPENDED,
    TASK_FAILED,
    TASK_LOST,
    Fault,
)
from hooks.ingestion.record import Record
from hooks.ingestion.refusals import refusal

SOON = 1.0
"""Seconds: the status only has to be written."""
MOVING = 10.0
"""Seconds between two looks at what is moving in Druid."""
ASK_AGAIN = 90.0
"""Seconds after which Druid is asked once more to end something; it may take that long."""


def not_taken(facts: Facts) -> Verdict[Action]:
    """No other controller serves this object."""
    if not facts.spec.taken_by_other:
        return Met()
    return Stuck(
        OTHER_CONTROLLER,
        "druid-operator's own controller has its finalizer in this object: stop that controller,"
        ' then take the object over with annotation druid.apache.org/take-over: "true"',
    )


def unchanged(facts: Facts) -> Verdict[Action]:
    """What may not change after a submission did not."""
    field = immutable_changed(facts)
    if not field:
        return Met()
    return Stuck(
        IMMUTABLE_FIELD,
        f"{field}: it cannot change once something was submitted: restore the value before, or"
        " create another DruidIngestion",
    )


def reachable(facts: Facts) -> Verdict[Action]:
    """The Router's Service and all Secrets are there."""
    if isinstance(facts.access, Fault):
        return Wait(facts.access.reason, facts.access.message)
    if isinstance(facts.access, EffectError):
        return Wait.on(facts.access)
    return Met()


def id_free(facts: Facts) -> Verdict[Action]:
    """The id is nobody else's, and was not used for other content."""
    own = planning.reused_id(facts.history, facts.spec)
    if own:
        return Stuck(ID_CONFLICT, planning.taken(own))
    if facts.stranger:
        return Stuck(ID_CONFLICT, facts.stranger)
    if facts.nothing_to_adopt:
        return Stuck(
            TASK_LOST,
            f"Druid knows no task {facts.nothing_to_adopt!r} to adopt: correct or remove annotation"
            " druid.apache.org/adopt-id",
        )
    return Met()


def earlier_stopped(facts: Facts) -> Verdict[Action]:
    """What ran with other content has ended, so that never two run at once."""
    if facts.holds_back and facts.current is None:
        return _held_back(facts)
    for record in facts.obsolete:
        return _stop(record, facts)
    return Met()


def _held_back(facts: Facts) -> Wait:
    running = facts.obsolete
    left = f"; task {running[0].id} of before runs on" if running else ""
    return Wait(SUSPENDED, f"spec.suspend is true, so nothing is submitted{left}")


def _stop(record: Record, facts: Facts) -> Verdict[Action]:
    kind = "supervisor" if facts.spec.ingestion.streaming else "task"
    age = seconds_since(record.submitted_at, facts.now)
    if record.state == "Submitting" and facts.unread is None and age < LATE_SECONDS:
        return Wait(
            STOPPING,
            f"{kind} {record.id} of before was being submitted: waiting whether it arrives",
            recheck=MOVING,
        )
    if facts.unread is not None:
        return Wait.on(facts.unread, subject=f"{kind} {record.id} of before")
    if record.id in facts.asked or (
        record.state == "Stopping" and seconds_since(record.stopping_at, facts.now) < ASK_AGAIN
    ):
        return Wait(STOPPING, f"waiting for {kind} {record.id} of before to end", recheck=5.0)
    stop = Terminate(record.id) if facts.spec.ingestion.streaming else ShutDown(record.id)
    return Act(stop, "", f"ending {kind} {record.id} of before")


def planned(facts: Facts) -> Verdict[Action]:
    """The submission is written down."""
    entry = facts.current
    if entry is None and facts.unread is not None:
        return Wait.on(facts.unread)
    if facts.fresh:
        return Wait(SUBMITTING, "written down; it is submitted next", recheck=SOON)
    return Met()


def submitted(facts: Facts) -> Verdict[Action]:
    """Druid has taken the specification."""
    entry = _entry(facts)
    if entry.state == "Submitting":
        return _submit(entry, facts)
    if entry.state != "Rejected":
        return Met()
    older = facts.before
    if older is None:
        return refusal(entry, facts)
    if planning.destroyed(older, facts.history) and older.id not in facts.put_back:
        return Act(PutBack(older.id), "", f"putting supervisor {older.id} back")
    change = streams.suspension(older, facts)
    return change if isinstance(change, Act) else refusal(entry, facts)


def _entry(facts: Facts) -> Record:
    entry = facts.current
    assert entry is not None  # noqa: S101  behind the gate planned
    return entry


def _submit(entry: Record, facts: Facts) -> Verdict[Action]:
    if facts.unread is not None:
        return Wait.on(facts.unread)
    if facts.holds_back:
        return _held_back(facts)
    return Act(Submit(entry.id), "", f"submitting {entry.id}")


def policies_written(facts: Facts) -> Verdict[Action]:
    """Compaction and rules are in Druid, or it refused them."""
    if facts.policy is None:
        return Met()
    policy = facts.policy
    what = "writing" if policy.hash else "removing"
    return Act(WritePolicy(policy), "", f"{what} {policy.kind} of {policy.datasource}")


def running_well(facts: Facts) -> Verdict[Action]:
    """A batch succeeded; a supervisor is as asked, and healthy."""
    entry = _entry(facts)
    if facts.unread is not None:
        return Wait.on(facts.unread)
    return streams.judge(entry, facts) if facts.spec.ingestion.streaming else ended(entry, facts)


def policies_taken(facts: Facts) -> Verdict[Action]:
    """Druid refused neither compaction nor rules."""
    applied = facts.applied
    if not applied.refused:
        return Met()
    rules = applied.refused.startswith("rules")
    reason = RULES_REJECTED if rules else COMPACTION_REJECTED
    return Stuck(reason, f"Druid refused {applied.error}")


@dataclass(frozen=True, slots=True)
class Belonging:
    """Which condition a gate belongs to."""

    condition: str
    gate: Gate[Facts, Action]


_ACCESS = frozenset({ROUTER_NOT_FOUND, SECRET_NOT_FOUND, SECRET_KEY_MISSING, SECRET_NOT_ALLOWED})
_REFUSED = frozenset({SUBMISSION_REJECTED, STREAM_CHANGE_NOT_ALLOWED, HADOOP_REMOVED})
_RUN = frozenset({TASK_FAILED, TASK_LOST, HADOOP_REMOVED, HADOOP_DISABLED})
_STREAM = frozenset({SUPERVISOR_LOST, SUPERVISOR_UNHEALTHY, DRIFTED})
_POLICY = frozenset({COMPACTION_REJECTED, RULES_REJECTED})

_GATES: tuple[Belonging, ...] = (
    Belonging("Accepted", Gate("NotTaken", not_taken, "", frozenset({OTHER_CONTROLLER}))),
    Belonging("Accepted", Gate("Unchanged", unchanged, "", frozenset({IMMUTABLE_FIELD}))),
    Belonging("Accepted", Gate("Reachable", reachable, "", _ACCESS | CANNOT_REACH)),
    Belonging("Submitted", Gate("IdFree", id_free, "", frozenset({ID_CONFLICT, TASK_LOST}))),
    Belonging("Submitted", Gate("EarlierStopped", earlier_stopped, "", CANNOT_REACH)),
    Belonging("Submitted", Gate("Planned", planned, "", CANNOT_REACH)),
    Belonging(
        "Submitted",
        Gate("Submitted", submitted, "", CANNOT_REACH | _REFUSED | frozenset({SUPERVISOR_LOST})),
    ),
    Belonging("Ready", Gate("PoliciesWritten", policies_written, "", CANNOT_REACH | _POLICY)),
    Belonging("Ready", Gate("RunningWell", running_well, "", CANNOT_REACH | _RUN | _STREAM)),
    Belonging("Ready", Gate("PoliciesTaken", policies_taken, "", _POLICY)),
)

PRESENT: tuple[Gate[Facts, Action], ...] = tuple(belonging.gate for belonging in _GATES)
CONDITION = {belonging.gate.name: belonging.condition for belonging in _GATES}
"""The condition of each gate, by name."""


def present(facts: Facts) -> Decision[Action]:
    """Judge what a live DruidIngestion needs."""
    return decide(PRESENT, facts)
