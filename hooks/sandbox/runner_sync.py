"""What a sync of either type of controller begins with.

Idea: a parent that is selected, or still has our finalizer, gets its finalizer right and is then
synced by its type: runner_composite.py, runner_decorator.py.

Limits: no rolling updates, hence no ControllerRevisions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.kinds import ApiError
from hooks.sandbox.runner_related import Related
from hooks.sandbox.runner_state import Item, SyncError
from hooks.sandbox.runner_writes import Writer, add_finalizer, has_finalizer, remove_finalizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind
    from hooks.sandbox.port import Cluster
    from hooks.sandbox.runner_cache import Cache
    from hooks.sandbox.runner_children import Strategy
    from hooks.sandbox.runner_claim import Objects
    from hooks.sandbox.runner_config import ControllerSpec, ParentRule
    from hooks.sandbox.runner_queue import Time, WorkQueue
    from hooks.sandbox.runner_state import Faults, Statistics
    from hooks.sandbox.runner_webhook import Webhooks

_GARBAGE_COLLECTOR = {"foregroundDeletion", "orphan"}


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


class Controller(ABC):
    """A running controller."""

    def __init__(self, spec: ControllerSpec, parts: Parts) -> None:
        self.spec = spec
        self.related = Related(self._rules, parts.cache, parts.time)
        self._parts = parts

    def item(self, parent: Manifest) -> Item:
        """Return how the queue calls a parent."""
        kind = f"{parent['kind']}.{parent['apiVersion']}"
        return Item(self.spec.key, kind, manifests.namespace(parent), manifests.name(parent))

    def parents(self, wanted: Callable[[Manifest], bool] = lambda _: True) -> Sequence[Manifest]:
        """Return the wanted ones of the parents that it has seen."""
        cache = self._parts.cache
        return [parent for kind in self.spec.parents for parent in cache.select(kind, wanted)]

    def parent(self, item: Item, *, stale: bool = False) -> Manifest | None:
        """Return the parent that the queue means, None when there is none any more."""
        for kind in self.spec.parents:
            if f"{kind.kind}.{kind.api_version}" == item.kind:
                return self._parts.cache.get(kind, item.namespace, item.name, stale=stale)
        return None

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
        parent = self.parent(item, stale=stale)
        if parent is not None and self.cares(parent):
            writer = Writer(self._parts.cluster, self._parts.statistics, item)
            parent = self._with_finalizer(writer, parent)
            if self.cares(parent):
                self._sync(writer, parent)

    @abstractmethod
    def may_adopt(self, parent: Manifest, orphan: Manifest) -> bool:
        """Say whether a parent would take an object that belongs to nobody for its own."""

    @abstractmethod
    def _sync(self, writer: Writer, parent: Manifest) -> None:
        """Call the hook and do what it answers."""

    def _late_children(self, item: Item) -> bool:
        """Say whether this sync is to see children of the past."""
        stale = self._parts.faults.take("stale_children")
        if stale:
            self._parts.queue.add(item)
        return stale

    def _request(self, parent: Manifest) -> Manifest:
        """Return what is the same in a request of either type, its group of children missing."""
        related = self.related.objects(parent) if "customize" in self.spec.hooks else {}
        leaving = manifests.deleting(parent) or not self._selected(parent)
        return {
            "controller": self.spec.manifest,
            "related": groups(related),
            "finalizing": "finalize" in self.spec.hooks and leaving,
        }

    def _rules(self, parent: Manifest) -> list[Manifest]:
        self._parts.statistics.count(self.item(parent), "customize")
        request: Manifest = {"controller": self.spec.manifest, "parent": parent}
        return self._parts.webhooks.rules(self.spec.hooks["customize"], request)

    def _kind(self, parent: Manifest) -> Kind:
        return next(kind for kind in self.spec.parents if kind == self._parts.cache.kind_of(parent))

    def _selected(self, parent: Manifest) -> bool:
        rule: ParentRule = self.spec.parents[self._kind(parent)]
        return rule.selects(parent)

    def _with_finalizer(self, writer: Writer, parent: Manifest) -> Manifest:
        """Put the finalizer on, or take it off a parent that needs it no longer."""
        wanted = "finalize" in self.spec.hooks
        if has_finalizer(parent, self.spec.finalizer) == wanted:
            return parent
        if wanted and manifests.deleting(parent):
            return parent
        change = (add_finalizer if wanted else remove_finalizer)(self.spec.finalizer)
        try:
            return writer.change(self._kind(parent), parent, change, deed="parent")
        except ApiError as error:
            raise SyncError(f"can't sync finalizer: {error}") from error

    def _manages_children(self, parent: Manifest) -> bool:
        """Say whether children are ours to manage: of a parent in deletion only to finalize it."""
        finalizers = manifests.metadata(parent).get("finalizers") or ()
        return not manifests.deleting(parent) or (
            "finalize" in self.spec.hooks
            and self.spec.finalizer in finalizers
            and not _GARBAGE_COLLECTOR.intersection(finalizers)
        )


def groups(objects: Mapping[Kind, Objects]) -> Manifest:
    """Return objects as a hook sees them: by kind with version, then by name."""
    return {f"{kind.kind}.{kind.api_version}": group for kind, group in objects.items()}
