"""Judge objects by the structural schema of their CRD, as the API server does.

Idea: an `ObjectSchema` prunes and defaults what comes in, then lists every problem at once, worded
like the real server: schema (openapi.py), unique lists, CEL rules (rules.py). Metadata, which no
schema describes, has a function of its own.

Limits: an old error is an error again on update (admission forgives it), and of metadata only what
a manifest usually gets wrong is checked.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from hooks.sandbox.openapi import Problem, SchemaValidator, child_schema, shown
from hooks.sandbox.rules import Node, broken_rules, check_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hooks.core.manifests import Manifest

PRESERVE = "x-kubernetes-preserve-unknown-fields"
_LIST_TYPE = "x-kubernetes-list-type"
_ROOT = frozenset({"apiVersion", "kind", "metadata"})
_UNCHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_LABEL_LENGTH, _SUBDOMAIN_LENGTH, _ANNOTATIONS_SIZE = 63, 253, 256 * 1024


class ObjectSchema:
    """The openAPIV3Schema of one version of a kind."""

    def __init__(self, schema: Manifest) -> None:
        self._schema = schema
        self._validator = SchemaValidator(schema)
        check_rules(schema)

    def prepare(self, obj: Manifest) -> None:
        """Drop unknown fields and needless nulls, then fill in defaults, in place."""
        _prune(obj, self._schema, kept=_ROOT)
        _default(obj, self._schema)

    def problems(self, obj: Manifest, old: Manifest | None = None) -> list[Problem]:
        """List all problems; `old` is the stored object on update, None on creation."""
        nodes = list(_nodes(Node(self._schema, obj, old, "")))
        found = self._validator.problems(obj)
        found += [problem for node in nodes for problem in _duplicates(node)]
        if any(problem.blocking for problem in found):
            return [*found, Problem("", _UNCHECKED)]
        return found + [problem for node in nodes for problem in broken_rules(node)]


def metadata_problems(obj: Manifest, old: Manifest | None = None) -> list[Problem]:
    """List what is wrong with metadata; `old` is the stored object on update."""
    meta = obj["metadata"]
    found = list(_name_problems(str(meta.get("name") or ""), label=obj["kind"] == "Namespace"))
    found += [
        Problem("metadata.labels", f"Invalid value: {shown(value)}: must be a valid label value")
        for value in (meta.get("labels") or {}).values()
        if len(value) > _LABEL_LENGTH or not re.fullmatch(_LABEL_VALUE, value)
    ]
    found += [
        Problem(f"metadata.ownerReferences[{index}].{key}", "Required value", blocking=True)
        for index, reference in enumerate(meta.get("ownerReferences") or ())
        for key in ("apiVersion", "kind", "name", "uid")
        if not reference.get(key)
    ]
    annotations = meta.get("annotations") or {}
    if sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) > _ANNOTATIONS_SIZE:
        text = f"Too long: may not be more than {_ANNOTATIONS_SIZE} bytes"
        found.append(Problem("metadata.annotations", text))
    before = (old or {}).get("metadata") or {}
    added = sorted(set(meta.get("finalizers") or ()) - set(before.get("finalizers") or ()))
    if before.get("deletionTimestamp") and added:
        text = "no new finalizers can be added if the object is being deleted"
        text = f"Forbidden: {text}, found new finalizers {shown(added)}"
        found.append(Problem("metadata.finalizers", text))
    return found


def _name_problems(name: str, *, label: bool) -> Iterator[Problem]:
    if not name:
        text = "Required value: name or generateName is required"
        yield Problem("metadata.name", text, blocking=True)
        return
    limit = _LABEL_LENGTH if label else _SUBDOMAIN_LENGTH
    if len(name) > limit:
        text = f"Invalid value: {shown(name)}: must be no more than {limit} bytes"
        yield Problem("metadata.name", text)
    if not re.fullmatch(_LABEL if label else _SUBDOMAIN, name):
        what, signs = ("label", "'-'") if label else ("subdomain", "'-' or '.'")
        text = f"a lowercase RFC 1123 {what} must consist of lower case alphanumeric characters, "
        text += f"{signs}, and must start and end with an alphanumeric character"
        yield Problem("metadata.name", f"Invalid value: {shown(name)}: {text}")


def _prune(value: object, schema: Manifest, kept: frozenset[str] = frozenset()) -> None:
    if isinstance(value, list):
        inherited = {PRESERVE: True} if schema.get(PRESERVE) else {}
        for item in value:
            _prune(item, {**inherited, **(schema.get("items") or {})})
    elif isinstance(value, dict):
        for key in [key for key in value if key not in kept]:
            child = child_schema(schema, key)
            if child is not None:
                _prune(value[key], child)
            elif not schema.get(PRESERVE):
                del value[key]


def _default(value: object, schema: Manifest) -> None:
    if isinstance(value, list):
        for item in value:
            _default(item, schema.get("items") or {})
    elif isinstance(value, dict):
        for key in {**(schema.get("properties") or {}), **value}:
            child = child_schema(schema, key)
            if child is None:
                continue
            if value.get(key) is None and not (key in value and child.get("nullable")):
                value.pop(key, None)
                if "default" in child:
                    value[key] = copy.deepcopy(child["default"])
            _default(value.get(key), child)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node.value, dict):
        yield from _fields(node)
    elif isinstance(node.value, list):
        yield from _items(node)


def _fields(node: Node) -> Iterator[Node]:
    before = node.old if isinstance(node.old, dict) else {}
    for key, value in node.value.items():
        child = child_schema(node.schema, key)
        if child is not None:
            declared = key in node.schema.get("properties", ())
            path = f"{node.path}.{key}".lstrip(".") if declared else f"{node.path}[{key}]"
            yield from _nodes(Node(child, value, before.get(key), path))


def _items(node: Node) -> Iterator[Node]:
    # Only in a list of type map can an item be told to be the one that was there before.
    before: dict[str, Any] = {}
    if node.schema.get(_LIST_TYPE) == "map" and isinstance(node.old, list):
        before = {_identity(node.schema, item): item for item in node.old}
    for index, item in enumerate(node.value):
        old = before.get(_identity(node.schema, item))
        child = node.schema.get("items") or {}
        yield from _nodes(Node(child, item, old, f"{node.path}[{index}]"))


def _duplicates(node: Node) -> Iterator[Problem]:
    if not isinstance(node.value, list) or node.schema.get(_LIST_TYPE) not in ("set", "map"):
        return
    seen: set[str] = set()
    for index, item in enumerate(node.value):
        identity = _identity(node.schema, item)
        if identity in seen:
            yield Problem(f"{node.path}[{index}]", f"Duplicate value: {identity}")
        seen.add(identity)


def _identity(schema: Manifest, item: object) -> str:
    if schema.get(_LIST_TYPE) == "map" and isinstance(item, dict):
        keys = schema.get("x-kubernetes-list-map-keys", ())
        item = {key: item[key] for key in keys if key in item}
    return shown(item)
