"""What is deleted goes when it may, and takes what belongs to it along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hooks.sandbox.cluster import EXTERNAL_SECRET, NAMESPACE, SECRET, ApiError, MemoryCluster
from tests.sandbox.widgets import (
    API,
    BORN,
    GADGET,
    WIDGET,
    cluster,
    edited,
    meta,
    owned_by,
    secret,
    widget,
)

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest
    from hooks.sandbox.cluster import Propagation

GADGET_G = {
    "apiVersion": API,
    "kind": "Gadget",
    "metadata": {"name": "g"},
    "spec": {"owner": "bob"},
}


@pytest.fixture
def world() -> MemoryCluster:
    return cluster()


@pytest.fixture
def told(world: MemoryCluster) -> list[tuple[str, str, str]]:
    """Return what listeners are told: change, kind and name."""
    changes: list[tuple[str, str, str]] = []
    world.subscribe(lambda c, obj: changes.append((c, obj["kind"], obj["metadata"]["name"])))
    return changes


def external_secret() -> Manifest:
    metadata = {"name": "e", "namespace": "default"}
    return {"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": metadata}


def test_an_object_with_a_finalizer_waits_for_it(
    world: MemoryCluster, told: list[tuple[str, str, str]]
) -> None:
    world.create(edited(widget(), finalizers=["a/b"]))

    world.delete(WIDGET, "default", "w")
    waiting = world.get(WIDGET, "default", "w") or {}
    assert meta(waiting, "deletionTimestamp", "generation") == [BORN, 2]
    with pytest.raises(ApiError, match="no new finalizers can be added"):
        world.replace(edited(waiting, finalizers=["a/b", "c/d"]))
    world.replace(edited(waiting, finalizers=[]))

    assert world.list(WIDGET) == []
    assert told == [(change, "Widget", "w") for change in ("ADDED", "MODIFIED", "DELETED")]


def test_a_deletion_can_be_for_one_uid_only(world: MemoryCluster) -> None:
    uid = world.create(widget())["metadata"]["uid"]

    with pytest.raises(ApiError, match="Precondition failed") as caught:
        world.delete(WIDGET, "default", "w", uid="other")
    world.delete(WIDGET, "default", "w", uid=uid)
    with pytest.raises(ApiError, match="not found"):
        world.delete(WIDGET, "default", "w")

    assert caught.value.status == 409


@pytest.mark.parametrize(
    ("propagation", "order", "left"),
    [
        pytest.param("Background", ["w", "e", "s"], 0, id="owner-first"),
        pytest.param("Foreground", ["s", "e", "w"], 0, id="dependents-first"),
        pytest.param("Orphan", ["w"], 2, id="owner-only"),
    ],
)
def test_dependents_go_with_their_owner(
    world: MemoryCluster, propagation: Propagation, order: list[str], left: int
) -> None:
    gone: list[str] = []
    world.subscribe(lambda c, obj: gone.append(obj["metadata"]["name"]) if c == "DELETED" else None)
    owner = world.create(widget())
    middle = world.create(owned_by(owner, external_secret(), blockOwnerDeletion=True))
    world.create(owned_by(middle, secret(), blockOwnerDeletion=True))

    world.delete(WIDGET, "default", "w", propagation=propagation)

    remaining = [*world.list(SECRET), *world.list(EXTERNAL_SECRET)]
    assert (gone, len(remaining)) == (order, left)
    assert all(owner["metadata"]["uid"] not in str(obj) for obj in remaining)


def test_an_object_with_another_living_owner_stays(world: MemoryCluster) -> None:
    first, second = world.create(widget("a")), world.create(widget("b"))
    world.create(owned_by(second, owned_by(first, secret())))

    world.delete(WIDGET, "default", "a")

    kept = world.get(SECRET, "default", "s")
    assert [ref["name"] for ref in meta(kept, "ownerReferences")[0]] == ["b"]


@pytest.mark.parametrize(
    ("owner", "stays"),
    [
        pytest.param(widget(), True, id="in-its-namespace"),
        pytest.param(GADGET_G, True, id="cluster-scoped"),
        pytest.param(widget(namespace="other"), False, id="in-another-namespace"),
    ],
)
def test_an_owner_must_be_within_reach(
    world: MemoryCluster, owner: Manifest, *, stays: bool
) -> None:
    world.create(owned_by(world.create(owner), secret()))

    assert bool(world.list(SECRET)) is stays
    assert len(world.list(GADGET) + world.list(WIDGET)) == 1


def test_a_namespace_ends_with_its_last_object(world: MemoryCluster) -> None:
    held = world.create(edited(widget(), finalizers=["a/b"]))
    world.create(secret())

    world.delete(NAMESPACE, None, "default")
    assert world.list(SECRET) == []
    with pytest.raises(ApiError, match="being terminated"):
        world.create(secret())
    world.replace(
        edited(world.get(WIDGET, "default", held["metadata"]["name"]) or {}, finalizers=[])
    )

    assert [meta(obj, "name") for obj in world.list(NAMESPACE)] == [["other"]]
