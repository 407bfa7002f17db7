"""Write to the cluster as Metacontroller's client does: read, change, write, again on conflict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.kinds import ApiError, not_found

if TYPE_CHECKING:
    from collections.abc import Callable

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind
    from hooks.sandbox.port import Cluster
    from hooks.sandbox.runner_state import Deed, Item, Statistics

_TRIES = 4


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes that are counted for one parent."""

    cluster: Cluster
    statistics: Statistics
    item: Item

    def change(
        self, kind: Kind, original: Manifest, change: Callable[[Manifest], bool], *, deed: Deed
    ) -> Manifest:
        """Change the live object until no one comes in between; status only, for that deed.

        Args:
            kind: its kind.
            original: which object; one that took its name later is another one.
            change: changes the object it gets, and says whether it did.
            deed: what is counted.

        Raises:
            ApiError: It is gone, or it cannot be written.
        """
        write = self.cluster.replace_status if deed == "status" else self.cluster.replace
        for left in reversed(range(_TRIES)):
            live = self._live(kind, original)
            if not change(live):
                break
            self.statistics.count(self.item, deed)
            try:
                return write(live)
            except ApiError as error:
                if error.reason != "Conflict" or not left:
                    raise
        return live

    def put(self, obj: Manifest, *, deed: Deed) -> Manifest:
        """Write an object as it was observed; status only, for that deed."""
        self.statistics.count(self.item, deed)
        write = self.cluster.replace_status if deed == "status" else self.cluster.replace
        return write(obj)

    def create(self, obj: Manifest) -> Manifest:
        """Create a child."""
        self.statistics.count(self.item, "child")
        return self.cluster.create(obj)

    def replace(self, obj: Manifest) -> Manifest:
        """Write a child, but not its status."""
        self.statistics.count(self.item, "child")
        return self.cluster.replace(obj)

    def delete(self, kind: Kind, obj: Manifest) -> None:
        """Delete exactly this child; one that is gone already is deleted enough."""
        self.statistics.count(self.item, "child")
        try:
            self.cluster.delete(
                kind, manifests.namespace(obj), manifests.name(obj), uid=manifests.uid(obj)
            )
        except ApiError as error:
            if error.reason != "NotFound":
                raise

    def _live(self, kind: Kind, original: Manifest) -> Manifest:
        name = manifests.name(original)
        live = self.cluster.get(kind, manifests.namespace(original), name)
        if live is None or manifests.uid(live) != manifests.uid(original):
            raise not_found(kind, name)
        return live


def has_finalizer(obj: Manifest, name: str) -> bool:
    """Say whether an object has a finalizer."""
    return name in (manifests.metadata(obj).get("finalizers") or ())


def add_finalizer(name: str) -> Callable[[Manifest], bool]:
    """Return the change that adds a finalizer."""

    def change(obj: Manifest) -> bool:
        if has_finalizer(obj, name):
            return False
        obj["metadata"]["finalizers"] = [*(obj["metadata"].get("finalizers") or ()), name]
        return True

    return change


def remove_finalizer(name: str) -> Callable[[Manifest], bool]:
    """Return the change that takes a finalizer away."""

    def change(obj: Manifest) -> bool:
        if not has_finalizer(obj, name):
            return False
        obj["metadata"]["finalizers"] = [
            one for one in obj["metadata"]["finalizers"] if one != name
        ]
        return True

    return change


def controller_reference(parent: Manifest) -> Manifest:
    """Return the reference by which a parent owns its children."""
    return {
        "apiVersion": parent["apiVersion"],
        "kind": parent["kind"],
        "name": manifests.name(parent),
        "uid": manifests.uid(parent),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def add_owner(obj: Manifest, parent: Manifest) -> None:
    """Make a parent the controller of an object, unless it owns it already."""
    references = obj["metadata"].get("ownerReferences") or []
    if all(reference.get("uid") != manifests.uid(parent) for reference in references):
        obj["metadata"]["ownerReferences"] = [*references, controller_reference(parent)]
