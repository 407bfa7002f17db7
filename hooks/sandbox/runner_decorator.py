"""One sync of a parent of a DecoratorController, step by step as Metacontroller does it.

Idea: it adds to objects that are somebody else's. Its children are those that it created, told by
an annotation: nothing is adopted or released. Labels, annotations and status of the parent change
only as far as the hook says, before the children, and with the resourceVersion that was observed:
who wrote in between wins, and this sync ends there.

Limits: a parent whose status changes has a status subresource.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.apply import deep_equal
from hooks.sandbox.kinds import ApiError
from hooks.sandbox.runner_children import Children, grouped
from hooks.sandbox.runner_claim import Objects, key
from hooks.sandbox.runner_state import SyncError
from hooks.sandbox.runner_sync import Controller, groups
from hooks.sandbox.runner_writes import Writer, has_finalizer, remove_finalizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind
    from hooks.sandbox.runner_answer import Decoration
    from hooks.sandbox.runner_config import HookName

ANNOTATION = "metacontroller.k8s.io/decorator-controller"
_SWALLOWED = ("NotFound", "Conflict")


class Decorator(Controller):
    """A running DecoratorController."""

    def may_adopt(self, parent: Manifest, orphan: Manifest) -> bool:  # noqa: ARG002 - never
        """Say no: there is no selector for children."""
        return False

    def _sync(self, writer: Writer, parent: Manifest) -> None:
        observed = self._attachments(parent, stale=self._late_children(writer.item))
        request = self._request(parent) | {"object": parent, "attachments": groups(observed)}
        name: HookName = "finalize" if request["finalizing"] else "sync"
        self._parts.statistics.count(writer.item, name)
        reply = self._parts.webhooks.decoration(name, self.spec.hooks[name], request)
        if reply.resync_after > 0:
            self._parts.queue.add_after(writer.item, reply.resync_after)
        if not self._decorate(writer, parent, reply):
            return
        desired = grouped(parent, reply.attachments)
        self._sign(child for group in desired.values() for child in group.values())
        # The parent as it was: with its finalizer, even if the hook has just let go of it.
        if self._manages_children(parent):
            Children(self.spec, writer, self._parts.strategy).manage(observed, desired, parent)

    def _attachments(self, parent: Manifest, *, stale: bool) -> dict[Kind, Objects]:
        """Return what it created for a parent, with a group for each kind, empty or not."""
        uid, namespace = manifests.uid(parent), manifests.namespace(parent)

        def ours(obj: Manifest) -> bool:
            here = namespace in ("", manifests.namespace(obj))
            signed = manifests.annotations(obj).get(ANNOTATION) == self.spec.name
            return here and signed and manifests.controller_uid(obj) == uid

        cache = self._parts.cache
        return {
            kind: {key(obj): obj for obj in cache.select(kind, ours, stale=stale)}
            for kind in self.spec.children
        }

    def _decorate(self, writer: Writer, parent: Manifest, reply: Decoration) -> bool:
        """Write what the hook changes of the parent; say whether the sync goes on.

        Raises:
            SyncError: It cannot be written.
        """
        changed = copy.deepcopy(parent)
        meta = changed["metadata"]
        differs = [
            _update(meta.setdefault("labels", {}), reply.labels),
            _update(meta.setdefault("annotations", {}), reply.annotations),
            reply.status is not None and not deep_equal(parent.get("status"), reply.status),
            reply.finalized and has_finalizer(parent, self.spec.finalizer),
        ]
        if not any(differs):
            return True
        try:
            if differs[2]:
                changed["status"] = reply.status
                written = writer.put(changed, deed="status")
                meta["resourceVersion"] = written["metadata"]["resourceVersion"]
            if reply.finalized:
                remove_finalizer(self.spec.finalizer)(changed)
            writer.put(changed, deed="parent")
        except ApiError as error:
            if error.reason in _SWALLOWED:
                return False
            raise SyncError(f"can't update {parent['kind']} {key(parent)}: {error}") from error
        return True

    def _sign(self, children: Iterable[Manifest]) -> None:
        """Mark children as ours; an annotation that is no text makes all others go."""
        for child in children:
            notes = child["metadata"].get("annotations") or {}
            kept = notes if all(isinstance(value, str) for value in notes.values()) else {}
            child["metadata"]["annotations"] = {**kept, ANNOTATION: self.spec.name}


def _update(texts: dict[str, str], changes: Mapping[str, str | None]) -> bool:
    """Set texts, and delete those that are to be None; say whether anything changed."""
    before = dict(texts)
    for name, value in changes.items():
        if value is None:
            texts.pop(name, None)
        else:
            texts[name] = value
    return texts != before
