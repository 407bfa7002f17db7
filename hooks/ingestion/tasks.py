"""What has become of a batch task? The end that was seen once is kept; Druid may forget it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hooks.core.errors import EffectError, OutOfTime
from hooks.effects.ports.druid import Answer, Report, Task
from hooks.ingestion import identity, marker
from hooks.ingestion.looking import View, named, refused, rejected
from hooks.ingestion.record import Record

SHUT_DOWN = "Shutdown request from user"
"""How Druid says why a task that was shut down failed."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What one look told.

    Attributes:
        task: as Druid shows it; None when Druid does not know it.
        stranger: there is a task of this id that is not ours.
    """

    record: Record
    task: Task | None = None
    stranger: bool = False


def follow(entry: Record, view: View) -> Followed:
    """Look at a task. Of an id that the user chose, somebody else may have the task.

    Raises:
        EffectError: Druid did not say.
    """
    answer = view.answer(entry)
    entry = named(entry, answer)
    task = view.cluster.task(entry.id)
    if task is None:
        return Followed(_absent(entry, answer, view))
    accepted = entry.state != "Submitting" or (answer is not None and answer.accepted)
    if not accepted and not is_ours(entry, view):
        return Followed(entry, task, stranger=True)
    return Followed(judged(entry, task, view), task)


def unwanted(entry: Record, view: View) -> Record:
    """Look at a task that must end; a stranger's of the same id was never ours to end.

    Raises:
        EffectError: Druid did not say.
    """
    followed = follow(entry, view)
    if followed.stranger:
        return replace(entry, state="Superseded", ended_at=view.now)
    ended, task = followed.record, followed.task
    if ended.state == "Failed" and task is not None and task.error.startswith(SHUT_DOWN):
        return replace(ended, state="Stopped", error="")  # by us, in a call that was cut off
    return ended


def is_ours(entry: Record, view: View) -> bool:
    """Say whether a task of this id is ours: by the id, or by the mark in Druid's copy."""
    if identity.proves(entry.id, view.uid, entry.spec_hash, entry.attempt):
        return True
    payload = view.cluster.payload(entry.id)
    mark = None if payload is None else marker.of_task(payload)
    return mark == marker.Marker(view.uid, entry.spec_hash)


def _absent(entry: Record, answer: Answer | None, view: View) -> Record:
    """Judge a task that Druid does not know."""
    if entry.state == "Stopping":
        return replace(entry, state="Stopped", ended_at=view.now)
    if entry.state == "Running":
        return replace(entry, state="Lost", ended_at=view.now)
    if answer is not None and answer.accepted:
        return replace(entry, state="Running")
    if answer is not None and refused(answer):
        return rejected(entry, answer, view)
    return entry


def judged(entry: Record, task: Task, view: View) -> Record:
    """Judge a task that Druid knows, and that is ours."""
    stopping = entry.state == "Stopping" or entry.id in view.world.asked
    entry = replace(entry, error="", rejected_with="")
    if task.state == "RUNNING":
        if not stopping:
            return replace(entry, state="Running")
        asked = view.now if entry.id in view.world.asked else entry.stopping_at
        return replace(entry, state="Stopping", stopping_at=asked)
    if task.state == "FAILED" and stopping:
        return replace(entry, state="Stopped", ended_at=view.now)
    report = _report(entry, view)
    if isinstance(report, OutOfTime):
        return replace(entry, state="Running")
    entry = replace(entry, ended_at=view.now, rows=report.rows if report else None)
    if task.state == "SUCCESS":
        return replace(entry, state="Succeeded")
    return replace(entry, state="Failed", error=view.shown(_error(task, report)))


def _report(entry: Record, view: View) -> Report | OutOfTime | None:
    """Read the report; one that cannot be had is none, for it may never be."""
    try:
        return view.cluster.report(entry.id)
    except OutOfTime as error:
        return error
    except EffectError:
        return None


def _error(task: Task, report: Report | None) -> str:
    if report is None or not (report.error or report.parse_errors):
        return task.error or "Druid says nothing of why"
    return "\n".join([report.error or task.error, *report.parse_errors]).strip()
