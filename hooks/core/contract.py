"""The webhook contract of Metacontroller: what it POSTs, and what it may be answered.

A 200 is the whole truth to Metacontroller: status is replaced, a child that is not listed is
deleted, and a null item ends its process. So a reply is checked here before it leaves, and one
that fails the check is a bug (500), which changes nothing in the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hooks.core import manifests
from hooks.core.manifests import Manifest

MAX_CHILD_BYTES = 128 * 1024
"""A child travels a second time inside its last-applied annotation; all annotations of an object
may hold 256 KiB."""

Objects = Mapping[str, Mapping[str, Manifest]]
"""Objects as Metacontroller groups them: `Kind.group/version` -> `namespace/name` -> object."""


class BadRequest(Exception):
    """The body is not what Metacontroller sends; nothing was done."""


class BadReply(Exception):
    """Our own answer would do harm; a bug."""


@dataclass(frozen=True, slots=True)
class Request:
    """One sync or finalize call (facts of `version: v2` hooks).

    Attributes:
        decorates: a DecoratorController asks: the parent is its `object`, the children are its
            `attachments`. Its customize calls cannot be told from others.
    """

    parent: Manifest
    children: Objects = field(default_factory=dict)
    related: Objects = field(default_factory=dict)
    finalizing: bool = False
    controller: Manifest = field(default_factory=dict)
    decorates: bool = False

    def observed(self) -> Iterator[Manifest]:
        """Yield every observed child, terminating ones too."""
        for group in self.children.values():
            yield from group.values()


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to sync and finalize.

    Attributes:
        status: replaces the parent's status.
        children: all children that should exist; those left out are deleted.
        recheck: seconds until Metacontroller asks again, or None.
        finalized: our finalizer may go; only ever true in finalize.
    """

    status: Manifest
    children: tuple[Manifest, ...] = ()
    recheck: float | None = None
    finalized: bool = False


def parse(body: bytes) -> Request:
    """Read a request body.

    Raises:
        BadRequest: it is no JSON, or has not the shape of a Metacontroller request.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON") from error
    if not isinstance(document, dict):
        raise BadRequest("the body is not a JSON object")
    decorates = "object" in document
    parent = document.get("object" if decorates else "parent")
    if not isinstance(parent, dict) or not isinstance(parent.get("metadata"), dict):
        raise BadRequest("parent is missing or not an object with metadata")
    if not manifests.name(parent):
        raise BadRequest("parent.metadata.name is missing")
    finalizing = document.get("finalizing", False)
    if not isinstance(finalizing, bool):
        raise BadRequest("finalizing is not a boolean")
    return Request(
        parent=parent,
        children=_objects(document, "attachments" if decorates else "children"),
        related=_objects(document, "related"),
        finalizing=finalizing,
        controller=document.get("controller") or {},
        decorates=decorates,
    )


def _objects(document: Manifest, key: str) -> Objects:
    groups = document.get(key) or {}
    shaped = isinstance(groups, dict) and all(
        isinstance(group, dict) and all(isinstance(item, dict) for item in group.values())
        for group in groups.values()
    )
    if not shaped:
        raise BadRequest(f"{key} is not a map of kinds to maps of objects")
    return groups


def render(response: Response, *, kinds: frozenset[tuple[str, str]], finalizing: bool) -> bytes:
    """Write the answer, byte for byte the same for the same response.

    Args:
        response: what the hook answers.
        kinds: the (apiVersion, kind) pairs that the controller's manifest lists as children.
        finalizing: what the request said.

    Raises:
        BadReply: the answer would crash Metacontroller or delete what it must not.
    """
    check(response, kinds=kinds, finalizing=finalizing)
    document: Manifest = {"status": response.status, "children": list(response.children)}
    if response.recheck is not None and response.recheck > 0:
        document["resyncAfterSeconds"] = response.recheck
    if finalizing:
        document["finalized"] = response.finalized
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def check(response: Response, *, kinds: frozenset[tuple[str, str]], finalizing: bool) -> None:
    """Refuse an answer that would do harm; see render.

    Raises:
        BadReply: with the first problem.
    """
    for problem in _problems(response, kinds, finalizing=finalizing):
        raise BadReply(problem)


def _problems(
    response: Response, kinds: frozenset[tuple[str, str]], *, finalizing: bool
) -> Iterator[str]:
    if response.finalized and not finalizing:
        yield "finalized outside of finalize"
    yield from (f"status{path} is null" for path in manifests.nulls(response.status))
    seen: set[tuple[str, str, str]] = set()
    for child in response.children:
        kind = (str(child.get("apiVersion")), str(child.get("kind")))
        identity = (kind[1], manifests.namespace(child), manifests.name(child))
        label = "/".join(identity)
        if kind not in kinds:
            yield f"{label} is of a kind that the controller does not list"
        if not identity[2]:
            yield f"{label} has no name"
        if identity in seen:
            yield f"{label} is listed twice"
        seen.add(identity)
        yield from (f"{label}{path} is null" for path in manifests.nulls(child))
        if len(json.dumps(child).encode()) >= MAX_CHILD_BYTES:
            yield f"{label} is larger than {MAX_CHILD_BYTES} bytes"


def must_finalize(request: Request) -> bool:
    """Say whether a finalize call really asks to take the parent's belongings apart.

    It does not for a live parent that merely stopped matching a labelSelector, nor when our
    finalizer is gone already and another one holds the parent.
    """
    meta = manifests.metadata(request.parent)
    controller = manifests.name(request.controller)
    finalizer = f"metacontroller.io/compositecontroller-{controller}"
    return bool(meta.get("deletionTimestamp")) and finalizer in (meta.get("finalizers") or ())


def hold(request: Request) -> tuple[Manifest, ...]:
    """Return the children as they are, so that nothing changes.

    Under dynamic apply that is each child's last-applied annotation. Under server-side apply
    there is none, and the observed child is cut down to the parts that a hook can send.
    """
    return tuple(_last_applied(child) or _cut(child) for child in request.observed())


def _last_applied(child: Manifest) -> Manifest | None:
    text = manifests.annotations(child).get(manifests.LAST_APPLIED)
    try:
        applied = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    same = isinstance(applied, dict) and manifests.name(applied) == manifests.name(child)
    return applied if same else None


def _cut(child: Manifest) -> Manifest:
    meta = manifests.metadata(child)
    notes = {
        key: value
        for key, value in manifests.annotations(child).items()
        if key != manifests.LAST_APPLIED
    }
    kept: Manifest = {
        "name": meta.get("name"),
        "namespace": meta.get("namespace"),
        "labels": meta.get("labels") or None,
        "annotations": notes or None,
    }
    cut: Manifest = manifests.without_nulls(
        {key: value for key, value in child.items() if key != "status"} | {"metadata": kept}
    )
    return cut
