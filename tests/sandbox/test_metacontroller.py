"""The runner treats hooks as Metacontroller does, the harm included."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from hooks.core.manifests import LAST_APPLIED, Manifest
from hooks.sandbox.cluster import CONFIG_MAP, SECRET, Kind, MemoryCluster
from hooks.sandbox.metacontroller import (
    ApplyStrategy,
    Connection,
    NotSettled,
    Runner,
    RunnerCrashed,
    SyncError,
    Time,
)
from hooks.sandbox.runner_config import BadController, read
from tests.sandbox.hooked import PART, THING, Answer, Handler, HookServer, crd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hooks.sandbox.port import Change

FINALIZER = "metacontroller.io/compositecontroller-things"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class World:
    """A cluster, hooks, and the runner between them."""

    def __init__(self, hooks: HookServer) -> None:
        self.hooks = hooks
        self.cluster = MemoryCluster([crd(THING), crd(PART)], lambda: NOW, namespaces=("a", "b"))
        self.time = Time(lambda: 0.0)
        self.strategy: ApplyStrategy = "dynamic-apply"
        self._runner: Runner | None = None

    def runner(self, *hooks: str, method: str = "InPlace", **spec: Any) -> Runner:  # noqa: ANN401 - manifests are untyped
        """Return the runner, made at the first call for a controller with these hooks."""
        if self._runner is None:
            manifest = controller(*(hooks or ("sync",)), method=method, **spec)
            self._runner = Runner(
                self.cluster,
                [manifest],
                connect=Connection(self.hooks.url, "token-1"),
                time=self.time,
                strategy=self.strategy,
            )
        return self._runner

    def close(self) -> None:
        if self._runner is not None and self._runner.crash is None:
            self._runner.stop()

    def thing(self, name: str = "t", namespace: str = "a", **metadata: Any) -> Manifest:  # noqa: ANN401 - as above
        meta = {"name": name, "namespace": namespace} | metadata
        spec = {"size": 1}
        return self.cluster.create(
            {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": meta, "spec": spec}
        )

    def get(self, kind: Kind, name: str, namespace: str = "a") -> Manifest:
        found = self.cluster.get(kind, namespace, name)
        assert found is not None
        return found

    def change(self, kind: Kind, name: str, **fields: Any) -> Manifest:  # noqa: ANN401 - as above
        return self.cluster.replace(self.get(kind, name) | fields)

    def names(self, kind: Kind) -> list[str]:
        return [
            f"{o['metadata']['namespace']}/{o['metadata']['name']}" for o in self.cluster.list(kind)
        ]

    def errors(self) -> list[str]:
        return [event["message"] for event in self.cluster.events if event["reason"] == "SyncError"]


@pytest.fixture(scope="module")
def server() -> Iterator[HookServer]:
    hooks = HookServer()
    yield hooks
    hooks.close()


@pytest.fixture
def world(server: HookServer) -> Iterator[World]:
    server.requests.clear()
    server.tokens.clear()
    server.handlers = {"sync": lambda _: {}, "customize": lambda _: {}}
    server.handlers["finalize"] = lambda _: {"finalized": True}
    made = World(server)
    yield made
    made.close()


def controller(*hooks: str, method: str = "InPlace", **spec: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    """Return a CompositeController of Things with ConfigMaps and Parts."""
    service = {"name": "hooks", "namespace": "hooks", "port": 8080}
    strategy = {"updateStrategy": {"method": method}}
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": "things"},
        "spec": {
            "parentResource": {"apiVersion": "example.com/v1", "resource": "things"},
            "childResources": [
                {"apiVersion": "v1", "resource": "configmaps"} | strategy,
                {"apiVersion": "example.com/v1", "resource": "parts"} | strategy,
            ],
            "generateSelector": True,
            "hooks": {
                name: {
                    "version": "v2",
                    "webhook": {"service": service, "path": f"/{name}", "timeout": "5s"},
                }
                for name in hooks
            },
        }
        | spec,
    }


def part(name: str = "p", **fields: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    """Return a child as a hook answers it."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Part",
        "metadata": {"name": name},
        "spec": {"size": 1},
    } | fields


def config_map(name: str = "c", **data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def owned(obj: Manifest, owner: Manifest, **labels: str) -> Manifest:
    """Return an object that belongs to a Thing."""
    about = {key: owner["metadata"][key] for key in ("name", "uid")}
    reference = {"apiVersion": "example.com/v1", "kind": "Thing", "controller": True} | about
    meta = {"namespace": "a", "labels": labels, "ownerReferences": [reference]} | obj["metadata"]
    return obj | {"metadata": meta}


def orphan(obj: Manifest, **labels: str) -> Manifest:
    return obj | {"metadata": {"namespace": "a", "labels": labels} | obj["metadata"]}


def owners(obj: Manifest) -> list[str]:
    return [reference["uid"] for reference in obj["metadata"].get("ownerReferences", ())]


def always(answer: Answer) -> Handler:
    return lambda _: answer


@contextmanager
def lasting_delete(cluster: MemoryCluster, kind: Kind, name: str) -> Iterator[None]:
    """Hold an object in deletion by somebody else's finalizer."""
    live = cluster.get(kind, "a", name)
    assert live is not None
    live["metadata"]["finalizers"] = [*live["metadata"].get("finalizers", ()), "example.com/hold"]
    cluster.replace(live)
    cluster.delete(kind, "a", name)
    yield
    live = cluster.get(kind, "a", name)
    if live is not None:
        kept = [one for one in live["metadata"]["finalizers"] if one != "example.com/hold"]
        live["metadata"]["finalizers"] = kept
        cluster.replace(live)


class TestRequest:
    def test_has_all_keys_and_a_group_for_each_kind_that_could_be_there(self, world: World) -> None:
        thing = world.thing()
        rule = {"apiVersion": "v1", "resource": "secrets", "namespace": "b", "names": ["x"]}
        world.hooks.handlers["customize"] = always({"relatedResources": [rule]})
        world.runner("sync", "customize").settle()
        manifest = controller("sync", "customize")
        assert world.hooks.asked("customize") == [{"controller": manifest, "parent": thing}]
        assert world.hooks.asked("sync")[0] == {
            "controller": manifest,
            "parent": thing,
            "children": {"ConfigMap.v1": {}, "Part.example.com/v1": {}},
            "related": {"Secret.v1": {}},
            "finalizing": False,
        }

    def test_carries_the_token(self, world: World) -> None:
        world.thing()
        world.runner().settle()
        assert world.hooks.tokens == {"Bearer token-1"}

    def test_holds_children_in_deletion_and_calls_them_by_namespace_and_name(
        self, world: World
    ) -> None:
        world.hooks.handlers["sync"] = always({"children": [part()]})
        world.thing()
        world.runner().settle()
        with lasting_delete(world.cluster, PART, "p"):
            world.runner().settle()
            dying = world.hooks.asked("sync")[-1]["children"]["Part.example.com/v1"]
            assert dying == {"a/p": world.get(PART, "p")}


class TestAnswer:
    def test_children_and_status_are_written_and_owned(self, world: World) -> None:
        world.hooks.handlers["sync"] = always({"status": {"phase": "Up"}, "children": [part()]})
        thing = world.thing()
        world.runner().settle()
        made = world.get(PART, "p")
        uid = thing["metadata"]["uid"]
        desired = part(metadata={"name": "p", "namespace": "a", "labels": {"controller-uid": uid}})
        assert json.loads(made["metadata"]["annotations"][LAST_APPLIED]) == desired
        assert made["metadata"]["labels"] == {"controller-uid": uid}
        assert made["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "example.com/v1",
                "kind": "Thing",
                "name": "t",
                "uid": uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert world.get(THING, "t")["status"] == {"phase": "Up", "observedGeneration": 1}

    @pytest.mark.parametrize("answer", [{}, {"children": None}, b"null"])
    def test_an_empty_answer_deletes_all_children_and_the_status(
        self, world: World, answer: Answer
    ) -> None:
        world.hooks.handlers["sync"] = always({"status": {"phase": "Up"}, "children": [part()]})
        world.thing()
        world.runner().settle()
        world.hooks.handlers["sync"] = always(answer)
        world.runner().resync()
        world.runner().settle()
        assert world.names(PART) == []
        assert world.get(THING, "t")["status"] == {"observedGeneration": 1}

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            pytest.param({"children": [], "extra": 1}, 'unknown field "extra"', id="unknown"),
            pytest.param(
                b'{"children":[],"children":[]}', 'duplicate field "children"', id="twice"
            ),
            pytest.param(
                b'{"status":{"x":1,"x":2}}', 'duplicate field "x"', id="twice-inside-status"
            ),
            pytest.param({"Children": []}, 'unknown field "Children"', id="case"),
            pytest.param({"children": {}}, "children has the wrong type", id="children-map"),
            pytest.param({"children": ["x"]}, "is not an object", id="child-text"),
            pytest.param({"children": [{}]}, "Object 'Kind' is missing", id="child-without-kind"),
            pytest.param({"resyncAfterSeconds": "5"}, "has the wrong type", id="resync-text"),
            pytest.param({"finalized": 1}, "has the wrong type", id="finalized-number"),
            pytest.param(b"", "can't unmarshal", id="no-body"),
            pytest.param(b"[]", "not an object", id="list"),
            pytest.param((500, {}, "oops"), "unsupported status code: 500 body: oops", id="500"),
            pytest.param((201, {}, "{}"), "unsupported status code: 201 body: {}", id="201"),
            pytest.param((302, {"Location": "/x"}, ""), "unsupported status code: 302", id="302"),
        ],
    )
    def test_an_answer_that_cannot_be_used_changes_nothing_but_is_an_event(
        self, world: World, answer: Answer, error: str
    ) -> None:
        world.hooks.handlers["sync"] = always({"status": {"phase": "Up"}, "children": [part()]})
        world.thing()
        world.runner().settle()
        before = (world.get(THING, "t"), world.get(PART, "p"))
        world.hooks.handlers["sync"] = always(answer)
        with pytest.raises(SyncError, match=r"can't unmarshal|hook failed") as failure:
            world.runner().sync(THING, "a", "t")
        assert error in str(failure.value)
        assert world.errors() == [f"Sync error: {failure.value}"]
        assert (world.get(THING, "t"), world.get(PART, "p")) == before

    def test_duplicate_keys_inside_a_child_are_nobodys_business(self, world: World) -> None:
        world.thing()
        text = json.dumps({"children": [part()]}).replace('"size": 1', '"size": 1, "size": 2')
        world.hooks.handlers["sync"] = always(text.encode())
        world.runner().settle()
        assert world.get(PART, "p")["spec"] == {"size": 2}

    def test_a_null_child_is_the_end_of_metacontroller(self, world: World) -> None:
        world.hooks.handlers["sync"] = always({"children": [None]})
        world.thing()
        with pytest.raises(RunnerCrashed, match="children has a null item"):
            world.runner().settle()
        with pytest.raises(RunnerCrashed):
            world.runner().resync()
        world.hooks.handlers["sync"] = always({"children": [part()]})
        world.runner().restart()
        world.runner().settle()
        assert world.names(PART) == ["a/p"]

    def test_a_null_rule_is_the_end_of_metacontroller(self, world: World) -> None:
        world.hooks.handlers["customize"] = always({"relatedResources": [None]})
        world.thing()
        with pytest.raises(RunnerCrashed, match="relatedResources has a null item"):
            world.runner("sync", "customize").settle()

    def test_of_equal_children_the_last_counts(self, world: World) -> None:
        children = [part(spec={"size": 1}), part(spec={"size": 2})]
        world.hooks.handlers["sync"] = always({"children": children})
        world.thing()
        world.runner().settle()
        assert world.get(PART, "p")["spec"] == {"size": 2}

    @pytest.mark.parametrize("labels", [{"controller-uid": "other"}, {"number": 1}])
    def test_a_child_that_does_not_match_the_selector_stops_children_and_status(
        self, world: World, labels: Manifest
    ) -> None:
        wrong = part("wrong", metadata={"name": "wrong", "labels": labels})
        answer = {"status": {"phase": "Up"}, "children": [part(), wrong]}
        world.hooks.handlers["sync"] = always(answer)
        world.thing()
        world.runner().settle()
        assert world.names(PART) == []
        assert "status" not in world.get(THING, "t")
        assert len(world.errors()) == 1

    def test_one_child_that_cannot_be_made_stops_neither_the_others_nor_the_status(
        self, world: World
    ) -> None:
        children = [part("Bad_Name"), part(), {"apiVersion": "v9", "kind": "No", "metadata": {}}]
        world.hooks.handlers["sync"] = always({"status": {"phase": "Up"}, "children": children})
        world.thing()
        world.runner().settle()
        assert world.names(PART) == ["a/p"]
        assert world.get(THING, "t")["status"]["phase"] == "Up"
        assert "can't find kind No in v9" in world.errors()[0]

    def test_a_foreign_object_of_that_name_is_left_alone_without_an_error(
        self, world: World
    ) -> None:
        foreign = world.cluster.create(orphan(part(spec={"size": 9})))
        world.hooks.handlers["sync"] = always({"children": [part()]})
        world.thing()
        world.runner().settle()
        assert world.get(PART, "p") == foreign
        assert world.errors() == []

    def test_a_kind_that_is_not_listed_is_created_and_never_seen_again(self, world: World) -> None:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        world.hooks.handlers["sync"] = always({"children": [secret]})
        world.thing()
        world.runner().settle()
        world.hooks.handlers["sync"] = always({})
        world.runner().resync()
        world.runner().settle()
        assert world.names(SECRET) == ["a/s"]

    def test_status_written_in_between_is_overwritten(self, world: World) -> None:
        def hook(_: Manifest) -> Answer:
            live = world.get(THING, "t")
            if "status" not in live:
                world.cluster.replace_status(live | {"status": {"phase": "Theirs"}})
            return {"status": {"phase": "Ours"}}

        world.hooks.handlers["sync"] = hook
        world.thing()
        world.runner().settle()
        assert world.get(THING, "t")["status"]["phase"] == "Ours"


class TestUpdateMethods:
    @pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
    @pytest.mark.parametrize(
        ("method", "data", "same_object"),
        [
            pytest.param("InPlace", {"v": "2"}, True, id="in-place"),
            pytest.param("OnDelete", {"v": "1"}, True, id="on-delete"),
            pytest.param("Recreate", {"v": "2"}, False, id="recreate"),
        ],
    )
    def test_of_a_changed_child(
        self,
        world: World,
        strategy: ApplyStrategy,
        method: str,
        data: Manifest,
        same_object: object,
    ) -> None:
        world.strategy = strategy
        world.hooks.handlers["sync"] = always({"children": [config_map(v="1")]})
        world.thing()
        runner = world.runner(method=method)
        runner.settle()
        before = world.get(CONFIG_MAP, "c")
        world.hooks.handlers["sync"] = always({"children": [config_map(v="2")]})
        runner.resync()
        runner.settle()
        after = world.get(CONFIG_MAP, "c")
        assert after["data"] == data
        assert (after["metadata"]["uid"] == before["metadata"]["uid"]) is same_object

    def test_recreate_never_happens_under_server_side_apply_to_a_kind_with_a_generation(
        self, world: World
    ) -> None:
        world.strategy = "server-side-apply"
        world.hooks.handlers["sync"] = always({"children": [part()]})
        world.thing()
        runner = world.runner(method="Recreate")
        runner.settle()
        before = world.get(PART, "p")
        world.hooks.handlers["sync"] = always({"children": [part(spec={"size": 2})]})
        with pytest.raises(SyncError, match="generation or UID changed during dry run"):
            runner.sync(THING, "a", "t")
        assert world.get(PART, "p") == before

    @pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
    def test_a_field_that_is_dropped_goes_and_a_foreign_one_stays(
        self, world: World, strategy: ApplyStrategy
    ) -> None:
        world.strategy = strategy
        world.hooks.handlers["sync"] = always({"children": [part(spec={"ours": 1, "old": 1})]})
        world.thing()
        world.runner().settle()
        world.change(PART, "p", spec={"ours": 1, "old": 1, "theirs": 1})
        world.hooks.handlers["sync"] = always({"children": [part(spec={"ours": 1})]})
        world.runner().settle()
        assert world.get(PART, "p")["spec"] == {"ours": 1, "theirs": 1}
        assert (LAST_APPLIED in world.get(PART, "p")["metadata"].get("annotations", {})) is (
            strategy == "dynamic-apply"
        )

    @pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
    def test_a_child_in_deletion_is_not_touched(
        self, world: World, strategy: ApplyStrategy
    ) -> None:
        world.strategy = strategy
        world.hooks.handlers["sync"] = always({"children": [part()]})
        world.thing()
        world.runner().settle()
        with lasting_delete(world.cluster, PART, "p"):
            world.hooks.handlers["sync"] = always({"children": [part(spec={"size": 2})]})
            world.runner().settle()
            assert world.get(PART, "p")["spec"] == {"size": 1}
        world.runner().settle()
        assert world.get(PART, "p")["spec"] == {"size": 2}

    def test_server_side_apply_takes_a_foreign_object_over_but_not_from_another_controller(
        self, world: World
    ) -> None:
        world.strategy = "server-side-apply"
        other = world.thing("other", namespace="a")
        world.cluster.create(owned(part("theirs", spec={"size": 9}), other))
        world.cluster.create(orphan(part("free", spec={"size": 9, "x": 1})))
        children = {"t": [part("theirs"), part("free")], "other": []}
        world.hooks.handlers["sync"] = lambda request: {
            "children": children[request["parent"]["metadata"]["name"]]
        }
        thing = world.thing()
        world.runner(parentResource=_labelled("chosen"))
        world.change(THING, "t", metadata=thing["metadata"] | {"labels": {"chosen": "yes"}})
        world.runner().settle()
        assert world.get(PART, "free")["spec"] == {"size": 1, "x": 1}
        assert owners(world.get(PART, "free")) == [thing["metadata"]["uid"]]
        assert owners(world.get(PART, "theirs")) == [other["metadata"]["uid"]]
        assert "Only one reference can have Controller set to true" in world.errors()[0]


def _labelled(label: str) -> Manifest:
    selector = {"matchLabels": {label: "yes"}}
    return {"apiVersion": "example.com/v1", "resource": "things", "labelSelector": selector}


class TestFixpoint:
    @pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
    def test_a_full_resync_writes_nothing(self, world: World, strategy: ApplyStrategy) -> None:
        world.strategy = strategy
        children = [part(), config_map(v="1")]
        world.hooks.handlers["sync"] = always({"status": {"phase": "Up"}, "children": children})
        world.thing()
        world.thing("u", "b")
        runner = world.runner("sync", "finalize")
        runner.settle()
        before = runner.statistics.writes
        runner.resync()
        assert (runner.settle(), runner.statistics.writes) == (2, before)
        assert runner.statistics.of("a", "t") == {"sync": 3, "parent": 1, "child": 2, "status": 1}

    @pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
    def test_drift_of_a_child_is_put_right(self, world: World, strategy: ApplyStrategy) -> None:
        world.strategy = strategy
        world.hooks.handlers["sync"] = always({"children": [part()]})
        world.thing()
        world.runner().settle()
        world.change(PART, "p", spec={"size": 7})
        world.runner().settle()
        assert world.get(PART, "p")["spec"] == {"size": 1}

    def test_a_status_with_a_counter_is_a_hot_loop(self, world: World) -> None:
        numbers = iter(range(1000))
        world.hooks.handlers["sync"] = lambda _: {"status": {"phase": str(next(numbers))}}
        world.thing()
        with pytest.raises(NotSettled, match="more than 20 syncs, the last of things a/t"):
            world.runner().settle(20)

    def test_a_status_field_that_the_schema_prunes_is_written_at_every_sync(
        self, world: World
    ) -> None:
        world.hooks.handlers["sync"] = always({"status": {"unknown": 1}})
        world.thing()
        world.runner().settle()
        before = world.runner().statistics.of("a", "t")["status"]
        world.runner().resync()
        world.runner().settle()
        assert world.runner().statistics.of("a", "t")["status"] == before + 1


class TestClaiming:
    def test_of_orphans_and_others(self, world: World) -> None:
        thing, other = world.thing(), world.thing("other")
        uid = thing["metadata"]["uid"]
        mine = {"controller-uid": uid}
        world.cluster.create(owned(part("owned"), thing, **mine))
        world.cluster.create(owned(part("unlabelled"), thing))
        world.cluster.create(orphan(part("adopted"), **mine))
        world.cluster.create(orphan(part("stranger")))
        world.cluster.create(owned(part("others"), other, **mine))
        elsewhere = orphan(part("elsewhere"), **mine)
        elsewhere["metadata"]["namespace"] = "b"
        world.cluster.create(elsewhere)
        world.hooks.handlers["sync"] = always((503, {}, ""))
        with pytest.raises(SyncError):
            world.runner().sync(THING, "a", "t")
        seen = world.hooks.asked("sync")[0]["children"]["Part.example.com/v1"]
        assert sorted(seen) == ["a/adopted", "a/owned"]
        found = {obj["metadata"]["name"]: owners(obj) for obj in world.cluster.list(PART)}
        assert found == {
            "adopted": [uid],
            "elsewhere": [],
            "others": [other["metadata"]["uid"]],
            "owned": [uid],
            "stranger": [],
            "unlabelled": [],
        }

    def test_a_parent_in_deletion_adopts_and_releases_nothing(self, world: World) -> None:
        thing = world.thing()
        uid = thing["metadata"]["uid"]
        world.cluster.create(owned(part("unlabelled"), thing))
        world.cluster.create(orphan(part("free"), **{"controller-uid": uid}))
        with lasting_delete(world.cluster, THING, "t"):
            world.runner().settle()
            assert owners(world.get(PART, "free")) == []
            assert owners(world.get(PART, "unlabelled")) == [uid]
            assert world.errors() == []

    def test_without_a_generated_selector_the_parent_brings_one(self, world: World) -> None:
        world.thing()
        world.runner(generateSelector=False).settle()
        assert world.errors() == [
            "Sync error: .spec.selector must have either matchLabels, matchExpressions, or both"
        ]

    def test_an_orphan_wakes_the_parent_that_it_matches(self, world: World) -> None:
        thing = world.thing()
        world.runner().settle()
        labels = {"controller-uid": thing["metadata"]["uid"]}
        world.cluster.create(orphan(part("late"), **labels))
        world.runner().settle()
        assert world.names(PART) == []


class TestFinalize:
    def test_the_finalizer_is_there_before_the_first_sync(self, world: World) -> None:
        world.thing()
        world.runner("sync", "finalize").settle()
        assert world.hooks.asked("sync")[0]["parent"]["metadata"]["finalizers"] == [FINALIZER]

    def test_children_go_before_the_finalizer_does(self, world: World) -> None:
        world.hooks.handlers["sync"] = always({"children": [part()]})
        world.hooks.handlers["finalize"] = lambda request: {
            "finalized": not request["children"]["Part.example.com/v1"]
        }
        world.thing()
        runner = world.runner("sync", "finalize")
        runner.settle()
        world.cluster.delete(THING, "a", "t")
        runner.settle()
        seen = [
            len(body["children"]["Part.example.com/v1"]) for body in world.hooks.asked("finalize")
        ]
        assert seen[0] == 1
        assert seen[-1] == 0
        assert all(body["finalizing"] for body in world.hooks.asked("finalize"))
        assert (world.names(THING), world.names(PART)) == ([], [])

    def test_children_of_the_finalized_answer_are_not_made(self, world: World) -> None:
        changes: list[str] = []

        def note(change: Change, obj: Manifest, /) -> None:
            changes.append(f"{change} {obj['kind']}")

        world.hooks.handlers["finalize"] = always({"finalized": True, "children": [part()]})
        world.thing()
        world.runner("sync", "finalize").settle()
        unsubscribe = world.cluster.subscribe(note)
        world.cluster.delete(THING, "a", "t")
        world.runner().settle()
        unsubscribe()
        assert changes == ["MODIFIED Thing", "DELETED Thing"]
        assert world.errors() == []

    def test_a_parent_deleted_before_its_first_sync_is_not_finalized(self, world: World) -> None:
        runner = world.runner("sync", "finalize")
        runner.settle()
        world.thing()
        world.cluster.delete(THING, "a", "t")
        runner.settle()
        assert world.hooks.requests == []

    def test_a_foreign_finalizer_lets_finalize_be_called_again_and_applies_nothing(
        self, world: World
    ) -> None:
        world.thing()
        runner = world.runner("sync", "finalize")
        runner.settle()
        world.hooks.handlers["finalize"] = always({"finalized": True, "children": [part()]})
        with lasting_delete(world.cluster, THING, "t"):
            runner.settle()
            assert world.get(THING, "t")["metadata"]["finalizers"] == ["example.com/hold"]
            before = len(world.hooks.asked("finalize"))
            runner.resync()
            runner.settle()
            assert len(world.hooks.asked("finalize")) == before + 1
            assert world.names(PART) == []

    def test_in_foreground_deletion_the_children_of_the_answer_do_not_count(
        self, world: World
    ) -> None:
        held = part("held", metadata={"name": "held", "finalizers": ["example.com/hold"]})
        world.hooks.handlers["sync"] = always({"children": [held]})
        world.hooks.handlers["finalize"] = always({"children": [held, part("new")]})
        world.thing()
        runner = world.runner("sync", "finalize")
        runner.settle()
        world.cluster.delete(THING, "a", "t", propagation="Foreground")
        runner.settle()
        assert world.hooks.asked("finalize") != []
        assert world.names(PART) == ["a/held"]

    def test_without_a_finalize_hook_a_lingering_parent_is_synced_without_children(
        self, world: World
    ) -> None:
        world.hooks.handlers["sync"] = always({"status": {"phase": "Up"}, "children": [part()]})
        world.thing()
        with lasting_delete(world.cluster, THING, "t"):
            world.runner().settle()
            assert [body["finalizing"] for body in world.hooks.asked("sync")] == [False, False]
            assert world.names(PART) == []
            assert world.get(THING, "t")["status"]["phase"] == "Up"

    def test_a_live_parent_that_stops_matching_is_finalized_and_its_children_applied(
        self, world: World
    ) -> None:
        world.thing(labels={"chosen": "yes"})
        runner = world.runner("sync", "finalize", parentResource=_labelled("chosen"))
        runner.settle()
        world.hooks.handlers["finalize"] = always({"finalized": True, "children": [part()]})
        meta = world.get(THING, "t")["metadata"]
        world.change(THING, "t", metadata={**meta, "labels": {}})
        runner.settle()
        asked = world.hooks.asked("finalize")
        assert [body["finalizing"] for body in asked] == [True]
        assert "deletionTimestamp" not in asked[0]["parent"]["metadata"]
        assert "finalizers" not in world.get(THING, "t")["metadata"]
        assert world.names(PART) == ["a/p"]

    def test_a_parent_that_never_matched_is_nobodys_business(self, world: World) -> None:
        world.thing()
        runner = world.runner("sync", "finalize", parentResource=_labelled("chosen"))
        assert (runner.settle(), world.hooks.requests) == (0, [])

    def test_finalized_in_a_sync_answer_takes_the_finalizer_off(self, world: World) -> None:
        world.hooks.handlers["sync"] = always({"finalized": True})
        world.thing()
        with pytest.raises(NotSettled):
            world.runner("sync", "finalize").settle(20)


class TestRelated:
    @staticmethod
    def rules(world: World, *rules: Manifest) -> Runner:
        world.hooks.handlers["customize"] = always({"relatedResources": list(rules)})
        return world.runner("sync", "customize")

    @pytest.mark.parametrize(
        ("rule", "selected"),
        [
            pytest.param({"namespace": "b", "names": ["x"]}, ["b/x"], id="one"),
            pytest.param({"names": ["x"]}, ["a/x", "b/x"], id="name-in-all-namespaces"),
            pytest.param({"namespace": "b"}, ["b/x", "b/y"], id="namespace"),
            pytest.param({}, ["a/x", "b/x", "b/y"], id="everything"),
            pytest.param({"labelSelector": {}}, ["a/x", "b/x", "b/y"], id="empty-selector"),
            pytest.param(
                {"labelSelector": {"matchLabels": {"l": "1"}}}, ["a/x", "b/y"], id="label"
            ),
            pytest.param(
                {"namespace": "b", "labelSelector": {"matchLabels": {"l": "1"}}}, ["b/y"], id="both"
            ),
            pytest.param(
                {"labelSelector": {"matchExpressions": [{"key": "l", "operator": "DoesNotExist"}]}},
                ["b/x"],
                id="expression",
            ),
            pytest.param(
                {"namespaceSelector": {"matchLabels": {"team": "b"}}}, ["b/x", "b/y"], id="by-team"
            ),
        ],
    )
    def test_rules_select(self, world: World, rule: Manifest, selected: list[str]) -> None:
        team = world.cluster.get(Kind("v1", "Namespace", "namespaces", namespaced=False), None, "b")
        assert team is not None
        world.cluster.replace(team | {"metadata": team["metadata"] | {"labels": {"team": "b"}}})
        for namespace, name, labels in (
            ("a", "x", {"l": "1"}),
            ("b", "x", {}),
            ("b", "y", {"l": "1"}),
        ):
            meta = {"namespace": namespace, "name": name, "labels": labels}
            world.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
        world.thing()
        self.rules(world, {"apiVersion": "v1", "resource": "secrets"} | rule).settle()
        assert sorted(world.hooks.asked("sync")[0]["related"]["Secret.v1"]) == selected

    @pytest.mark.parametrize(
        "rule",
        [
            pytest.param({"names": ["x"], "labelSelector": {}}, id="names-and-labels"),
            pytest.param({"namespace": "b", "namespaceSelector": {}}, id="two-namespaces"),
            pytest.param({"resource": "nothings"}, id="unknown-kind"),
            pytest.param({"extra": 1}, id="unknown-field"),
        ],
    )
    def test_a_bad_rule_fails_the_sync(self, world: World, rule: Manifest) -> None:
        world.thing()
        self.rules(world, {"apiVersion": "v1", "resource": "secrets"} | rule).settle()
        assert (world.hooks.asked("sync"), len(world.errors())) == ([], 1)

    def test_a_related_object_wakes_the_parent_when_it_comes_changes_and_goes(
        self, world: World
    ) -> None:
        rule = {"apiVersion": "v1", "resource": "configmaps", "namespace": "b", "names": ["x"]}
        world.thing()
        runner = self.rules(world, rule)
        runner.settle()
        meta = {"namespace": "b", "name": "x"}
        made = world.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
        assert runner.settle() == 1
        world.cluster.replace(made | {"data": {"k": "v"}})
        assert runner.settle() == 1
        world.cluster.delete(CONFIG_MAP, "b", "x")
        assert runner.settle() == 1
        meta["name"] = "y"
        world.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
        assert runner.settle() == 0

    def test_rules_are_kept_for_twenty_minutes_or_until_spec_changes(self, world: World) -> None:
        world.thing()
        runner = self.rules(world)
        runner.settle()
        runner.resync()
        runner.settle()
        assert len(world.hooks.asked("customize")) == 1
        world.change(THING, "t", spec={"size": 2})
        runner.settle()
        assert len(world.hooks.asked("customize")) == 2
        runner.settle(within=1201)
        runner.resync()
        runner.settle()
        assert len(world.hooks.asked("customize")) == 3


class TestTimers:
    def test_resync_after_seconds_wakes_once(self, world: World) -> None:
        answers: Iterator[Manifest] = iter([{"resyncAfterSeconds": 30.5}, {}, {}])
        world.hooks.handlers["sync"] = lambda _: next(answers)
        world.thing()
        runner = world.runner()
        assert runner.settle() == 2
        assert runner.settle(within=30) == 0
        assert runner.settle(within=1) == 1

    def test_a_later_time_does_not_replace_an_earlier_one(self, world: World) -> None:
        answers: Iterator[Manifest] = iter([{"resyncAfterSeconds": n} for n in (10, 30, 99, 99)])
        world.hooks.handlers["sync"] = lambda _: next(answers)
        world.thing()
        runner = world.runner()
        assert runner.settle() == 2
        assert runner.settle(within=10) == 1

    def test_the_resync_period_wakes_all_parents(self, world: World) -> None:
        world.thing()
        world.thing("u")
        runner = world.runner(resyncPeriodSeconds=60)
        runner.settle()
        assert runner.settle(within=59) == 0
        assert runner.settle(within=121) == 6

    def test_failures_are_retried_later_and_later_and_an_event_does_not_wait(
        self, world: World
    ) -> None:
        world.hooks.handlers["sync"] = always((500, {}, ""))
        world.thing()
        runner = world.runner(resyncPeriodSeconds=1800)
        assert runner.settle() == 1
        assert runner.settle(within=0.08) == 4
        assert runner.settle(within=1000) == 13
        world.hooks.handlers["sync"] = always({"status": {"phase": "Up"}})
        world.change(THING, "t", spec={"size": 2})
        runner.settle()
        assert world.get(THING, "t")["status"] == {"phase": "Up", "observedGeneration": 2}

    def test_after_a_success_the_first_retry_is_quick_again(self, world: World) -> None:
        codes = iter([500, 500, 500, 500, 200, 500, 200])
        world.hooks.handlers["sync"] = lambda _: (next(codes), {}, "{}")
        world.thing()
        runner = world.runner()
        # The last answer of the first seconds is followed by a sync for the status it wrote.
        assert runner.settle(within=0.08) == 6
        assert runner.settle(within=0.006) == 1

    def test_429_waits_as_long_as_it_says_and_is_no_event(self, world: World) -> None:
        world.hooks.handlers["sync"] = always((429, {"Retry-After": "7"}, ""))
        world.thing()
        runner = world.runner()
        assert runner.settle() == 1
        assert runner.settle(within=6) == 0
        assert runner.settle(within=1) == 1
        assert world.errors() == []

    @pytest.mark.parametrize("headers", [{}, {"Retry-After": "0"}, {"Retry-After": "soon"}])
    def test_429_without_a_positive_time_is_a_hot_loop(
        self, world: World, headers: dict[str, str]
    ) -> None:
        world.hooks.handlers["sync"] = always((429, headers, ""))
        world.thing()
        with pytest.raises(NotSettled):
            world.runner().settle(20)

    def test_a_status_change_can_be_ignored(self, world: World) -> None:
        world.hooks.handlers["sync"] = always({"status": {"phase": "Up"}})
        parent = {"apiVersion": "example.com/v1", "resource": "things", "ignoreStatusChanges": True}
        world.thing()
        assert world.runner(parentResource=parent).settle() == 1


class TestFaults:
    def test_a_stale_parent_is_served_once_and_synced_again(self, world: World) -> None:
        world.hooks.handlers["sync"] = lambda request: {
            "status": {"phase": str(request["parent"]["spec"]["size"])}
        }
        world.thing()
        runner = world.runner()
        runner.settle()
        world.change(THING, "t", spec={"size": 2})
        runner.faults.inject("stale_parent")
        runner.settle()
        sizes = [body["parent"]["spec"]["size"] for body in world.hooks.asked("sync")]
        assert sizes == [1, 1, 1, 2, 2]
        assert world.get(THING, "t")["status"] == {"phase": "2", "observedGeneration": 2}

    def test_a_stale_child_is_created_twice_without_an_error(self, world: World) -> None:
        world.hooks.handlers["sync"] = always({"children": [part()]})
        world.thing()
        runner = world.runner()
        runner.settle()
        made = world.get(PART, "p")
        runner.faults.inject("stale_children")
        runner.resync()
        runner.settle()
        seen = [sorted(b["children"]["Part.example.com/v1"]) for b in world.hooks.asked("sync")]
        assert seen == [[], ["a/p"], [], ["a/p"]]
        assert (world.get(PART, "p"), world.errors()) == (made, [])

    def test_a_call_is_doubled(self, world: World) -> None:
        world.thing()
        world.runner().faults.inject("duplicate_call")
        world.runner().settle()
        first, second, *_ = world.hooks.asked("sync")
        assert first == second

    def test_an_answer_is_lost_and_the_call_repeated(self, world: World) -> None:
        world.hooks.handlers["sync"] = always({"children": [part()]})
        world.thing()
        runner = world.runner()
        runner.faults.inject("lost_answer")
        assert runner.settle() == 1
        assert world.names(PART) == []
        runner.settle(within=1)
        assert world.names(PART) == ["a/p"]
        assert world.errors() == [
            "Sync error: sync hook failed: http error: Client.Timeout exceeded"
        ]

    def test_a_hook_that_takes_too_long_is_an_error(self, world: World) -> None:
        hold = threading.Event()

        def slow(_: Manifest) -> Answer:
            hold.wait(10)
            return {}

        world.hooks.handlers["sync"] = slow
        world.thing()
        webhook = {"url": "http://hooks.example/sync?rev=1", "timeout": "50ms"}
        runner = world.runner(hooks={"sync": {"version": "v2", "webhook": webhook}})
        world.hooks.handlers["sync?rev=1"] = slow
        try:
            with pytest.raises(SyncError, match="/sync\\?rev=1: ReadTimeout"):
                runner.sync(THING, "a", "t")
        finally:
            hold.set()

    @pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
    def test_a_restart_syncs_all_and_changes_nothing(
        self, world: World, strategy: ApplyStrategy
    ) -> None:
        world.strategy = strategy
        world.hooks.handlers["sync"] = always({"status": {"phase": "Up"}, "children": [part()]})
        world.thing()
        runner = world.runner("sync", "customize")
        runner.settle()
        before = (world.get(THING, "t"), world.get(PART, "p"))
        runner.restart()
        assert runner.settle() == 1
        assert (world.get(THING, "t"), world.get(PART, "p")) == before
        assert len(world.hooks.asked("customize")) == 2


class TestThreads:
    def test_work_is_done_in_the_background_until_it_is_stopped(self, world: World) -> None:
        ready = threading.Event()

        def note(_: Change, obj: Manifest, /) -> None:
            if obj.get("status", {}).get("phase") == "Up":
                ready.set()

        world.hooks.handlers["sync"] = always({"status": {"phase": "Up"}, "children": [part()]})
        world.cluster.subscribe(note)
        runner = world.runner()
        runner.start()
        world.thing()
        assert ready.wait(10)
        runner.stop()
        assert world.names(PART) == ["a/p"]

    def test_a_crash_ends_all_work(self, world: World) -> None:
        called = threading.Event()

        def hook(_: Manifest) -> Answer:
            called.set()
            return {"children": [None]}

        world.hooks.handlers["sync"] = hook
        world.thing()
        runner = world.runner()
        runner.start()
        assert called.wait(10)
        runner.wait_for_crash(10)
        with pytest.raises(RunnerCrashed):
            runner.stop()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param({"hooks": {}}, "no sync hook", id="no-hook"),
        pytest.param(
            {"hooks": {"sync": {"webhook": {"url": "http://x/"}}}}, "not of version v2", id="v1"
        ),
        pytest.param(
            {"hooks": {"sync": {"version": "v2", "webhook": {}}}}, "either a full url", id="no-url"
        ),
        pytest.param(
            {"childResources": [{"apiVersion": "v1", "resource": "nodes"}]}, "can't find", id="kind"
        ),
        pytest.param(
            {
                "childResources": [
                    {
                        "apiVersion": "v1",
                        "resource": "secrets",
                        "updateStrategy": {"method": "RollingInPlace"},
                    }
                ]
            },
            "not supported",
            id="method",
        ),
    ],
)
def test_a_controller_that_would_not_start_is_refused(
    world: World, change: Manifest, why: str
) -> None:
    with pytest.raises(BadController, match=why):
        read(controller("sync", **change), world.cluster.kinds)
