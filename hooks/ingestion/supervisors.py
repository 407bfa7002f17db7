"""What has become of a supervisor? Its mark says whose it is and what it runs."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hooks.core.errors import EffectError, OutOfTime, attempt
from hooks.effects.ports.druid import Supervisor
from hooks.ingestion import drift, marker
from hooks.ingestion.looking import View, named, refused, rejected
from hooks.ingestion.model import Spec
from hooks.ingestion.past import Past
from hooks.ingestion.record import Record, State

SPEC_PERIOD = 10
"""Minutes: in one of so many, a steady supervisor's specification is read, and not its state."""

HONOURS_IDS = 34
"""The first release that gives a supervisor the id that its specification names."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What one look told.

    Attributes:
        supervisor: its state; None when that was not read, or there is none.
        stranger: why the id is not ours to use; empty when it is.
        drift: what somebody else changed; empty for nothing.
        missing: there is no supervisor of this id.
        refused: Druid refused to change it back in this request.
    """

    record: Record
    supervisor: Supervisor | None = None
    stranger: str = ""
    drift: str = ""
    missing: bool = False
    refused: bool = False


def confirm(entry: Record, before: Record | None, spec: Spec, view: View) -> Watched:
    """Look whether a submission arrived.

    Args:
        entry: its record, of which nobody knows whether Druid has it.
        before: what ran under this id from us until now.
        spec: what is wanted.
        view: how to look.

    Raises:
        EffectError: Druid did not say.
    """
    answer = view.answer(entry)
    entry = named(entry, answer)
    copy = view.cluster.supervisor_spec(entry.id)
    mark = None if copy is None else marker.of_supervisor(copy)
    if copy is not None and mark == marker.Marker(view.uid, entry.spec_hash):
        return _confirmed(entry, copy, spec, view)
    if answer is not None and refused(answer):
        return Watched(rejected(entry, answer, view), missing=copy is None)
    if copy is None:
        return Watched(entry, stranger=_shadowed(entry, before, spec, view), missing=True)
    approved = before is not None or spec.adopt_id == entry.id
    ours = mark.uid == view.uid if mark is not None else approved
    if ours or spec.adopt_id == entry.id:
        return Watched(entry)
    return Watched(entry, stranger=_taken(entry.id))


def _taken(id_: str) -> str:
    return (
        f"there is a supervisor {id_!r} already, and it is not of this DruidIngestion: give the"
        " specification another id or dataSource, terminate that one, or adopt it with annotation"
        f" druid.apache.org/adopt-id: {id_}"
    )


def _confirmed(entry: Record, copy: Mapping[str, object], spec: Spec, view: View) -> Watched:
    entry = replace(
        entry,
        state="Running",
        error="",
        ended_at="",
        rejected_with="",
        copy_hash=drift.copy_hash(copy, spec.ingestion.document),
        suspended=copy.get("suspended") is True,
    )
    return Watched(entry, view.cluster.supervisor(entry.id))


def _shadowed(entry: Record, before: Record | None, spec: Spec, view: View) -> str:
    """Say whose supervisor a Druid that ignores ids would replace; empty for nobody's."""
    datasource = spec.ingestion.datasource
    if before is not None or entry.id == datasource or _honours_ids(view):
        return ""
    copy = view.cluster.supervisor_spec(datasource)
    mark = None if copy is None else marker.of_supervisor(copy)
    if copy is None or (mark is not None and mark.uid == view.uid):
        return ""
    return f"this Druid ignores the id {entry.id!r}, and {_taken(datasource)}"


def _honours_ids(view: View) -> bool:
    version = attempt(view.cluster.version)
    if isinstance(version, OutOfTime):
        raise version
    major = "" if isinstance(version, EffectError) else version.partition(".")[0]
    return major.isdigit() and int(major) >= HONOURS_IDS


def watch(entry: Record, past: Past, spec: Spec, view: View) -> Watched:
    """Look at a supervisor that Druid took, in one call while it is steady.

    Raises:
        EffectError: Druid did not say.
    """
    if past.steady and entry.state == "Running" and _spec_is_due(view):
        return _compared(entry, None, past, spec, view)
    supervisor = view.cluster.supervisor(entry.id)
    if supervisor is None:
        answer = view.answer(entry)
        if answer is not None and refused(answer):
            return Watched(rejected(entry, answer, view), missing=True)
        return Watched(lost(entry, view), missing=True)
    # Its state does not show who edited it, nor whose it is now: what is not steady is read whole,
    # and what is to be suspended or resumed.
    if not past.steady or supervisor.suspended != spec.suspend:
        return _compared(entry, supervisor, past, spec, view)
    return Watched(_as_asked(entry, spec, suspended=supervisor.suspended), supervisor)


def _spec_is_due(view: View) -> bool:
    """Say whether this is the minute for it; the UID spreads them over the round."""
    minute = int(view.world.now.timestamp() // 60)
    return (minute + zlib.crc32(view.uid.encode())) % SPEC_PERIOD == 0


def _compared(
    entry: Record, supervisor: Supervisor | None, past: Past, spec: Spec, view: View
) -> Watched:
    copy = view.cluster.supervisor_spec(entry.id)
    if copy is None:
        return Watched(lost(entry, view), missing=True)
    mark, answer = marker.of_supervisor(copy), view.answer(entry)
    if mark is not None and mark.uid != view.uid:
        return _foreign(entry, supervisor, spec)
    if mark is not None and _came_late(mark, entry, past):
        return Watched(replace(entry, state="Submitting"), supervisor)
    if answer is not None and answer.accepted and mark == marker.Marker(view.uid, entry.spec_hash):
        taken_over = entry.adopted or spec.adopt_id == entry.id
        return _confirmed(replace(entry, adopted=taken_over), copy, spec, view)
    changed = drift.found(copy, entry, spec.ingestion.document)
    refusal = changed and answer is not None and refused(answer)
    if answer is not None and refusal:
        changed += f", and Druid refuses to change it back: {view.shown(answer.text)}"
    suspended = copy.get("suspended") is True
    if supervisor is None and (changed or suspended != entry.suspended):
        supervisor = view.cluster.supervisor(entry.id)
    if not changed and not entry.copy_hash:
        entry = replace(entry, copy_hash=drift.copy_hash(copy, spec.ingestion.document))
    entry = _as_asked(replace(entry, state="Running", ended_at=""), spec, suspended=suspended)
    return Watched(entry, supervisor, drift=changed, refused=bool(refusal))


def _foreign(entry: Record, supervisor: Supervisor | None, spec: Spec) -> Watched:
    """Judge a supervisor that another DruidIngestion took over, or had under an earlier UID.

    It is taken back by annotation, and only once: two that both have it would never rest.
    """
    if spec.adopt_id == entry.id and not entry.adopted:
        return Watched(replace(entry, state="Submitting", adopted=True), supervisor)
    return Watched(replace(entry, state="Running"), supervisor, stranger=_taken(entry.id))


def _came_late(mark: marker.Marker, entry: Record, past: Past) -> bool:
    """Say whether an earlier submission of ours, which got no answer, arrived after this one."""
    return mark.spec_hash != entry.spec_hash and any(
        record.spec_hash == mark.spec_hash and not record.copy_hash for record in past.history
    )


def watch_older(older: Record, spec: Spec, view: View) -> Watched:
    """Look at what runs on, since what was to follow it was refused.

    Raises:
        EffectError: Druid did not say.
    """
    supervisor = view.cluster.supervisor(older.id)
    if supervisor is None:
        return Watched(lost(older, view), missing=True)
    if older.state == "Lost" or supervisor.suspended != spec.suspend:
        copy = view.cluster.supervisor_spec(older.id)
        if copy is None:
            return Watched(lost(older, view), missing=True)
        if not _is_ours(copy, older, view):
            return Watched(replace(older, state="Replaced", ended_at=view.now), supervisor)
        older = replace(older, state="Running", ended_at="")
    return Watched(_as_asked(older, spec, suspended=supervisor.suspended), supervisor)


def _is_ours(copy: Mapping[str, object], entry: Record, view: View) -> bool:
    mark = marker.of_supervisor(copy)
    return entry.adopted if mark is None else mark.uid == view.uid


def lost(entry: Record, view: View) -> Record:
    """Return the record of a supervisor that somebody took away."""
    ended_at = entry.ended_at or view.now
    return replace(entry, state="Lost", ended_at=ended_at)


def _as_asked(entry: Record, spec: Spec, *, suspended: bool) -> Record:
    """Remember a suspension that was asked for and is seen; somebody else's is none of ours."""
    return replace(entry, suspended=suspended) if suspended == spec.suspend else entry


def ending(entry: Record, view: View) -> Watched:
    """Look at a supervisor that must go.

    Raises:
        EffectError: Druid did not say.
    """
    copy = view.cluster.supervisor_spec(entry.id)
    if copy is None:
        gone = entry.state != "Submitting" or entry.id in view.world.asked
        ended = replace(entry, state="Stopped", ended_at=view.now) if gone else entry
        return Watched(ended, missing=True)
    if not _is_ours(copy, entry, view):
        state: State = "Superseded" if entry.state == "Submitting" else "Replaced"
        return Watched(replace(entry, state=state, ended_at=view.now))
    if entry.id in view.world.asked:
        return Watched(replace(entry, state="Stopping", stopping_at=view.now))
    return Watched(replace(entry, state="Running") if entry.state == "Submitting" else entry)
