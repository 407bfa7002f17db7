"""What may still run in Druid of a DruidIngestion that is being deleted.

Nothing here needs a valid spec: ids come from the history, and from the spec only when the status
was lost. What is not proved to be ours is nobody's business here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from hooks.core import manifests
from hooks.core.errors import EffectError, attempt
from hooks.core.manifests import Manifest
from hooks.effects.ports import Resource
from hooks.ingestion import policies, record, supervisors, tasks
from hooks.ingestion.access import Access
from hooks.ingestion.looking import View
from hooks.ingestion.model import STREAMING, TYPES, Invalid, Spec, taken_by_other
from hooks.ingestion.parsing import parse
from hooks.ingestion.past import LATE_SECONDS, legacy, seconds_since
from hooks.ingestion.policies import Applied, Policy
from hooks.ingestion.reasons import INVALID_SPEC, Fault
from hooks.ingestion.record import Record, with_change
from hooks.ingestion.shape import connection
from hooks.ingestion.submission import derived_id
from hooks.ingestion.world import World

NAMESPACES = Resource("", "v1", "namespaces")

GIVE_UP_SECONDS = 600.0
"""How long a deletion waits for a Router or a Secret that is gone."""


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left.

    Attributes:
        uid: of the DruidIngestion.
        history: of what may run; the deletion ends when nothing of it is live.
        deleted_at: deletionTimestamp.
        access: None: nobody had to be asked.
        unread: what Druid did not say.
        asked: what Druid was asked to end in this request.
        policy: the next removal of compaction or rules.
        abandoned: the way to the cluster is gone, and nobody waits for it any more.
    """

    uid: str
    history: tuple[Record, ...]
    deleted_at: str
    now: datetime
    applied: Applied = field(default_factory=Applied)
    access: Access | Fault | EffectError | None = None
    unread: EffectError | None = None
    asked: frozenset[str] = frozenset()
    policy: Policy | None = None
    abandoned: bool = False

    @property
    def live(self) -> tuple[Record, ...]:
        """Return what may run: a supervisor that was lost can come back from Druid's database."""
        return tuple(
            entry
            for entry in self.history
            if entry.live or (entry.state == "Lost" and entry.type in STREAMING)
        )

    def changed(self, old: Record, new: Record) -> Remains:
        """Return this with one record changed."""
        return replace(self, history=with_change(self.history, old, new))


def begin(parent: Manifest, now: datetime) -> Remains:
    """Return what the parent itself says, before anything was asked."""
    status = parent.get("status") or {}
    history = record.read(status)
    if "history" not in status and not taken_by_other(parent):
        history = _unrecorded(parent, status)
    return Remains(
        uid=manifests.uid(parent),
        history=history,
        deleted_at=str(manifests.metadata(parent).get("deletionTimestamp") or ""),
        now=now,
        applied=Applied.of(status.get("applied")),
    )


def _unrecorded(parent: Manifest, status: Manifest) -> tuple[Record, ...]:
    """Return what there may be although no history says so: it was lost, or is another's.

    Where there is a history, and be it empty, it is the truth.
    """
    spec = parse(parent)
    if isinstance(spec, Invalid):
        return _by_task_id(parent, status)
    found = legacy(status, spec)
    return found or (_first(spec),)


def _by_task_id(parent: Manifest, status: Manifest) -> tuple[Record, ...]:
    id_ = status.get("taskId")
    if not isinstance(id_, str) or not id_:
        return ()
    spec = parent.get("spec") or {}
    kind = TYPES.get(str((spec.get("ingestion") or {}).get("type")), "native-batch")
    return (Record(id_, 0, "", "Running", kind, "", adopted=True),)


def _first(spec: Spec) -> Record:
    return Record(
        id=derived_id(spec, 1),
        attempt=1,
        spec_hash=spec.ingestion.hash,
        state="Submitting",
        type=spec.ingestion.type,
        cluster=spec.connection.cluster,
        datasource=spec.ingestion.datasource,
    )


def gather(remains: Remains, parent: Manifest, world: World) -> Remains:
    """Look at what is left, live."""
    if not remains.live and policies.removal(remains.applied) is None:
        return remains
    way = attempt(lambda: _access(remains, parent, world))
    remains = replace(remains, access=way, asked=frozenset(world.asked))
    if not isinstance(way, Access):
        gone = isinstance(way, Fault) and _nobody_waits(remains, parent, world)
        return replace(remains, abandoned=gone)
    spec = parse(parent)
    document = spec.ingestion.document if isinstance(spec, Spec) else None
    view = View(remains.uid, world.cluster(way), world, document)
    return _looked(remains, view)


def _access(remains: Remains, parent: Manifest, world: World) -> Access | Fault:
    """Find the way to the cluster that has them, which spec may not name any more."""
    way = connection(parent)
    if way is None:
        return Fault(INVALID_SPEC, "spec does not say which cluster it is: correct spec")
    cluster = next((entry.cluster for entry in remains.live if entry.cluster), way.cluster)
    return world.access(replace(way, cluster=cluster))


def _nobody_waits(remains: Remains, parent: Manifest, world: World) -> bool:
    """Say whether the way to Druid is not coming back: its namespace goes, or time has passed."""
    if seconds_since(remains.deleted_at, remains.now) >= GIVE_UP_SECONDS:
        return True
    name = manifests.namespace(parent)
    found = attempt(lambda: world.services.kubernetes.get(NAMESPACES, name))
    return isinstance(found, dict) and manifests.deleting(found)


def _looked(remains: Remains, view: View) -> Remains:
    for entry in remains.live:
        look: Callable[[], Record] = _looking(entry, remains, view)
        seen = attempt(look)
        if isinstance(seen, EffectError):
            return replace(remains, unread=seen)
        remains = remains.changed(entry, seen)
    if remains.live:
        return remains
    applied = remains.applied
    while (policy := policies.removal(applied)) in view.world.policies:
        applied = policies.without(policy, applied)
    return replace(remains, applied=applied, policy=policy)


def _looking(entry: Record, remains: Remains, view: View) -> Callable[[], Record]:
    return lambda: _seen(entry, remains, view)


def _seen(entry: Record, remains: Remains, view: View) -> Record:
    if entry.type in STREAMING:
        seen = supervisors.ending(entry, view).record
    else:
        seen = tasks.unwanted(entry, view)
    late = seconds_since(remains.deleted_at, remains.now) >= LATE_SECONDS
    if seen.state == "Submitting" and late:
        return replace(seen, state="Superseded", ended_at=view.now)
    return seen
