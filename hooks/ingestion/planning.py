"""Which submission is next? Its id follows from the content and from how often that ran.

A, B and A again are three runs. A status that was lost, or is older than what was done since, is
no reason to run anything twice: what Druid knows under an id that only we compute is adopted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from hooks.core import manifests
from hooks.effects.ports.druid import Task
from hooks.ingestion import hadoop, tasks
from hooks.ingestion.looking import View
from hooks.ingestion.model import Spec
from hooks.ingestion.past import seconds_since
from hooks.ingestion.record import MAX_HISTORY, RAN, Record, State, last_attempt
from hooks.ingestion.submission import derived_id

LONGEST_BACKOFF = 3600.0

_OVER: frozenset[State] = frozenset({"Stopping", "Stopped", "Superseded", "Replaced"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be followed next.

    Attributes:
        record: written down now; None when there is an obstacle.
        fresh: it is not in Druid yet.
        stranger: why its id cannot be used.
        nothing_to_adopt: the id of the annotation, when Druid does not know it.
    """

    record: Record | None
    fresh: bool = False
    stranger: str = ""
    nothing_to_adopt: str = ""


def current(history: Sequence[Record], spec: Spec) -> Record | None:
    """Return the submission of what is wanted now; None when there must be another."""
    newest = next(_that_count(history, spec), None)
    if newest is None or newest.spec_hash != spec.ingestion.hash or newest.state in _OVER:
        return None
    return None if destroyed(newest, history) else newest


def _that_count(history: Sequence[Record], spec: Spec) -> Iterator[Record]:
    """Yield the submissions, without other content that never ran.

    To undo an edit that Druid refused is to want what ran before it, and no new run.
    """
    for record in history:
        ran = record.state not in ("Rejected", "Superseded")
        if ran or record.spec_hash == spec.ingestion.hash:
            yield record


def destroyed(record: Record, history: Sequence[Record]) -> bool:
    """Say whether Druid lost this supervisor in an update of ours that it refused.

    One that somebody terminated was not lost at the moment of a refusal.
    """
    return record.state == "Lost" and any(
        other.state == "Rejected" and (other.id, other.ended_at) == (record.id, record.ended_at)
        for other in history
    )


def target_id(history: Sequence[Record], spec: Spec) -> str:
    """Return the id of the supervisor that is wanted, in the words of this Druid."""
    wanted = derived_id(spec, 1)
    answered = (record.id for record in history if record.requested_id == wanted)
    return next(answered, wanted)


def same_supervisor(one: Record, id_: str, spec: Spec) -> bool:
    """Say whether a record's supervisor is the one that is wanted, maybe with other content."""
    return one.id == id_ and one.datasource in ("", spec.ingestion.datasource)


def obsolete(history: Sequence[Record], spec: Spec) -> tuple[Record, ...]:
    """Return what may be running in Druid and must end before anything else begins."""
    wanted = current(history, spec)
    others = [record for record in history if record.live and record is not wanted]
    if spec.ingestion.streaming:
        id_ = target_id(history, spec)
        others = [
            record
            for record in others
            if record.state == "Stopping" or not same_supervisor(record, id_, spec)
        ]
    return tuple(others)


def before(history: Sequence[Record], entry: Record, spec: Spec) -> Record | None:
    """Return what ran from us as the same supervisor until this submission."""
    return next(
        (
            record
            for record in history
            if record is not entry
            and record.state in ("Running", "Lost")
            and same_supervisor(record, entry.id, spec)
        ),
        None,
    )


def reused_id(history: Sequence[Record], spec: Spec) -> str:
    """Return the user's own task id that ran with other content already; empty for none."""
    own, ingestion = spec.ingestion.own_id, spec.ingestion
    if ingestion.streaming or current(history, spec) is not None:
        return ""
    used = any(record.id == own and record.state in RAN for record in history)
    return own if own and used else ""


def failed_runs(history: Sequence[Record], spec: Spec) -> int:
    """Return how often this content failed in a row."""
    failed = 0
    for record in _that_count(history, spec):
        if record.spec_hash != spec.ingestion.hash or record.state not in ("Failed", "Lost"):
            break
        failed += 1
    # A history that is full of failures has forgotten some; the number of the run has not.
    return failed if failed < MAX_HISTORY else history[0].attempt


def retry_in(history: Sequence[Record], spec: Spec, now: datetime) -> float | None:
    """Return the seconds until a failed run is repeated; None when it is not."""
    failures, last = failed_runs(history, spec), current(history, spec)
    ingestion = spec.ingestion
    if last is None or ingestion.streaming or ingestion.own_id or hadoop.refusal(last.error):
        return None
    if not 0 < failures <= spec.max_retries:
        return None
    pause = min(spec.backoff_seconds * 2.0 ** (failures - 1), LONGEST_BACKOFF)
    return max(0.0, pause - seconds_since(last.ended_at, now))


def plan(history: Sequence[Record], spec: Spec, view: View) -> Plan:
    """Choose the next submission.

    Raises:
        EffectError: Druid did not say which ids it knows.
    """
    if spec.ingestion.streaming:
        attempt = last_attempt(history, spec.ingestion.hash) + 1
        id_ = target_id(history, spec)
        requested = derived_id(spec, attempt)
        planned = _record(spec, attempt, id_, view)
        kept = requested if requested != id_ else ""
        return Plan(replace(planned, requested_id=kept), fresh=True)
    found = _own(spec, view) if spec.ingestion.own_id else _next(history, spec, view)
    unknown = spec.adopt_id and all(record.id != spec.adopt_id for record in history)
    if unknown and (found.fresh or found.stranger):
        return _adopted(history, spec, view)
    return found


def _record(spec: Spec, attempt: int, id_: str, view: View) -> Record:
    return Record(
        id=id_,
        attempt=attempt,
        spec_hash=spec.ingestion.hash,
        state="Submitting",
        type=spec.ingestion.type,
        cluster=spec.connection.cluster,
        datasource=spec.ingestion.datasource,
        submitted_at=view.now,
    )


def _adopted(history: Sequence[Record], spec: Spec, view: View) -> Plan:
    """Take over the task that the annotation names."""
    task = view.cluster.task(spec.adopt_id)
    if task is None:
        return Plan(None, nothing_to_adopt=spec.adopt_id)
    attempt = last_attempt(history, spec.ingestion.hash) + 1
    entry = replace(_record(spec, attempt, spec.adopt_id, view), adopted=True)
    return Plan(tasks.judged(entry, task, view))


def _own(spec: Spec, view: View) -> Plan:
    """Use the user's id, unless somebody else has it, or we had for other content."""
    entry = _record(spec, 1, spec.ingestion.own_id, view)
    task = view.cluster.task(entry.id)
    if task is None:
        return Plan(entry, fresh=True)
    if tasks.is_ours(entry, view):
        return Plan(tasks.judged(entry, task, view))
    return Plan(None, stranger=taken(entry.id))


def taken(id_: str) -> str:
    """Explain that Druid has a task of this id."""
    return (
        f"Druid has a task {id_!r} already, and it is not this content of this DruidIngestion:"
        " change the id in the specification, or adopt the task with annotation"
        f" druid.apache.org/adopt-id: {id_}"
    )


def _next(history: Sequence[Record], spec: Spec, view: View) -> Plan:
    """Use the next number that Druid does not know; the last one that it knows is adopted.

    Only a history that is full may have forgotten a run. Then a task proves nothing, unless it is
    younger than the oldest submission that is remembered: the status is older than the task.
    """
    known = last_attempt(history, spec.ingestion.hash)
    complete = known > 0 or len(history) < MAX_HISTORY
    last: tuple[Record, Task] | None = None
    for attempt in count(known + 1):
        entry = _record(spec, attempt, derived_id(spec, attempt), view)
        task = view.cluster.task(entry.id)
        if task is None:
            break
        if complete or _younger(task, history[-1]):
            last = entry, task
    return Plan(tasks.judged(*last, view)) if last else Plan(entry, fresh=True)


def _younger(task: Task, oldest: Record) -> bool:
    created, submitted = map(manifests.timestamp, (task.created, oldest.submitted_at))
    return created is not None and submitted is not None and created > submitted
