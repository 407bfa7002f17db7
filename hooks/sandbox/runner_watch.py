"""Which parents an event wakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.runner_state import SyncError, TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind
    from hooks.sandbox.port import Change
    from hooks.sandbox.runner_config import ParentRule
    from hooks.sandbox.runner_sync import Controller

_Seen = tuple["Kind", "Manifest"]


def woken(
    controller: Controller, kind: Kind, change: Change, old: Manifest | None, new: Manifest
) -> Iterator[Manifest]:
    """Yield the parents of a controller that an event is a reason to sync.

    Args:
        controller: whose parents.
        kind: what kind of object changed.
        change: how.
        old: what was known of it before.
        new: what it is, or was last.
    """
    rule = controller.spec.parents.get(kind)
    if rule is not None and not _only_status(rule, old, new):
        yield new
    if kind in controller.spec.children:
        yield from _parents_of(controller, change, new)
    if controller.related.follows(kind):
        versions = [(kind, obj) for obj in (old, new) if obj is not None]
        for parent in controller.parents():
            if _relates(controller, parent, versions):
                yield parent


def _only_status(rule: ParentRule, old: Manifest | None, new: Manifest) -> bool:
    """Say whether a rule that ignores status changes ignores this one."""
    if not rule.ignore_status_changes or old is None or manifests.deleting(new):
        return False
    before, after = manifests.metadata(old), manifests.metadata(new)
    return all(before.get(key) == after.get(key) for key in ("generation", "labels", "annotations"))


def _parents_of(controller: Controller, change: Change, child: Manifest) -> Sequence[Manifest]:
    """Return the parent that owns a child, or those that might adopt it."""
    owner = manifests.controller_uid(child)
    gone = change == "DELETED" or manifests.deleting(child)

    def wanted(parent: Manifest) -> bool:
        here = manifests.namespace(parent) in ("", manifests.namespace(child))
        if owner is not None:
            return here and owner == manifests.uid(parent)
        return here and not gone and controller.may_adopt(parent, child)

    return controller.parents(wanted)


def _relates(controller: Controller, parent: Manifest, versions: list[_Seen]) -> bool:
    """Say whether a parent relates to the object; a hook that fails here loses the wake-up."""
    try:
        return controller.related.wakes(parent, versions)
    except (SyncError, TooManyRequests):
        return False
