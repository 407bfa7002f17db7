"""One sync of a parent of a CompositeController, step by step as Metacontroller does it.

Idea: claiming, related objects, hook, wake-up, finalizer off, children, status. A step that fails
ends the sync, but for children, after which the status is written all the same.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.apply import deep_equal
from hooks.sandbox.kinds import ApiError
from hooks.sandbox.runner_children import Children, desired_children
from hooks.sandbox.runner_claim import Claims, child_selector
from hooks.sandbox.runner_labels import matches
from hooks.sandbox.runner_state import SyncError
from hooks.sandbox.runner_sync import Controller, groups
from hooks.sandbox.runner_writes import Writer, remove_finalizer

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest
    from hooks.sandbox.runner_config import HookName

_SWALLOWED = ("NotFound", "Conflict")


class Composite(Controller):
    """A running CompositeController."""

    def may_adopt(self, parent: Manifest, orphan: Manifest) -> bool:
        """Say whether an object matches the parent's selector."""
        try:
            return matches(child_selector(self.spec, parent), orphan)
        except SyncError:
            return False

    def _sync(self, writer: Writer, parent: Manifest) -> None:
        stale = self._late_children(writer.item)
        observed = Claims(self.spec, writer, parent).children(self._parts.cache, stale=stale)
        request = self._request(parent) | {"parent": parent, "children": groups(observed)}
        name: HookName = "finalize" if request["finalizing"] else "sync"
        self._parts.statistics.count(writer.item, name)
        reply = self._parts.webhooks.reply(name, self.spec.hooks[name], request)
        if reply.resync_after > 0:
            self._parts.queue.add_after(writer.item, reply.resync_after)
        if reply.finalized:
            parent = self._without_finalizer(writer, parent)
        desired = desired_children(self.spec, parent, reply.children)
        problem: SyncError | None = None
        if self._manages_children(parent):
            try:
                Children(self.spec, writer, self._parts.strategy).manage(observed, desired, parent)
            except SyncError as error:
                problem = error
        self._write_status(writer, parent, reply.status)
        if problem is not None:
            raise problem

    def _without_finalizer(self, writer: Writer, parent: Manifest) -> Manifest:
        change = remove_finalizer(self.spec.finalizer)
        try:
            return writer.change(self.spec.parent, parent, change, deed="parent")
        except ApiError as error:
            raise SyncError(f"can't remove finalizer: {error}") from error

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
