"""A small custom resource of each scope, and a cluster that serves them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hooks.sandbox.cluster import Kind, MemoryCluster

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest

API = "example.com/v1"
WIDGET = Kind(API, "Widget", "widgets", namespaced=True)
GADGET = Kind(API, "Gadget", "gadgets", namespaced=False)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BORN = "2026-01-02T03:04:05Z"

_PART = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
    "x-kubernetes-validations": [
        {"rule": "!has(self.size) || self.size > 0", "message": "a part has a size"},
        {
            "rule": "!has(oldSelf.size) || has(self.size) && self.size >= oldSelf.size",
            "messageExpression": "'a part of ' + string(oldSelf.size) + ' never shrinks'",
        },
    ],
}
_SPEC = {
    "type": "object",
    "required": ["owner"],
    "properties": {
        "owner": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 8},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "port": {"type": "integer", "format": "int32", "minimum": 1},
        "since": {"type": "string", "format": "date-time"},
        "note": {"type": "string", "nullable": True},
        "limit": {"x-kubernetes-int-or-string": True},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "parts": {
            "type": "array",
            "maxItems": 3,
            "items": _PART,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "options": {
            "type": "object",
            "default": {},
            "properties": {"namespace": {"type": "string", "default": "any"}},
            "x-kubernetes-validations": [
                {"rule": "self.__namespace__ != 'none'", "reason": "FieldValueForbidden"}
            ],
        },
    },
}
_ROOT_RULES = [
    {"rule": "size(self.metadata.name + self.spec.owner) < 20", "fieldPath": ".spec.owner"},
    {
        "rule": "!has(oldSelf.status) || self.spec.owner == oldSelf.spec.owner",
        "message": "spec.owner is immutable once there is a status",
        "fieldPath": ".spec.owner",
    },
]


def crd(kind: Kind, **schema: Any) -> Manifest:  # noqa: ANN401 - schemas are untyped
    """Return the CRD of a kind whose spec has that schema."""
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    root = {"type": "object", "properties": {"spec": _SPEC, "status": status}} | schema
    version = {
        "name": "v1",
        "served": True,
        "schema": {"openAPIV3Schema": root},
        "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": ".spec.owner"}],
    }
    return {
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {"kind": kind.kind, "plural": kind.plural},
            "versions": [version],
        }
    }


def cluster() -> MemoryCluster:
    """Return an empty cluster with the namespaces default and other."""
    crds = [crd(WIDGET, **{"x-kubernetes-validations": _ROOT_RULES}), crd(GADGET)]
    return MemoryCluster(crds, lambda: NOW, namespaces=("default", "other"))


def widget(name: str = "w", namespace: str = "default", **fields: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    """Return a valid Widget; fields are top-level."""
    return {
        "apiVersion": API,
        "kind": "Widget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"owner": "bob"},
    } | fields


def secret(name: str = "s", namespace: str = "default", **fields: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    """Return a Secret without data; fields are top-level."""
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta} | fields


def owned_by(owner: Manifest, obj: Manifest, **reference: Any) -> Manifest:  # noqa: ANN401 - as above
    """Return the object with an owner reference."""
    named = {key: owner["metadata"][key] for key in ("name", "uid")}
    about = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **named, **reference}
    metadata = obj["metadata"]
    owners = [*metadata.get("ownerReferences", []), about]
    return {**obj, "metadata": {**metadata, "ownerReferences": owners}}


def meta(obj: Manifest | None, *keys: str) -> list[Any]:
    """Return fields of metadata, None for each that is absent."""
    assert obj is not None
    return [obj["metadata"].get(key) for key in keys]


def edited(obj: Manifest, **metadata: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    """Return the object with other metadata."""
    return obj | {"metadata": obj["metadata"] | metadata}


def populated() -> MemoryCluster:
    """Return a cluster with the Widgets a (bob), b (eve), c (bob), d (bob) and the Secret s."""
    world = cluster()
    for name, owner in (("a", "bob"), ("b", "eve"), ("c", "bob"), ("d", "bob")):
        world.create(edited(widget(name), labels={"for": owner}) | {"spec": {"owner": owner}})
    world.create(secret(data={"password": "c2VjcmV0"}))
    return world
