"""One sync of one parent, step by step as Metacontroller does it.

Idea: finalizer, claiming, related objects, hook, wake-up, finalizer off, children, status. A step
that fails ends the sync, but for children, after which the status is written all the same.

Limits: no rolling updates, hence no ControllerRevisions.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.apply import deep_equal
from hooks.sandbox.kinds import ApiError
from hooks.sandbox.runner_children import Children, Strategy, desired_children
from hooks.sandbox.runner_claim import Claims, Objects
from hooks.sandbox.runner_labels import matches
from hooks.sandbox.runner_related import Related
from hooks.sandbox.runner_state import Item, SyncError
from hooks.sandbox.runner_writes import Writer, add_finalizer, has_finalizer, remove_finalizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind
    from hooks.sandbox.port import Cluster
    from hooks.sandbox.runner_cache import Cache
    from hooks.sandbox.runner_config import ControllerSpec, HookName
    from hooks.sandbox.runner_queue import Time, WorkQueue
    from hooks.sandbox.runner_state import Faults, Statistics
    from hooks.sandbox.runner_webhook import Webhooks

_GARBAGE_COLLECTOR = {"foregroundDeletion", "orphan"}
_SWALLOWED = ("NotFound", "Conflict")


@dataclass(frozen=True, slots=True)
class Parts:
    """What all controllers of one process work with."""

    cluster: Cluster
    cache: Cache
    queue: WorkQueue
    time: Time
    webhooks: Webhooks
    strategy: Strategy
    statistics: Statistics
    faults: Faults


class Controller:
    """A running CompositeController."""

    def __init__(self, spec: ControllerSpec, parts: Parts) -> None:
        self.spec = spec
        self.related = Related(self._rules, parts.cache, parts.time)
        self._parts = parts

    def item(self, parent: Manifest) -> Item:
        """Return how the queue calls a parent."""
        return Item(self.spec.name, manifests.namespace(parent), manifests.name(parent))

    def parents(self, wanted: Callable[[Manifest], bool] = lambda _: True) -> Sequence[Manifest]:
        """Return the wanted ones of the parents that it has seen."""
        return self._parts.cache.select(self.spec.parent, wanted)

    def cares(self, parent: Manifest) -> bool:
        """Say whether a parent is selected, or was and still has our finalizer."""
        return has_finalizer(parent, self.spec.finalizer) or self._selected(parent)

    def sync(self, item: Item) -> None:
        """Sync a parent, if there is one.

        Raises:
            SyncError: It failed.
            TooManyRequests: A hook asks for time.
            RunnerCrashed: Metacontroller would be no more.
        """
        stale = self._parts.faults.take("stale_parent")
        if stale:
            self._parts.queue.add(item)
        parent = self._parts.cache.get(self.spec.parent, item.namespace, item.name, stale=stale)
        if parent is not None and self.cares(parent):
            writer = Writer(self._parts.cluster, self._parts.statistics, item)
            parent = self._with_finalizer(writer, parent)
            if self.cares(parent):
                self._sync(writer, parent)

    def _sync(self, writer: Writer, parent: Manifest) -> None:
        stale = self._parts.faults.take("stale_children")
        if stale:
            self._parts.queue.add(writer.item)
        observed = Claims(self.spec, writer, parent).children(self._parts.cache, stale=stale)
        name, request = self._request(parent, observed)
        self._parts.statistics.count(writer.item, name)
        reply = self._parts.webhooks.reply(name, self.spec.hooks[name], request)
        if reply.resync_after > 0:
            self._parts.queue.add_after(writer.item, reply.resync_after)
        if reply.finalized:
            parent = self._without_finalizer(writer, parent)
        desired = desired_children(self.spec, parent, reply.children)
        problem: SyncError | None = None
        if not manifests.deleting(parent) or self._should_finalize(parent):
            try:
                Children(self.spec, writer, self._parts.strategy).manage(observed, desired, parent)
            except SyncError as error:
                problem = error
        self._write_status(writer, parent, reply.status)
        if problem is not None:
            raise problem

    def _request(
        self, parent: Manifest, observed: Mapping[Kind, Objects]
    ) -> tuple[HookName, Manifest]:
        related = self.related.objects(parent) if "customize" in self.spec.hooks else {}
        leaving = manifests.deleting(parent) or not self._selected(parent)
        finalizing = "finalize" in self.spec.hooks and leaving
        request: Manifest = {
            "controller": self.spec.manifest,
            "parent": parent,
            "children": _groups(observed),
            "related": _groups(related),
            "finalizing": finalizing,
        }
        return "finalize" if finalizing else "sync", request

    def _rules(self, parent: Manifest) -> list[Manifest]:
        self._parts.statistics.count(self.item(parent), "customize")
        request: Manifest = {"controller": self.spec.manifest, "parent": parent}
        return self._parts.webhooks.rules(self.spec.hooks["customize"], request)

    def _selected(self, parent: Manifest) -> bool:
        return self.spec.selector is None or matches(self.spec.selector, parent)

    def _with_finalizer(self, writer: Writer, parent: Manifest) -> Manifest:
        """Put the finalizer on, or take it off a parent that needs it no longer."""
        wanted = "finalize" in self.spec.hooks
        if has_finalizer(parent, self.spec.finalizer) == wanted:
            return parent
        if wanted and manifests.deleting(parent):
            return parent
        change = (add_finalizer if wanted else remove_finalizer)(self.spec.finalizer)
        try:
            return writer.change(self.spec.parent, parent, change, deed="parent")
        except ApiError as error:
            raise SyncError(f"can't sync finalizer: {error}") from error

    def _without_finalizer(self, writer: Writer, parent: Manifest) -> Manifest:
        change = remove_finalizer(self.spec.finalizer)
        try:
            return writer.change(self.spec.parent, parent, change, deed="parent")
        except ApiError as error:
            raise SyncError(f"can't remove finalizer: {error}") from error

    def _should_finalize(self, parent: Manifest) -> bool:
        """Say whether children of a parent in deletion are still ours to manage."""
        finalizers = manifests.metadata(parent).get("finalizers") or ()
        return (
            "finalize" in self.spec.hooks
            and self.spec.finalizer in finalizers
            and not _GARBAGE_COLLECTOR.intersection(finalizers)
        )

    def _write_status(self, writer: Writer, parent: Manifest, status: Manifest) -> None:
        """Replace the status if it differs from the live one; who else wrote it loses."""
        wanted = {**status, "observedGeneration": manifests.generation(parent)}

        def change(live: Manifest) -> bool:
            if deep_equal(live.get("status"), wanted):
                return False
            live["status"] = copy.deepcopy(wanted)
            return True

        try:
            writer.change(self.spec.parent, parent, change, deed="status")
        except ApiError as error:
            if error.reason not in _SWALLOWED:
                raise SyncError(f"can't update status: {error}") from error


def _groups(objects: Mapping[Kind, Objects]) -> Manifest:
    return {f"{kind.kind}.{kind.api_version}": group for kind, group in objects.items()}
