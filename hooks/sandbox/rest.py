"""The REST dialect of the API double: one request in, one JSON answer out, no sockets.

Idea: a path names a resource, a namespace, an object and perhaps its status; every refusal of the
cluster becomes a Status object.

Limits: no watch, dry run, deletion of collections, server-side apply or JSON patch: all refused.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from hooks.core import manifests
from hooks.sandbox.admission import merge_patched
from hooks.sandbox.authorization import by_roles, forbidden
from hooks.sandbox.discovery import discovered
from hooks.sandbox.kinds import ApiError, Resource, bad_request, not_found
from hooks.sandbox.selectors import field_selector, label_selector, page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hooks.core.manifests import Manifest
    from hooks.sandbox.authorization import Allow
    from hooks.sandbox.cluster import MemoryCluster
    from hooks.sandbox.port import Propagation

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?P<status>/status)?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PROPAGATIONS: dict[str, Propagation] = {
    "Background": "Background",
    "Foreground": "Foreground",
    "Orphan": "Orphan",
}
_META = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}


@dataclass(frozen=True, slots=True)
class Request:
    """An authenticated request."""

    user: str
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class _Target:
    resource: Resource
    namespace: str | None
    name: str | None
    status: bool


def failure(error: ApiError) -> Manifest:
    """Return the Status object of a refusal."""
    details = {"details": error.details} if error.details else {}
    return {
        **details,
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "code": error.status,
    }


class Api:
    """A cluster behind REST. `allow` may be exchanged at any time."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self.allow: Allow = by_roles(cluster)

    def answer(self, request: Request) -> tuple[int, Manifest]:
        """Return the HTTP status and the body."""
        try:
            found = None
            if request.method == "GET":
                found = discovered(request.path, self._cluster.resources)
            return (200, found) if found else self._act(request, self._target(request.path))
        except ApiError as error:
            return error.status, failure(error)

    def _target(self, path: str) -> _Target:
        match = _PATH.fullmatch(path)
        unknown = ApiError(404, "NotFound", "the server could not find the requested resource")
        if match is None:
            raise unknown
        api_version = f"{match['group'] or ''}/{match['version']}".lstrip("/")
        for resource in self._cluster.resources:
            kind = resource.kind
            if (kind.api_version, kind.plural) == (api_version, match["plural"]):
                if match["status"] and not resource.has_status:
                    raise unknown
                return _Target(resource, match["namespace"], match["name"], bool(match["status"]))
        raise unknown

    def _act(self, request: Request, target: _Target) -> tuple[int, Manifest]:
        read = "get" if target.name else "list"
        verb = read if request.method == "GET" else _VERBS.get(request.method, "")
        self._authorize(request.user, verb, target)
        if request.query.get("dryRun"):
            raise bad_request("dryRun is not supported by this double")
        match (request.method, bool(target.name)):
            case ("GET", True):
                return 200, self._get(request, target)
            case ("GET", False) if request.query.get("watch") not in ("true", "1"):
                return 200, self._list(request, target)
            case ("POST", False):
                return 201, self._cluster.create(_written(request, target))
            case ("PUT", True):
                return 200, self._write(_written(request, target), target)
            case ("PATCH", True):
                return 200, self._patch(request, target)
            case ("DELETE", True) if not target.status:
                return 200, self._delete(request, target)
        text = "the server does not allow this method on the requested resource"
        raise ApiError(405, "MethodNotAllowed", text)

    def _authorize(self, user: str, verb: str, target: _Target) -> None:
        kind, namespace, name = target.resource.kind, target.namespace, target.name
        resource = f"{kind.plural}/status" if target.status else kind.plural
        if not self.allow(user, verb, kind.group, resource, namespace, name):
            raise forbidden(user, verb, kind, resource, namespace, name)

    def _stored(self, target: _Target) -> Manifest:
        name = target.name or ""
        found = self._cluster.get(target.resource.kind, target.namespace, name)
        if found is None:
            raise not_found(target.resource.kind, name)
        return found

    def _get(self, request: Request, target: _Target) -> Manifest:
        found = self._stored(target)
        if "as=PartialObjectMetadata;" in request.headers.get("Accept", "") + ";":
            return {**_META, "metadata": found["metadata"]}
        return found

    def _list(self, request: Request, target: _Target) -> Manifest:
        query, kind = request.query, target.resource.kind
        matches = (
            field_selector(query.get("fieldSelector", ""), target.resource.selectable),
            label_selector(query.get("labelSelector", "")),
        )
        # Taken first: a list may be newer than the version it is given, never older.
        version = self._cluster.resource_version
        found = self._cluster.list(kind, target.namespace)
        items, more = page([one for one in found if all(match(one) for match in matches)], query)
        head = {"apiVersion": kind.api_version, "kind": f"{kind.kind}List"}
        if "as=PartialObjectMetadataList;" in request.headers.get("Accept", "") + ";":
            head = {**_META, "kind": "PartialObjectMetadataList"}
            items = [{**_META, "metadata": item["metadata"]} for item in items]
        return {**head, "metadata": {"resourceVersion": version, **more}, "items": items}

    def _write(self, obj: Manifest, target: _Target) -> Manifest:
        return self._cluster.replace_status(obj) if target.status else self._cluster.replace(obj)

    def _patch(self, request: Request, target: _Target) -> Manifest:
        if request.headers.get("Content-Type", "").split(";")[0] != "application/merge-patch+json":
            text = "only application/merge-patch+json is supported by this double"
            raise ApiError(415, "UnsupportedMediaType", text)
        patch = _json(request.body)
        while True:
            merged = cast("Manifest", merge_patched(self._stored(target), patch))
            try:
                return self._write(_placed(merged, target), target)
            except ApiError as error:
                # As the real server: only a patch that names a version can be out of date.
                if error.reason != "Conflict" or "resourceVersion" in manifests.metadata(patch):
                    raise

    def _delete(self, request: Request, target: _Target) -> Manifest:
        options = _json(request.body) if request.body else {}
        uid = (options.get("preconditions") or {}).get("uid")
        asked = options.get("propagationPolicy") or request.query.get("propagationPolicy")
        propagation = _PROPAGATIONS.get(asked or "Background")
        if propagation is None:
            raise bad_request(f"propagationPolicy {asked} is unknown")
        kind, namespace, name = target.resource.kind, target.namespace, target.name or ""
        before = self._stored(target)
        self._cluster.delete(kind, namespace, name, uid=uid, propagation=propagation)
        after = self._cluster.get(kind, namespace, name)
        if after and manifests.uid(after) == manifests.uid(before):
            return after
        details = {"name": name, "kind": kind.plural, "uid": manifests.uid(before)}
        details |= {"group": kind.group} if kind.group else {}
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return {**head, "details": details}


def _written(request: Request, target: _Target) -> Manifest:
    return _placed(_json(request.body), target)


def _placed(obj: Manifest, target: _Target) -> Manifest:
    """Check that an object belongs where the path says."""
    kind, meta = target.resource.kind, obj.setdefault("metadata", {})
    if (obj.get("apiVersion"), obj.get("kind")) != (kind.api_version, kind.kind):
        raise bad_request(f"the object provided is no {kind.kind} of {kind.api_version}")
    if not isinstance(meta, dict):
        raise bad_request("metadata is not an object")
    if target.name and meta.setdefault("name", target.name) != target.name:
        text = f"the name of the object ({meta['name']}) does not match the name on the URL"
        raise bad_request(f"{text} ({target.name})")
    if kind.namespaced and meta.setdefault("namespace", target.namespace) != target.namespace:
        text = "the namespace of the provided object does not match the namespace sent on"
        raise bad_request(f"{text} the request")
    return obj


def _json(body: bytes) -> Manifest:
    try:
        found = json.loads(body)
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise bad_request("the body is not an object")
    return found
