"""A double of the Kubernetes API: objects in memory, with the server's manners.

Idea: every write is admitted (admission.py), stored under a new resourceVersion and then told
to listeners (store.py), with its garbage collected in between (garbage.py).

Limits: one process, no history, no dry run. A namespace ends when its last object does.
"""

from __future__ import annotations

import copy
import uuid
from contextlib import contextmanager
from datetime import UTC
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox import admission, garbage
from hooks.sandbox.builtin import BUILTIN, complete
from hooks.sandbox.kinds import (
    CONFIG_MAP,
    EVENT,
    EXTERNAL_SECRET,
    NAMESPACE,
    SECRET,
    ApiError,
    Kind,
    Resource,
    already_exists,
    bad_request,
    conflict,
    event_about,
    not_found,
    resources_of,
)
from hooks.sandbox.port import Change, Cluster, Listener, Propagation
from hooks.sandbox.store import Store, key_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from hooks.core.manifests import Manifest
    from hooks.sandbox.store import Key

__all__ = [
    "CONFIG_MAP",
    "EVENT",
    "EXTERNAL_SECRET",
    "NAMESPACE",
    "SECRET",
    "ApiError",
    "Change",
    "Cluster",
    "Kind",
    "Listener",
    "MemoryCluster",
    "Propagation",
]


class MemoryCluster:
    """The double, for the built-in kinds and those of the given CRDs."""

    def __init__(
        self,
        crds: Iterable[Manifest],
        clock: Callable[[], datetime],
        *,
        namespaces: Iterable[str] = ("default",),
    ) -> None:
        found = [*BUILTIN, *(resource for crd in crds for resource in resources_of(crd))]
        self._resources = {(r.kind.api_version, r.kind.kind): r for r in found}
        self._clock = clock
        self._store = Store()
        for name in namespaces:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    @property
    def resources(self) -> Sequence[Resource]:
        """Return what is served, with how it is treated."""
        return tuple(self._resources.values())

    @property
    def kinds(self) -> Sequence[Kind]:
        """Return the kinds that are served."""
        return tuple(resource.kind for resource in self._resources.values())

    @property
    def resource_version(self) -> str:
        """Return the resourceVersion of a list made now."""
        return str(self._store.version)

    @property
    def events(self) -> Sequence[Manifest]:
        """Return the Events, oldest first."""
        return sorted(self.list(EVENT), key=lambda event: str(event["firstTimestamp"]))

    def get(self, kind: Kind, namespace: str | None, name: str) -> Manifest | None:
        """Return one object, None when there is none."""
        with self._store.reading():
            found = self._store.get(key_for(kind, namespace, name))
            return None if found is None else copy.deepcopy(found)

    def list(self, kind: Kind, namespace: str | None = None) -> list[Manifest]:
        """Return the objects of a kind by namespace and name."""
        with self._store.reading():
            keys = self._store.keys(lambda k, _: k[0] == kind and namespace in (None, "", k[1]))
            return [copy.deepcopy(self._store.get(key) or {}) for key in keys]

    def create(self, obj: Manifest) -> Manifest:
        """Create an object, without its status."""
        with self._writing():
            return copy.deepcopy(self._create(admission.canonical(obj)))

    def replace(self, obj: Manifest) -> Manifest:
        """Write everything but status."""
        with self._writing():
            resource, key, old = self._stored(obj)
            new = admission.updated(resource, admission.canonical(obj), old)
            return copy.deepcopy(self._store.put(key, new))

    def force(self, obj: Manifest) -> Manifest:
        """Write a spec past defaults and validation, as an older CRD would have let it in."""
        with self._writing():
            _, key, old = self._stored(obj)
            new = {**copy.deepcopy(old), "spec": copy.deepcopy(obj["spec"])}
            new["metadata"]["generation"] = manifests.generation(old) + 1
            return copy.deepcopy(self._store.put(key, new))

    def replace_status(self, obj: Manifest) -> Manifest:
        """Write status and nothing else."""
        with self._writing():
            resource, key, old = self._stored(obj)
            new = admission.status_updated(resource, admission.canonical(obj), old)
            return copy.deepcopy(self._store.put(key, new))

    def apply(self, obj: Manifest) -> Manifest:
        """Do what `kubectl apply` does; without a namespace an object goes into default."""
        with self._writing():
            desired = admission.canonical(obj)
            resource = self._resource(desired)
            if resource.kind.namespaced:
                desired["metadata"].setdefault("namespace", "default")
            key = key_for(resource.kind, manifests.namespace(desired), manifests.name(desired))
            live = self._store.get(key)
            merged = admission.canonical(admission.applied(desired, live))
            if live is None:
                return copy.deepcopy(self._create(merged))
            return copy.deepcopy(self._store.put(key, admission.updated(resource, merged, live)))

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
        with self._writing():
            key = key_for(kind, namespace, name)
            old = self._store.get(key)
            if old is None:
                raise not_found(kind, name)
            if uid not in (None, manifests.uid(old)):
                why = f"UID in precondition: {uid}, UID in object meta: {manifests.uid(old)}"
                raise conflict(kind, name, f"Precondition failed: {why}")
            garbage.delete(self._store, key, propagation, self._now())

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener of each change from now on; calling the result ends that."""
        return self._store.subscribe(listener)

    def record_event(
        self, obj: Manifest, reason: str, message: str, *, type_: str = "Warning"
    ) -> None:
        """Record an Event about an object; the same one again only raises its count."""
        event = event_about(obj, reason, message, type_)
        with self._writing():
            key = key_for(EVENT, manifests.namespace(event), manifests.name(event))
            old = self._store.get(key) or {}
            event["count"] = old.get("count", 0) + 1
            event["lastTimestamp"] = self._now()
            event["firstTimestamp"] = old.get("firstTimestamp", event["lastTimestamp"])
            if old:
                self._store.put(key, admission.updated(self._resource(event), event, old))
            else:
                self._create(event)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._store.writing():
            yield
            garbage.collect(self._store, self._now())

    def _now(self) -> str:
        return self._clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _resource(self, obj: Manifest) -> Resource:
        found = self._resources.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
        if found is None:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        if not isinstance(obj.get("metadata"), dict):
            raise bad_request("metadata is missing")
        return found

    def _stored(self, obj: Manifest) -> tuple[Resource, Key, Manifest]:
        resource = self._resource(obj)
        key = key_for(resource.kind, manifests.namespace(obj), manifests.name(obj))
        old = self._store.get(key)
        if old is None:
            raise not_found(resource.kind, key[2])
        return resource, key, old

    def _create(self, obj: Manifest) -> Manifest:
        resource = self._resource(obj)
        meta = obj["metadata"]
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{uuid.uuid4().hex[:5]}"
        new = admission.created(resource, obj)
        key = key_for(resource.kind, manifests.namespace(new), manifests.name(new))
        if resource.kind.namespaced:
            self._require_namespace(resource.kind, key)
        if self._store.get(key) is not None:
            raise already_exists(resource.kind, key[2])
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": self._now()}
        if resource.has_generation:
            meta["generation"] = 1
        complete(new)
        if resource.kind == NAMESPACE:
            new["status"] = {"phase": "Active"}
        return self._store.put(key, new)

    def _require_namespace(self, kind: Kind, key: Key) -> None:
        if not key[1]:
            raise bad_request("an empty namespace may not be set during creation")
        found = self._store.get(key_for(NAMESPACE, None, key[1]))
        if found is None:
            raise not_found(NAMESPACE, key[1])
        if manifests.deleting(found):
            why = f"unable to create new content in namespace {key[1]} because it is being "
            text = f'{kind.resource} "{key[2]}" is forbidden: {why}terminated'
            raise ApiError(403, "Forbidden", text)
