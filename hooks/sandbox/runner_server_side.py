"""Metacontroller's other apply strategy: server-side apply, forced.

Idea: what we applied before is what we own. A field that we own and leave out goes, everybody
else's stay, and there is no annotation. A memory of this process skips the request when neither the
desired child nor the observed one changed since.

Limits: the API server's side is played here. Lists are replaced whole, save for owner references
and finalizers, and what we own is lost with the strategy object instead of kept with the child; an
invalid change is not noticed before a Recreate.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from hooks.core import manifests
from hooks.core.manifests import LAST_APPLIED
from hooks.sandbox import apply
from hooks.sandbox.kinds import invalid
from hooks.sandbox.openapi import Problem
from hooks.sandbox.runner_state import SyncError
from hooks.sandbox.runner_writes import add_owner

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest
    from hooks.sandbox.runner_children import Task
    from hooks.sandbox.runner_writes import Writer

_Key = tuple[str, str, str, str]


class ServerSideApply:
    """The strategy `server-side-apply`."""

    def __init__(self) -> None:
        self._owned: dict[str, Manifest] = {}
        self._seen: dict[_Key, tuple[str, str, str]] = {}

    def bring_about(self, writer: Writer, task: Task) -> None:
        """Apply a child by its method, unless nothing changed."""
        observed = task.observed
        if observed is None:
            self._apply(writer, task)
        elif not manifests.deleting(observed) and self._seen.get(_key(task)) != _state(
            task, observed
        ):
            match task.method:
                case "OnDelete":
                    self._seen[_key(task)] = _state(task, observed)
                case "Recreate":
                    self._recreate(writer, task, observed)
                case "InPlace":
                    self._apply(writer, task)

    def forget(self) -> None:
        """Lose the memory of this process; what we own is remembered by the API server."""
        self._seen.clear()

    def _apply(self, writer: Writer, task: Task) -> None:
        """Send the apply request: it creates, and takes over what it finds."""
        desired = _applied(task)
        name = manifests.name(desired)
        live = writer.cluster.get(task.kind, manifests.namespace(desired), name)
        if live is None:
            result = writer.create(desired)
        else:
            _drop_annotation(writer, task, live)
            merged = self._merged(live, desired)

            def change(current: Manifest) -> bool:
                current.clear()
                current.update(self._merged(live, desired))
                return True

            _require_one_controller(task, merged)
            result = writer.change(task.kind, live, change, deed="child")
        self._owned[manifests.uid(result)] = desired
        self._seen[_key(task)] = _state(task, result)

    def _recreate(self, writer: Writer, task: Task, observed: Manifest) -> None:
        """Delete a child that the apply would change; one with a generation only by its metadata.

        Raises:
            SyncError: The dry run changes the generation, which is taken for somebody else's work.
        """
        merged = self._merged(observed, _applied(task))
        if apply.deep_equal(_comparable(merged), _comparable(observed)):
            self._seen[_key(task)] = _state(task, observed)
            return
        if manifests.generation(observed) and not apply.deep_equal(
            _content(merged), _content(observed)
        ):
            raise SyncError("generation or UID changed during dry run for server-side apply")
        writer.delete(task.kind, observed)
        self._seen.pop(_key(task), None)

    def _merged(self, live: Manifest, desired: Manifest) -> Manifest:
        result = copy.deepcopy(live)
        _give_up(result, self._owned.get(manifests.uid(live), {}), desired)
        _take(result, copy.deepcopy(desired))
        return result


def _key(task: Task) -> _Key:
    meta = manifests.metadata(task.desired)
    return task.kind.group, task.kind.kind, meta.get("namespace", ""), meta.get("name", "")


def _state(task: Task, obj: Manifest) -> tuple[str, str, str]:
    """Return what must stay the same for a request to be skipped."""
    generation = manifests.generation(obj)
    version = f"g{generation}" if generation else str(obj["metadata"].get("resourceVersion"))
    return json.dumps(_applied(task), sort_keys=True), version, manifests.uid(obj)


def _applied(task: Task) -> Manifest:
    """Return what is sent: without status and system fields, with the owner, without nulls."""
    sent: Manifest = manifests.without_nulls(_comparable(task.desired))
    add_owner(sent, task.parent)
    return sent


def _comparable(obj: Manifest) -> Manifest:
    result = apply.without_last_applied(obj)
    result.pop("status", None)
    for field in apply.SYSTEM_FIELDS:
        result["metadata"].pop(field, None)
    return result


def _content(obj: Manifest) -> Manifest:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def _drop_annotation(writer: Writer, task: Task, live: Manifest) -> None:
    """Remove what the other strategy left on an observed child, by a request of its own."""
    if task.observed is None or LAST_APPLIED not in manifests.annotations(task.observed):
        return

    def change(current: Manifest) -> bool:
        return current["metadata"].get("annotations", {}).pop(LAST_APPLIED, None) is not None

    live.update(writer.change(task.kind, live, change, deed="child"))


def _require_one_controller(task: Task, merged: Manifest) -> None:
    references = merged["metadata"].get("ownerReferences") or ()
    if sum(bool(reference.get("controller")) for reference in references) > 1:
        text = "Only one reference can have Controller set to true"
        problem = Problem("metadata.ownerReferences", f"Invalid value: {text}")
        raise invalid(task.kind, manifests.name(merged), [problem])


def _give_up(live: Manifest, owned: Manifest, desired: Manifest) -> None:
    """Remove the fields that we own and do not want any more."""
    for key, value in owned.items():
        if isinstance(value, dict) and isinstance(live.get(key), dict):
            wanted = desired.get(key)
            _give_up(live[key], value, wanted if isinstance(wanted, dict) else {})
            if not live[key] and key not in desired:
                del live[key]
        elif key not in desired:
            live.pop(key, None)


def _take(live: Manifest, desired: Manifest, path: tuple[str, ...] = ()) -> None:
    """Set the fields that we want, whoever owns them."""
    for key, value in desired.items():
        here = (*path, key)
        if isinstance(value, dict) and isinstance(live.get(key), dict):
            _take(live[key], value, here)
        elif here == ("metadata", "ownerReferences"):
            live[key] = _united(live.get(key) or [], value)
        elif here == ("metadata", "finalizers"):
            live[key] = list(dict.fromkeys([*(live.get(key) or []), *value]))
        else:
            live[key] = value


def _united(live: list[Any], desired: list[Any]) -> list[Any]:
    merged = {reference["uid"]: reference for reference in [*live, *desired]}
    return list(merged.values())
