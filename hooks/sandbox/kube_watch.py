"""Follow one kind on a real API server: a list, then a watch from there, for as long as needed.

Idea: as an informer does it. A watch that ends is opened again where it ended; when the server
has forgotten that place, a new list is compared with what was known, and the difference is told.
What `known` holds is for that comparison alone.

Limits: a kind is followed in all namespaces; what happened more than once between two lists is
told once.
"""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.kinds import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kube_client import KubeClient, Watch
    from hooks.sandbox.port import Change, Listener

_PAUSE = 0.5
_GONE = 410
_JOIN = 10.0
_CHANGES: dict[str, Change] = {"ADDED": "ADDED", "MODIFIED": "MODIFIED", "DELETED": "DELETED"}
_Key = tuple[str, str]


class Follower:
    """One kind, followed in a thread from its creation on until `close`."""

    def __init__(
        self,
        client: KubeClient,
        path: str,
        listed: Callable[[], tuple[list[Manifest], str]],
        tell: Listener,
    ) -> None:
        """List once, now, so that nothing after this call is missed.

        Args:
            client: where.
            path: of the kind, in all namespaces.
            listed: lists the kind; the objects and the version of the list.
            tell: is told of each change, in the thread.

        Raises:
            ApiError: It cannot be listed.
        """
        self._client = client
        self._path = path
        self._listed = listed
        self._tell = tell
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        found, self._version = listed()
        self._known = {_key(obj): obj for obj in found}
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the watch and wait for the thread."""
        with self._lock:
            self._closed.set()
            if self._watch is not None:
                self._watch.interrupt()
        self._thread.join(_JOIN)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                if not self._version:
                    self._catch_up()
                self._follow()
            except ApiError as error:
                if error.status == _GONE:
                    self._version = ""
                else:
                    self._closed.wait(_PAUSE)

    def _follow(self) -> None:
        watch = self._client.watch(self._path, self._version)
        with self._lock:
            self._watch = watch
            if self._closed.is_set():
                watch.interrupt()
        for event in watch.events():
            self._take(event)

    def _take(self, event: Manifest) -> None:
        obj: Manifest = event["object"]
        change = _CHANGES.get(str(event.get("type")))
        if change is not None:
            self._note(change, obj)
        self._version = str(obj["metadata"]["resourceVersion"])

    def _note(self, change: Change, obj: Manifest) -> None:
        if change == "DELETED":
            self._known.pop(_key(obj), None)
        else:
            self._known[_key(obj)] = obj
        self._tell(change, copy.deepcopy(obj))

    def _catch_up(self) -> None:
        """List again and tell what is different; what is gone is told with the list's version."""
        found, version = self._listed()
        now = {_key(obj): obj for obj in found}
        for key in self._known.keys() - now.keys():
            gone = copy.deepcopy(self._known[key])
            gone["metadata"]["resourceVersion"] = version
            self._note("DELETED", gone)
        for key, obj in now.items():
            before = self._known.get(key)
            if before is None or _version(before) != _version(obj):
                self._note("MODIFIED" if before else "ADDED", obj)
        self._version = version


def _key(obj: Manifest) -> _Key:
    return manifests.namespace(obj), manifests.name(obj)


def _version(obj: Manifest) -> object:
    return manifests.metadata(obj).get("resourceVersion")
