"""The double has the manners of the API server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from hooks.sandbox.cluster import (
    CONFIG_MAP,
    ApiError,
    MemoryCluster,
)
from tests.sandbox.widgets import BORN, WIDGET, cluster, edited, meta, secret, widget

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest


@pytest.fixture
def world() -> MemoryCluster:
    return cluster()


@pytest.fixture
def told(world: MemoryCluster) -> list[tuple[str, str, str]]:
    """Return what listeners are told: change, kind and name."""
    changes: list[tuple[str, str, str]] = []
    world.subscribe(lambda c, obj: changes.append((c, obj["kind"], obj["metadata"]["name"])))
    return changes


def test_a_new_object_gets_what_the_server_owns(world: MemoryCluster) -> None:
    claims = {"uid": "mine", "generation": 9, "creationTimestamp": "x", "managedFields": []}
    first = world.create(edited(widget(status={"phase": "Ready"}), **claims))
    second = world.create(widget("v"))

    assert "status" not in first
    assert meta(first, "generation", "creationTimestamp", "managedFields") == [1, BORN, None]
    assert len({"mine", *meta(first, "uid"), *meta(second, "uid")}) == 3
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])


def test_objects_are_copied_in_and_out(world: MemoryCluster) -> None:
    given = widget()
    for obj in (world.create(given), given, world.get(WIDGET, "default", "w") or {}):
        obj["spec"]["owner"] = "eve"

    assert (world.get(WIDGET, "default", "w") or {})["spec"]["owner"] == "bob"


def test_lists_are_ordered_and_by_namespace(world: MemoryCluster) -> None:
    for name, namespace in (("b", "other"), ("b", "default"), ("a", "other")):
        world.create(widget(name, namespace))

    names = [
        [meta(o, "namespace", "name") for o in world.list(WIDGET, ns)] for ns in (None, "other")
    ]

    assert names == [
        [["default", "b"], ["other", "a"], ["other", "b"]],
        [["other", "a"], ["other", "b"]],
    ]


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        pytest.param({"spec": {"owner": "bob", "port": 1}}, 2, id="spec-bumps-it"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, 1, id="metadata-does-not"),
        pytest.param({"status": {"phase": "Ready"}}, 1, id="status-is-ignored"),
    ],
)
def test_generation_counts_changes_of_spec(
    world: MemoryCluster, change: Manifest, generation: int
) -> None:
    stored = world.create(widget())

    replaced = world.replace(
        stored | change | {"metadata": stored["metadata"] | change.get("metadata", {})}
    )

    assert (replaced["metadata"]["generation"], "status" in replaced) == (generation, False)


def test_the_status_subresource_writes_status_only(world: MemoryCluster) -> None:
    stored = world.create(widget())
    sent = edited(stored, labels={"a": "b"}) | {"spec": {"owner": "eve"}, "status": {"phase": "R"}}

    replaced = world.replace_status(sent)

    version = replaced["metadata"]["resourceVersion"]
    assert replaced == edited(stored, resourceVersion=version) | {"status": {"phase": "R"}}
    assert world.replace(edited(replaced, labels={"a": "b"}))["status"] == {"phase": "R"}


@pytest.mark.parametrize("write", ["replace", "replace_status", "apply"])
def test_a_write_that_changes_nothing_is_not_a_change(
    world: MemoryCluster, told: list[tuple[str, str, str]], write: str
) -> None:
    stored = world.apply(widget())
    world.replace_status(stored)
    told.clear()

    again = getattr(world, write)(
        widget()
        if write == "apply"
        else edited(stored, annotations=meta(stored, "annotations")[0], labels={})
    )

    assert (again, told) == (stored, [])


@pytest.mark.parametrize(
    ("obj", "refused"),
    [
        pytest.param(edited(widget(), resourceVersion="1"), "Conflict", id="stale"),
        pytest.param(
            edited(widget(), uid="other", resourceVersion="1"), "Conflict", id="other-uid"
        ),
        pytest.param(widget(), "Invalid", id="custom-kinds-need-a-version"),
        pytest.param(widget("no"), "NotFound", id="absent"),
    ],
)
@pytest.mark.parametrize("write", ["replace", "replace_status"])
def test_an_update_is_refused(
    world: MemoryCluster, write: str, obj: Manifest, refused: str
) -> None:
    world.create(widget())

    with pytest.raises(ApiError) as caught:
        getattr(world, write)(obj)

    assert caught.value.reason == refused


def test_a_taken_name_is_refused(world: MemoryCluster) -> None:
    world.create(widget())

    with pytest.raises(ApiError, match=r'^widgets\.example\.com "w" already exists$') as caught:
        world.create(widget())

    assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")


def test_apply_merges_three_ways(world: MemoryCluster) -> None:
    world.apply(widget(spec={"owner": "bob", "port": 1, "labels": {"a": "1", "b": "2"}}))
    live = world.get(WIDGET, "default", "w") or {}
    live["spec"] |= {"note": "by another"}
    world.replace_status(world.replace(live) | {"status": {"phase": "Ready"}})

    merged = world.apply(widget(spec={"owner": "bob", "labels": {"b": "3"}}))

    assert merged["status"] == {"phase": "Ready"}
    assert merged["spec"] == {
        "owner": "bob",
        "color": "red",
        "options": {"namespace": "any"},
        "labels": {"b": "3"},
        "note": "by another",
    }


def test_string_data_of_a_secret_becomes_data(world: MemoryCluster) -> None:
    stored = world.create(secret(data={"a": "YQ==", "b": "Yg=="}, stringData={"a": "z"}))

    assert (stored["data"], stored["type"]) == ({"a": "eg==", "b": "Yg=="}, "Opaque")
    assert not {"stringData", "generation"} & {*stored, *stored["metadata"]}
    assert world.replace(secret(data={}))["data"] == {}


def test_an_event_is_counted(world: MemoryCluster) -> None:
    stored = world.create(widget(namespace="other"))
    for message in ("boom", "boom", "bang"):
        world.record_event(stored, "SyncError", message)

    seen = [(e["metadata"]["namespace"], e["message"], e["count"]) for e in world.events]
    assert sorted(seen) == [("other", "bang", 1), ("other", "boom", 2)]


def test_a_listener_may_write_and_all_see_one_order(world: MemoryCluster) -> None:
    seen: list[list[str]] = [[], []]

    def answer(change: str, obj: Manifest) -> None:
        if (change, obj["kind"]) == ("ADDED", "Secret"):
            world.create(secret(obj["metadata"]["name"]) | {"kind": CONFIG_MAP.kind})

    for versions in (seen[0], None, seen[1]):
        world.subscribe(
            answer
            if versions is None
            else lambda _, obj, to=versions: to.append(obj["metadata"]["resourceVersion"])
        )
    threads = [threading.Thread(target=lambda n=n: world.create(secret(f"s{n}"))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert seen[0] == seen[1] == sorted(seen[0], key=int)
    assert len(world.list(CONFIG_MAP)) == 8


def test_a_listener_can_leave(world: MemoryCluster) -> None:
    names: list[str] = []
    leave = world.subscribe(lambda _, obj: names.append(obj["metadata"]["name"]))
    world.create(secret("a"))
    leave()
    world.create(secret("b"))

    assert names == ["a"]
