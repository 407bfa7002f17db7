"""A real API server behind the port of the sandbox.

Idea: what the runner does to the double it does to this. Kinds come from discovery, once. A kind
is followed by a watch from the first list on that is made while somebody listens.

Limits: events of different kinds have no order among each other, and `apply` is a server-side
apply with force. Kinds that are installed later need a new object.
"""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC
from functools import cached_property, partial
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from hooks.core import manifests
from hooks.sandbox.kinds import EVENT, ApiError, Kind, event_about
from hooks.sandbox.kube_client import KubeClient
from hooks.sandbox.kube_watch import Follower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.port import Change, Listener, Propagation

FIELD_MANAGER = "database-hooks-sandbox"
_APPLY = "application/apply-patch+yaml"
_PAGE = "500"
_NOT_FOUND = 404

_Manifests = list["Manifest"]


class KubeCluster:
    """The API server of a kubeconfig; `with` ends its watches."""

    def __init__(self, kubeconfig: Path, now: Callable[[], datetime]) -> None:
        self._client = KubeClient(kubeconfig)
        self._now = now
        self._lock = threading.Lock()
        self._listeners: tuple[Listener, ...] = ()
        self._followers: dict[Kind, Follower] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all watches."""
        with self._lock:
            followers, self._followers = self._followers, {}
        for follower in followers.values():
            follower.close()

    @cached_property
    def kinds(self) -> Sequence[Kind]:
        """Return the kinds that were served when this was asked first."""
        return tuple(_discovered(self._client))

    @property
    def events(self) -> Sequence[Manifest]:
        """Return the Events of all namespaces, oldest first."""
        return sorted(self.list(EVENT), key=lambda event: str(event.get("firstTimestamp") or ""))

    def get(self, kind: Kind, namespace: str | None, name: str) -> Manifest | None:
        """Return one object, None when there is none."""
        try:
            return self._client.request("GET", _path(kind, namespace, name))
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def list(self, kind: Kind, namespace: str | None = None) -> list[Manifest]:
        """Return the objects of a kind by namespace and name."""
        self._follow(kind)
        found, _ = self._listed(kind, namespace)
        return sorted(found, key=lambda obj: (manifests.namespace(obj), manifests.name(obj)))

    def create(self, obj: Manifest) -> Manifest:
        """Create an object, without its status."""
        path = _path(self._kind(obj), manifests.namespace(obj))
        return self._client.request("POST", path, body=obj)

    def replace(self, obj: Manifest) -> Manifest:
        """Write everything but status."""
        return self._client.request("PUT", self._place(obj), body=obj)

    def replace_status(self, obj: Manifest) -> Manifest:
        """Write status and nothing else."""
        return self._client.request("PUT", f"{self._place(obj)}/status", body=obj)

    def apply(self, obj: Manifest) -> Manifest:
        """Apply on the server; without a namespace an object goes into default."""
        kind = self._kind(obj)
        namespace = manifests.namespace(obj) or "default"
        return self._client.request(
            "PATCH",
            _path(kind, namespace, manifests.name(obj)),
            query={"fieldManager": FIELD_MANAGER, "force": "true"},
            body=obj,
            content_type=_APPLY,
        )

    def delete(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        """Delete an object; with finalizers it is only marked, until the last one goes."""
        options: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions"}
        options["propagationPolicy"] = propagation
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        self._client.request("DELETE", _path(kind, namespace, name), body=options)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener of each change of the followed kinds; calling the result ends that."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return unsubscribe

    def record_event(
        self, obj: Manifest, reason: str, message: str, *, type_: str = "Warning"
    ) -> None:
        """Record an Event about an object; one that cannot be written is lost, as elsewhere."""
        event = event_about(obj, reason, message, type_)
        now = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event |= {"count": 1, "firstTimestamp": now, "lastTimestamp": now}
        with contextlib.suppress(ApiError):
            before = self.get(EVENT, manifests.namespace(event), manifests.name(event))
            if before is None:
                self.create(event)
            else:
                self.replace({**before, "count": before["count"] + 1, "lastTimestamp": now})

    def _follow(self, kind: Kind) -> None:
        with self._lock:
            if self._listeners and kind not in self._followers:
                self._followers[kind] = Follower(
                    self._client, _path(kind, None), partial(self._listed, kind), self._tell
                )

    def _tell(self, change: Change, obj: Manifest, /) -> None:
        for listener in self._listeners:
            listener(change, obj)

    def _listed(self, kind: Kind, namespace: str | None = None) -> tuple[_Manifests, str]:
        """Return the objects, with the kind that items of built-in lists lack, and the version."""
        found: _Manifests = []
        query = {"limit": _PAGE}
        while True:
            page = self._client.request("GET", _path(kind, namespace), query=query)
            found += page["items"] or []
            if not page["metadata"].get("continue"):
                break
            query["continue"] = page["metadata"]["continue"]
        named = [{"apiVersion": kind.api_version, "kind": kind.kind, **obj} for obj in found]
        return named, str(page["metadata"]["resourceVersion"])

    def _place(self, obj: Manifest) -> str:
        return _path(self._kind(obj), manifests.namespace(obj), manifests.name(obj))

    def _kind(self, obj: Manifest) -> Kind:
        for kind in self.kinds:
            if (kind.api_version, kind.kind) == (obj.get("apiVersion"), obj.get("kind")):
                return kind
        raise ApiError(404, "NotFound", "the server could not find the requested resource")


def _path(kind: Kind, namespace: str | None, name: str = "") -> str:
    parts = ["apis" if kind.group else "api", *kind.api_version.split("/")]
    if kind.namespaced and namespace:
        parts += ["namespaces", namespace]
    parts.append(kind.plural)
    if name:
        parts.append(name)
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _discovered(client: KubeClient) -> Iterator[Kind]:
    """Yield the kinds of all versions that can be listed."""
    groups = client.request("GET", "/apis")["groups"]
    versions = [served["groupVersion"] for group in groups for served in group["versions"]]
    for path in ("/api/v1", *(f"/apis/{version}" for version in versions)):
        found = _version(client, path)
        for entry in found["resources"]:
            if "list" in entry["verbs"] and "/" not in entry["name"]:
                kind, plural, namespaced = entry["kind"], entry["name"], entry["namespaced"]
                yield Kind(found["groupVersion"], kind, plural, namespaced=namespaced)


def _version(client: KubeClient, path: str) -> Manifest:
    """Return what a version serves; it may have gone since it was named."""
    try:
        return client.request("GET", path)
    except ApiError as error:
        if error.status == _NOT_FOUND:
            return {"resources": []}
        raise
