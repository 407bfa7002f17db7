"""Answer what the API double serves, as `kubectl` and dynamic clients ask first.

Limits: no aggregated discovery and no OpenAPI document; clients fall back to this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Resource


def discovered(path: str, resources: Sequence[Resource]) -> Manifest | None:
    """Return the discovery document at a path, None when there is none."""
    if path == "/version":
        return {"major": "1", "minor": "36", "gitVersion": "v1.36.0+double"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        groups = [_group(one) for one in sorted({one.kind.api_version for one in resources})]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(filter(None, groups))}
    version = path.removeprefix("/apis/") if path != "/api/v1" else "v1"
    served = [one for one in resources if one.kind.api_version == version]
    if not served:
        return None
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version}
    return {**head, "resources": [entry for one in served for entry in _entries(one)]}


def _group(api_version: str) -> Manifest | None:
    name, _, version = api_version.rpartition("/")
    served = {"groupVersion": api_version, "version": version}
    return {"name": name, "versions": [served], "preferredVersion": served} if name else None


def _entries(resource: Resource) -> Iterator[Manifest]:
    kind = resource.kind
    entry = {"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced}
    entry |= {"singularName": kind.kind.lower()}
    yield {**entry, "verbs": ["create", "delete", "get", "list", "patch", "update"]}
    if resource.has_status:
        yield {**entry, "name": f"{kind.plural}/status", "verbs": ["get", "patch", "update"]}
