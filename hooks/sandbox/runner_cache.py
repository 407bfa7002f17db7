"""What the runner has seen of the cluster so far: its informers.

Idea: each kind is listed at its first use and then follows the events. The version before the
newest one is kept too, so that a late cache can be played.

Limits: all namespaces of a kind; a filter given to `select` sees the kept objects themselves and
must not change them.
"""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING

from hooks.core import manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind
    from hooks.sandbox.port import Change, Cluster

Key = tuple[str, str]


class Cache:
    """The objects of the kinds that somebody has asked for."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.RLock()
        self._newest: dict[Kind, dict[Key, Manifest]] = {}
        self._before: dict[Kind, dict[Key, Manifest | None]] = {}
        self._kinds = {(kind.api_version, kind.kind): kind for kind in cluster.kinds}

    @property
    def kinds(self) -> Sequence[Kind]:
        """Return the kinds that can be asked for."""
        return tuple(self._kinds.values())

    def kind_of(self, obj: Manifest) -> Kind | None:
        """Return the kind of an object, None when it is not served."""
        return self._kinds.get((str(obj.get("apiVersion")), str(obj.get("kind"))))

    def watch(self, kind: Kind) -> None:
        """Follow a kind from now on."""
        with self._lock:
            if kind not in self._newest:
                self._before[kind] = {}
                self._newest[kind] = {_key(obj): obj for obj in self._cluster.list(kind)}

    def note(self, change: Change, obj: Manifest) -> tuple[Kind, Manifest | None] | None:
        """Take an event in; return its kind and what was known before, None for old news."""
        kind = self.kind_of(obj)
        with self._lock:
            if kind is None or kind not in self._newest:
                return None
            known = self._newest[kind].get(_key(obj))
            if known is not None and _version(obj) <= _version(known):
                return None
            self._before[kind][_key(obj)] = known
            if change == "DELETED":
                self._newest[kind].pop(_key(obj), None)
            else:
                self._newest[kind][_key(obj)] = obj
            return kind, known

    def get(self, kind: Kind, namespace: str, name: str, *, stale: bool = False) -> Manifest | None:
        """Return an object, or with `stale` the version before it."""
        self.watch(kind)
        key = (namespace, name)
        with self._lock:
            before = self._before[kind]
            found = before[key] if stale and key in before else self._newest[kind].get(key)
            return copy.deepcopy(found)

    def select(
        self, kind: Kind, wanted: Callable[[Manifest], bool], *, stale: bool = False
    ) -> list[Manifest]:
        """Return the objects that are wanted, by namespace and name."""
        self.watch(kind)
        with self._lock:
            found = [obj for obj in self._versions(kind, stale=stale) if wanted(obj)]
            return [copy.deepcopy(obj) for obj in sorted(found, key=_key)]

    def _versions(self, kind: Kind, *, stale: bool) -> Iterator[Manifest]:
        newest = self._newest[kind]
        if not stale:
            yield from newest.values()
            return
        for obj in ({**newest, **self._before[kind]}).values():
            if obj is not None:
                yield obj


def _key(obj: Manifest) -> Key:
    return manifests.namespace(obj), manifests.name(obj)


def _version(obj: Manifest) -> int:
    """Return the resourceVersion as the number that it is for every API server so far."""
    return int(manifests.metadata(obj).get("resourceVersion") or 0)
