"""Read the answer of a hook as strictly as Metacontroller does.

Idea: the answer is checked before anything is done with it: an unknown or a repeated key fails the
sync, and a null in a list ends the process. Children and attachments have a decoder of their own,
which takes the last of several equal keys.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hooks.sandbox.runner_state import RunnerCrashed, SyncError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hooks.core.manifests import Manifest
    from hooks.sandbox.runner_config import HookName

_REPLY = frozenset({"status", "children", "resyncAfterSeconds", "finalized"})
_DECORATION = frozenset(
    {"labels", "annotations", "status", "attachments", "resyncAfterSeconds", "finalized"}
)
_OBJECTS = frozenset({"children", "attachments"})
_RULES = frozenset({"relatedResources"})
_RULE = frozenset(
    {"apiVersion", "resource", "labelSelector", "namespaceSelector", "namespace", "names"}
)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of a CompositeController's hook."""

    status: Manifest
    children: list[Manifest]
    resync_after: float
    finalized: bool


@dataclass(frozen=True, slots=True)
class Decoration:
    """An answer of a DecoratorController's hook.

    A label or an annotation that is None goes; a status that is None stays as it is.
    """

    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]
    status: Manifest | None
    attachments: list[Manifest]
    resync_after: float
    finalized: bool


def reply(name: HookName, body: bytes, *, strict: bool) -> Reply:
    """Read the answer to sync or finalize.

    Raises:
        SyncError: It cannot be used.
        RunnerCrashed: A child is null.
    """
    document = _decoded(name, body, _REPLY if strict else None)
    return Reply(
        status=_typed(document, "status", dict) or {},
        children=_objects(name, document, "children"),
        resync_after=float(_typed(document, "resyncAfterSeconds", (int, float)) or 0),
        finalized=bool(_typed(document, "finalized", bool)),
    )


def decoration(name: HookName, body: bytes, *, strict: bool) -> Decoration:
    """Read the answer to sync or finalize of a DecoratorController.

    Raises:
        SyncError: It cannot be used.
        RunnerCrashed: An attachment is null.
    """
    document = _decoded(name, body, _DECORATION if strict else None)
    return Decoration(
        labels=_texts(document, "labels"),
        annotations=_texts(document, "annotations"),
        status=_typed(document, "status", dict),
        attachments=_objects(name, document, "attachments"),
        resync_after=float(_typed(document, "resyncAfterSeconds", (int, float)) or 0),
        finalized=bool(_typed(document, "finalized", bool)),
    )


def rules(body: bytes, *, strict: bool) -> list[Manifest]:
    """Read the answer to customize.

    Raises:
        SyncError: It cannot be used.
        RunnerCrashed: A rule is null.
    """
    document = _decoded("customize", body, _RULES if strict else None)
    found = _items(document, "relatedResources")
    if strict:
        for rule in found:
            _refuse_unknown("customize", rule, _RULE)
    return found


class _Repeated(dict[str, Any]):
    """A JSON object that remembers which of its keys came twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.names = [key for key, _ in pairs]

    @property
    def duplicates(self) -> list[str]:
        return sorted({name for name in self.names if self.names.count(name) > 1})


def _decoded(name: str, body: bytes, known: frozenset[str] | None) -> Manifest:
    try:
        document = json.loads(body)
        checked = json.loads(body, object_pairs_hook=_Repeated)
    except ValueError as error:
        raise SyncError(f"{name} hook failed: can't unmarshal webhookResponse") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SyncError(f"{name} hook failed: can't unmarshal webhookResponse: not an object")
    if known is not None:
        _refuse_unknown(name, document, known)
        _refuse_repeated(name, {key: checked[key] for key in checked if key not in _OBJECTS})
        _refuse_repeated_keys(name, checked)
    return document


def _refuse_unknown(name: str, document: Manifest, known: frozenset[str]) -> None:
    unknown = sorted(document.keys() - known)
    if unknown:
        texts = ", ".join(f'unknown field "{key}"' for key in unknown)
        raise SyncError(f"{name} hook failed: strict validation failed: {texts}")


def _refuse_repeated(name: str, value: object) -> None:
    if isinstance(value, _Repeated):
        _refuse_repeated_keys(name, value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _refuse_repeated(name, item)


def _refuse_repeated_keys(name: str, value: _Repeated) -> None:
    if value.duplicates:
        texts = ", ".join(f'duplicate field "{key}"' for key in value.duplicates)
        raise SyncError(f"{name} hook failed: strict validation failed: {texts}")


def _objects(name: str, document: Mapping[str, Any], key: str) -> list[Manifest]:
    found = _items(document, key)
    for obj in found:
        if not isinstance(obj.get("kind"), str) or not obj["kind"]:
            raise SyncError(f"{name} hook failed: Object 'Kind' is missing")
    return found


def _texts(document: Mapping[str, Any], key: str) -> dict[str, str | None]:
    found: dict[str, str | None] = _typed(document, key, dict) or {}
    if any(not isinstance(value, str | None) for value in found.values()):
        raise SyncError(f"can't unmarshal webhookResponse: {key} has a value that is no text")
    return found


def _items(document: Mapping[str, Any], key: str) -> list[Manifest]:
    """Return a list of objects; nothing and null are an empty one.

    Raises:
        SyncError: It is something else.
        RunnerCrashed: An item is null.
    """
    items = _typed(document, key, list) or []
    for item in items:
        if item is None:
            raise RunnerCrashed(f"panic: nil pointer dereference: {key} has a null item")
        if not isinstance(item, dict):
            raise SyncError(f"can't unmarshal webhookResponse: an item of {key} is not an object")
    return list(items)


def _typed(document: Mapping[str, Any], key: str, wanted: type[Any] | tuple[type[Any], ...]) -> Any:  # noqa: ANN401 - a JSON value of the wanted type, or None
    value = document.get(key)
    if value is None:
        return None
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise SyncError(f"can't unmarshal webhookResponse: {key} has the wrong type")
    return value
