"""Make the children of a parent what its hook answered.

Idea: everything observed and not desired is deleted, then each desired child is created or, by the
update method of its kind, changed. One failure does not keep the others from being tried.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from hooks.core import manifests
from hooks.sandbox import apply
from hooks.sandbox.kinds import ApiError, Kind
from hooks.sandbox.runner_claim import CONTROLLER_UID, Objects, child_selector, key
from hooks.sandbox.runner_labels import matches
from hooks.sandbox.runner_state import SyncError
from hooks.sandbox.runner_writes import add_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.runner_config import ControllerSpec, Method
    from hooks.sandbox.runner_writes import Writer

_SWALLOWED = ("NotFound", "Conflict")


@dataclass(frozen=True, slots=True)
class Task:
    """One desired child, and what is there of it."""

    kind: Kind
    method: Method
    parent: Manifest
    observed: Manifest | None
    desired: Manifest


class Strategy(Protocol):
    """How one desired child is brought about."""

    def bring_about(self, writer: Writer, task: Task) -> None:
        """Create the child, or change it by its method."""

    def forget(self) -> None:
        """Lose what a process keeps in memory."""


Groups = dict[tuple[str, str], "Objects"]
"""Objects by apiVersion and kind, then by name."""


def grouped(parent: Manifest, children: Sequence[Manifest]) -> Groups:
    """Group the children of an answer; of equal ones the last counts."""
    groups: Groups = {}
    for child in copy.deepcopy(list(children)):
        meta = child.setdefault("metadata", {})
        if not meta.get("namespace"):
            meta["namespace"] = manifests.namespace(parent)
        if not meta["namespace"]:
            del meta["namespace"]
        groups.setdefault((str(child.get("apiVersion")), child["kind"]), {})[key(child)] = child
    return groups


def desired_children(
    spec: ControllerSpec, parent: Manifest, children: Sequence[Manifest]
) -> Groups:
    """Group the children of an answer, each with the label that it needs.

    Raises:
        SyncError: A child would not match the parent's selector.
    """
    selector = child_selector(spec, parent)
    groups = grouped(parent, children)
    for child in (child for group in groups.values() for child in group.values()):
        _label(spec, parent, child)
        if not matches(selector, child):
            what = f"{child['kind']} {key(child)}"
            raise SyncError(f"labels on desired child {what} don't match parent selector")
    return groups


def _label(spec: ControllerSpec, parent: Manifest, child: Manifest) -> None:
    labels = child["metadata"].get("labels") or {}
    if not all(isinstance(value, str) for value in labels.values()):
        raise SyncError(f"invalid labels on desired child {child['kind']} {key(child)}")
    if spec.generate_selector and CONTROLLER_UID not in labels:
        child["metadata"]["labels"] = {**labels, CONTROLLER_UID: manifests.uid(parent)}


class Children:
    """The management of children for one sync of one parent."""

    def __init__(self, spec: ControllerSpec, writer: Writer, strategy: Strategy) -> None:
        self._spec = spec
        self._writer = writer
        self._strategy = strategy
        self._problems: list[str] = []

    def manage(
        self,
        observed: Mapping[Kind, Objects],
        desired: Mapping[tuple[str, str], Objects],
        parent: Manifest,
    ) -> None:
        """Delete, then create and update, in the order of group, version and kind.

        Raises:
            SyncError: Something failed.
        """
        for kind in sorted(observed, key=lambda kind: _order(kind.api_version, kind.kind)):
            wanted = desired.get((kind.api_version, kind.kind), {})
            for name, child in observed[kind].items():
                if name not in wanted and not manifests.deleting(child):
                    self._attempt(child, partial(self._writer.delete, kind, child))
        kinds = {(kind.api_version, kind.kind): kind for kind in self._writer.cluster.kinds}
        for group in sorted(desired, key=lambda group: _order(*group)):
            if group not in kinds:
                self._problems.append(f"discovery: can't find kind {group[1]} in {group[0]}")
                continue
            self._bring_about(kinds[group], observed, desired[group], parent)
        if self._problems:
            raise SyncError(f"can't reconcile children: [{', '.join(self._problems)}]")

    def _bring_about(
        self, kind: Kind, observed: Mapping[Kind, Objects], children: Objects, parent: Manifest
    ) -> None:
        method = self._spec.method(kind)
        for name, child in children.items():
            task = Task(kind, method, parent, observed.get(kind, {}).get(name), child)
            self._attempt(child, partial(self._strategy.bring_about, self._writer, task))

    def _attempt(self, child: Manifest, deed: Callable[[], None]) -> None:
        try:
            deed()
        except (ApiError, apply.BadLastApplied, SyncError) as error:
            self._problems.append(f"{child['kind']} {key(child)}: {error}")


class DynamicApply:
    """The default: a three-way merge with the annotation of what was applied last."""

    def bring_about(self, writer: Writer, task: Task) -> None:
        """Create a missing child, or change one that differs by its method."""
        observed = task.observed
        if observed is None:
            _create(writer, task)
            return
        result = apply.updated(observed, task.desired)
        if apply.deep_equal(result, observed) or manifests.deleting(observed):
            return
        if task.method == "Recreate":
            writer.delete(task.kind, observed)
        elif task.method == "InPlace":
            _replace(writer, result)

    def forget(self) -> None:
        """Lose nothing: all it knows is in the annotation."""


def _create(writer: Writer, task: Task) -> None:
    """Create a child; a foreign object of that name goes unnoticed."""
    result = copy.deepcopy(task.desired)
    apply.record_last_applied(result, task.desired)
    add_owner(result, task.parent)
    try:
        writer.create(result)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


def _replace(writer: Writer, result: Manifest) -> None:
    try:
        writer.replace(result)
    except ApiError as error:
        if error.reason not in _SWALLOWED:
            raise


def _order(api_version: str, kind: str) -> tuple[str, str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version, kind
