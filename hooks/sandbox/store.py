"""Keep objects by kind, namespace and name; version every change and tell it to listeners.

Idea: changes are queued under the lock and told outside it, by whichever thread is writing, one at
a time: listeners see the order of resourceVersions and may write themselves. `touched` is what the
garbage collector has not looked at yet.

Limits: objects handed out are the stored ones; only the cluster may see them, and it copies.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.admission import same
from hooks.sandbox.kinds import NAMESPACE, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hooks.core.manifests import Manifest
    from hooks.sandbox.port import Change, Listener

Key = tuple[Kind, str, str]


def key_for(kind: Kind, namespace: str | None, name: str) -> Key:
    """Return where an object is kept; a cluster-scoped one has no namespace."""
    return kind, (namespace or "") if kind.namespaced else "", name


class Store:
    """The objects, behind one lock."""

    def __init__(self) -> None:
        self.touched: deque[tuple[Key, Manifest]] = deque()
        self.version = 0
        self._lock = threading.RLock()
        self._objects: dict[Key, Manifest] = {}
        self._keys: dict[str, Key] = {}
        self._listeners: tuple[Listener, ...] = ()
        self._untold: deque[tuple[Change, Manifest]] = deque()
        self._telling = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock."""
        with self._lock:
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock, then tell what was changed."""
        try:
            with self._lock:
                yield
        finally:
            self._tell()

    def get(self, key: Key) -> Manifest | None:
        """Return the stored object."""
        return self._objects.get(key)

    def key_of(self, uid: str) -> Key | None:
        """Return where the object with that UID is kept."""
        return self._keys.get(uid)

    def find(self, uid: str) -> Manifest | None:
        """Return the stored object with that UID."""
        key = self._keys.get(uid)
        return None if key is None else self._objects.get(key)

    def keys(self, wanted: Callable[[Key, Manifest], bool]) -> list[Key]:
        """Return the keys of matching objects by namespace and name."""
        found = [key for key, obj in self._objects.items() if wanted(key, obj)]
        return sorted(found, key=lambda key: key[1:])

    def put(self, key: Key, obj: Manifest) -> Manifest:
        """Store an object, unless nothing changed; deleted and without finalizers it goes."""
        old = self._objects.get(key)
        meta = obj["metadata"]
        if old is not None and same(obj, old):
            return old
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        if manifests.deleting(obj) and not meta.get("finalizers") and key[0] != NAMESPACE:
            self.remove(key, obj)
            return obj
        self._objects[key] = obj
        self._keys[manifests.uid(obj)] = key
        self._changed(key, obj, "MODIFIED" if old else "ADDED")
        return obj

    def remove(self, key: Key, last: Manifest | None = None) -> None:
        """Forget an object; `last` is what listeners are told it was."""
        stored = self._objects.pop(key)
        del self._keys[manifests.uid(stored)]
        gone = last or copy.deepcopy(stored)
        self.version += 1
        gone["metadata"]["resourceVersion"] = str(self.version)
        self._changed(key, gone, "DELETED")

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener of each change from now on; calling the result ends that."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return unsubscribe

    def _changed(self, key: Key, obj: Manifest, change: Change) -> None:
        self.touched.append((key, obj))
        self._untold.append((change, copy.deepcopy(obj)))

    def _tell(self) -> None:
        """Tell what is queued, unless another thread (or a call further up) is at it."""
        while True:
            with self._lock:
                if self._telling or not self._untold:
                    return
                self._telling = True
                change, obj = self._untold.popleft()
                listeners = self._listeners
            try:
                for listener in listeners:
                    listener(change, copy.deepcopy(obj))
            finally:
                with self._lock:
                    self._telling = False
