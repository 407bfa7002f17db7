"""Find the children of a parent: adopt orphans that match its selector, release what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.kinds import ApiError
from hooks.sandbox.runner_labels import matches
from hooks.sandbox.runner_state import SyncError
from hooks.sandbox.runner_writes import controller_reference

if TYPE_CHECKING:
    from hooks.sandbox.kinds import Kind
    from hooks.sandbox.runner_cache import Cache
    from hooks.sandbox.runner_config import ControllerSpec
    from hooks.sandbox.runner_writes import Writer

CONTROLLER_UID = "controller-uid"

Objects = dict[str, Manifest]
"""Objects by `namespace/name`, or name when cluster-scoped."""


def key(obj: Manifest) -> str:
    """Return how an object is called inside its group."""
    return f"{manifests.namespace(obj)}/{manifests.name(obj)}".lstrip("/")


def child_selector(spec: ControllerSpec, parent: Manifest) -> Manifest:
    """Return the selector that a parent's children match.

    Raises:
        SyncError: The parent is to have one in its spec, and has none.
    """
    if spec.generate_selector:
        return {"matchLabels": {CONTROLLER_UID: manifests.uid(parent)}}
    selector = (parent.get("spec") or {}).get("selector") or {}
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        raise SyncError(".spec.selector must have either matchLabels, matchExpressions, or both")
    return dict(selector)


class Claims:
    """The claiming for one sync of one parent."""

    def __init__(self, spec: ControllerSpec, writer: Writer, parent: Manifest) -> None:
        self._spec = spec
        self._writer = writer
        self._parent = parent
        self._selector = child_selector(spec, parent)

    def children(self, cache: Cache, *, stale: bool) -> dict[Kind, Objects]:
        """Return the children, with a group for each kind, empty or not.

        Raises:
            SyncError: An object cannot be adopted or released, or the selector makes no sense.
        """
        found: dict[Kind, Objects] = {}
        for kind in self._spec.children:
            candidates = cache.select(kind, self._candidate, stale=stale)
            try:
                found[kind] = {key(obj): obj for obj in candidates if self._claim(kind, obj)}
            except (ApiError, SyncError) as error:
                raise SyncError(f"can't claim {kind.kind} children: {error}") from error
        return found

    def _candidate(self, obj: Manifest) -> bool:
        """Say whether it is ours or nobody's; a parent in a namespace does not look out of it."""
        namespace = manifests.namespace(self._parent)
        here = not self._spec.parent.namespaced or manifests.namespace(obj) == namespace
        return here and manifests.controller_uid(obj) in (None, manifests.uid(self._parent))

    def _claim(self, kind: Kind, obj: Manifest) -> bool:
        owned = manifests.controller_uid(obj) is not None
        matching = matches(self._selector, obj)
        if owned or not matching:
            if owned and not matching and not manifests.deleting(self._parent):
                self._change(kind, obj, adopt=False)
            return owned and matching
        if manifests.deleting(self._parent) or manifests.deleting(obj):
            return False
        self._require_living_parent()
        return self._change(kind, obj, adopt=True)

    def _change(self, kind: Kind, obj: Manifest, *, adopt: bool) -> bool:
        """Adopt or release; say whether the object was still there."""
        uid = manifests.uid(self._parent)

        def change(live: Manifest) -> bool:
            before = live["metadata"].get("ownerReferences") or []
            kept = [reference for reference in before if reference.get("uid") != uid]
            after = [*kept, controller_reference(self._parent)] if adopt else kept
            live["metadata"]["ownerReferences"] = after
            return bool(after != before)

        try:
            self._writer.change(kind, obj, change, deed="child")
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            return False
        return True

    def _require_living_parent(self) -> None:
        name = manifests.name(self._parent)
        live = self._writer.cluster.get(self._spec.parent, manifests.namespace(self._parent), name)
        if live is None or manifests.uid(live) != manifests.uid(self._parent):
            raise SyncError(f"original {self._spec.parent.kind} {name} is gone")
        if manifests.deleting(live):
            raise SyncError(f"{self._spec.parent.kind} {name} has just been deleted")
