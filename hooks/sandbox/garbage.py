"""Delete objects, and what belongs to deleted ones.

Idea: after each write `collect` looks at what was touched: dependents without a living owner go,
foreground and orphan finalizers are served, a terminating namespace is emptied. Nothing is left to
do when a write returns.

Limits: the real collectors work in the background, seconds later.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.kinds import NAMESPACE
from hooks.sandbox.store import key_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.port import Propagation
    from hooks.sandbox.store import Key, Store

_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"
_FINALIZERS = {"Foreground": _FOREGROUND, "Orphan": _ORPHAN}


def delete(store: Store, key: Key, propagation: Propagation, now: str) -> None:
    """Remove an object, or mark it as deleted when something is to happen first."""
    obj = copy.deepcopy(store.get(key))
    if obj is None:
        return
    meta = obj["metadata"]
    finalizers = meta.get("finalizers") or []
    wanted = _FINALIZERS.get(propagation)
    if wanted and wanted not in finalizers:
        meta["finalizers"] = finalizers = [*finalizers, wanted]
    if not finalizers and key[0] != NAMESPACE:
        store.remove(key)
        return
    if not manifests.deleting(obj):
        meta |= {"deletionTimestamp": now, "deletionGracePeriodSeconds": 0}
        if "generation" in meta:
            meta["generation"] += 1
        if key[0] == NAMESPACE:
            obj["status"] = {"phase": "Terminating"}
    store.put(key, obj)


def collect(store: Store, now: str) -> None:
    """Do all that the touched objects give reason for."""
    while store.touched:
        key, obj = store.touched.popleft()
        if store.get(key) is not None:
            _judge(store, key, now)
            continue
        uid = manifests.uid(obj)
        owners = [store.key_of(reference["uid"]) for reference in _references(obj)]
        namespace = key_for(NAMESPACE, None, key[1])
        for other in [*_dependents(store, uid), *filter(None, owners), namespace]:
            _judge(store, other, now)


def _judge(store: Store, key: Key, now: str) -> None:
    obj = store.get(key)
    if obj is None:
        return
    if key[0] == NAMESPACE and manifests.deleting(obj):
        _empty_namespace(store, key, now)
    elif manifests.deleting(obj):
        _serve_finalizers(store, key, obj, now)
    elif _references(obj):
        _judge_owners(store, key, obj, now)


def _empty_namespace(store: Store, key: Key, now: str) -> None:
    content = store.keys(lambda other, _: other[1] == key[2])
    for other in content:
        if not manifests.deleting(store.get(other) or {}):
            delete(store, other, "Background", now)
    if not content:
        store.remove(key)


def _serve_finalizers(store: Store, key: Key, obj: Manifest, now: str) -> None:
    finalizers = obj["metadata"].get("finalizers") or []
    uid = manifests.uid(obj)
    if _ORPHAN in finalizers:
        for other in _dependents(store, uid):
            dependent = store.get(other) or {}
            kept = [one for one in _references(dependent) if one["uid"] != uid]
            _set_list(store, other, "ownerReferences", kept)
        _set_list(store, key, "finalizers", [one for one in finalizers if one != _ORPHAN])
    elif _FOREGROUND in finalizers:
        for other in _dependents(store, uid):
            _judge(store, other, now)
        if not _dependents(store, uid, blocking=True):
            _set_list(store, key, "finalizers", [one for one in finalizers if one != _FOREGROUND])


def _judge_owners(store: Store, key: Key, obj: Manifest, now: str) -> None:
    """Delete an object without a living owner; drop the references to those that are gone."""
    owners = [(reference, _owner(store, obj, reference)) for reference in _references(obj)]
    alive = [ref for ref, owner in owners if owner is not None and not _in_foreground(owner)]
    if alive:
        _set_list(store, key, "ownerReferences", alive)
        return
    waited_for = any(owner is not None for _, owner in owners)
    below = waited_for and _dependents(store, manifests.uid(obj))
    delete(store, key, "Foreground" if below else "Background", now)


def _owner(store: Store, obj: Manifest, reference: Manifest) -> Manifest | None:
    """Return the owner; one elsewhere, or of another name than the reference says, is none."""
    owner = store.find(reference["uid"])
    if owner is None or manifests.namespace(owner) not in ("", manifests.namespace(obj)):
        return None
    named = (reference["apiVersion"], reference["kind"], reference["name"])
    return owner if named == (owner["apiVersion"], owner["kind"], manifests.name(owner)) else None


def _in_foreground(obj: Manifest) -> bool:
    return manifests.deleting(obj) and _FOREGROUND in (obj["metadata"].get("finalizers") or ())


def _references(obj: Manifest) -> list[Manifest]:
    return manifests.metadata(obj).get("ownerReferences") or []


def _dependents(store: Store, uid: str, *, blocking: bool = False) -> list[Key]:
    def depends(_: Key, obj: Manifest) -> bool:
        return any(
            reference["uid"] == uid and (reference.get("blockOwnerDeletion") or not blocking)
            for reference in _references(obj)
        )

    return store.keys(depends)


def _set_list(store: Store, key: Key, field: str, values: Sequence[object]) -> None:
    obj = copy.deepcopy(store.get(key))
    if obj is None:
        return
    obj["metadata"].pop(field, None)
    if values:
        obj["metadata"][field] = list(values)
    store.put(key, obj)
