"""The runner treats the hooks of a DecoratorController as Metacontroller does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hooks.core.manifests import LAST_APPLIED, Manifest
from hooks.sandbox.cluster import CONFIG_MAP, Kind, MemoryCluster
from hooks.sandbox.metacontroller import (
    ApplyStrategy,
    Connection,
    Runner,
    RunnerCrashed,
    SyncError,
    Time,
)
from tests.sandbox.hooked import PART, THING, HookServer, crd
from tests.sandbox.widgets import NOW, owned_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FINALIZER = "metacontroller.io/decoratorcontroller-things"
SIGNED = "metacontroller.k8s.io/decorator-controller"


class World:
    """A cluster, hooks, and the runner between them."""

    def __init__(self, hooks: HookServer) -> None:
        self.hooks = hooks
        self.cluster = MemoryCluster([crd(THING), crd(PART)], lambda: NOW, namespaces=("a", "b"))
        self.strategy: ApplyStrategy = "dynamic-apply"
        self._runner: Runner | None = None

    def runner(self, *hooks: str, method: str = "InPlace", **spec: Any) -> Runner:  # noqa: ANN401 - manifests are untyped
        """Return the runner, made at the first call for a controller with these hooks."""
        if self._runner is None:
            self._runner = Runner(
                self.cluster,
                [controller(*(hooks or ("sync",)), method=method, **spec)],
                connect=Connection(self.hooks.url),
                time=Time(lambda: 0.0),
                strategy=self.strategy,
            )
        return self._runner

    def answers(self, hook: str, answer: Callable[[Manifest], Manifest] | Manifest) -> None:
        self.hooks.handlers[hook] = answer if callable(answer) else lambda _: answer

    def thing(self, name: str = "t", kind: Kind = THING, **metadata: Any) -> Manifest:  # noqa: ANN401 - as above
        meta = {"name": name, "namespace": "a"} | metadata
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        return self.cluster.create({**head, "metadata": meta, "spec": {"size": 1}})

    def get(self, kind: Kind, name: str) -> Manifest:
        found = self.cluster.get(kind, "a", name)
        assert found is not None
        return found

    def names(self, kind: Kind) -> list[str]:
        return [str(obj["metadata"]["name"]) for obj in self.cluster.list(kind)]


@pytest.fixture(scope="module")
def server() -> Iterator[HookServer]:
    hooks = HookServer()
    yield hooks
    hooks.close()


@pytest.fixture
def world(server: HookServer) -> Iterator[World]:
    server.requests.clear()
    server.handlers = {"sync": lambda _: {}, "customize": lambda _: {}}
    server.handlers["finalize"] = lambda _: {"finalized": True}
    made = World(server)
    yield made
    if made.runner().crash is None:
        made.runner().stop()


def controller(*hooks: str, method: str = "InPlace", **spec: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    """Return a DecoratorController of Things that attaches ConfigMaps."""
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "DecoratorController",
        "metadata": {"name": "things"},
        "spec": {
            "resources": [{"apiVersion": "example.com/v1", "resource": "things"}],
            "attachments": [
                {
                    "apiVersion": "v1",
                    "resource": "configmaps",
                    "updateStrategy": {"method": method},
                }
            ],
            "hooks": {
                name: {"version": "v2", "webhook": {"url": f"http://hooks/{name}"}}
                for name in hooks
            },
        }
        | spec,
    }


def config_map(name: str = "c", **fields: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} | fields


def asked(world: World) -> list[str]:
    return [request["object"]["metadata"]["name"] for request in world.hooks.asked("sync")]


def edit(world: World, obj: Manifest, **metadata: Any) -> Manifest:  # noqa: ANN401 - as above
    return world.cluster.replace(obj | {"metadata": obj["metadata"] | metadata})


class TestRequest:
    def test_it_names_the_object_and_its_attachments(self, world: World) -> None:
        rule = {"apiVersion": "example.com/v1", "resource": "parts", "namespace": "a"}
        world.answers("customize", {"relatedResources": [rule]})
        part = world.thing("p", PART)
        world.answers("sync", {"attachments": [config_map()]})
        world.runner("sync", "customize")
        thing = world.thing()

        world.runner().settle()

        made = world.get(CONFIG_MAP, "c")
        assert world.hooks.asked("customize") == [
            {"controller": controller("sync", "customize"), "parent": thing}
        ]
        assert world.hooks.asked("sync")[-1] == {
            "controller": controller("sync", "customize"),
            "object": thing,
            "attachments": {"ConfigMap.v1": {"a/c": made}},
            "related": {"Part.example.com/v1": {"a/p": part}},
            "finalizing": False,
        }

    def test_a_changed_related_object_wakes_the_object(self, world: World) -> None:
        rule = {"apiVersion": "example.com/v1", "resource": "parts", "namespace": "a"}
        world.answers("customize", {"relatedResources": [rule]})
        world.thing()
        world.runner("sync", "customize").settle()
        before = len(asked(world))

        world.thing("p", PART)
        world.runner().settle()

        assert asked(world)[before:] == ["t"]

    @pytest.mark.parametrize(
        ("rule", "chosen"),
        [
            pytest.param({}, ["both", "label", "neither", "note"], id="all"),
            pytest.param(
                {"labelSelector": {"matchLabels": {"on": "yes"}}}, ["both", "label"], id="label"
            ),
            pytest.param(
                {"annotationSelector": {"matchAnnotations": {"on": "yes"}}},
                ["both", "note"],
                id="annotation",
            ),
            pytest.param(
                {
                    "annotationSelector": {
                        "matchExpressions": [{"key": "on", "operator": "DoesNotExist"}]
                    }
                },
                ["label", "neither"],
                id="expression",
            ),
            pytest.param(
                {
                    "labelSelector": {"matchLabels": {"on": "yes"}},
                    "annotationSelector": {"matchAnnotations": {"on": "yes"}},
                },
                ["both"],
                id="label-and-annotation",
            ),
        ],
    )
    def test_objects_are_chosen_by_labels_and_annotations(
        self, world: World, rule: Manifest, chosen: list[str]
    ) -> None:
        on = {"on": "yes"}
        world.thing("both", labels=on, annotations=on)
        world.thing("label", labels=on)
        world.thing("note", annotations=on)
        world.thing("neither")

        resource = {"apiVersion": "example.com/v1", "resource": "things"}
        world.runner(resources=[resource | rule]).settle()

        assert sorted(set(asked(world))) == chosen

    def test_one_controller_decorates_several_kinds_each_by_its_own_rule(
        self, world: World
    ) -> None:
        things = {"apiVersion": "example.com/v1", "resource": "things"}
        parts = things | {"resource": "parts", "labelSelector": {"matchLabels": {"on": "yes"}}}
        world.runner(resources=[things, parts])
        world.thing("same")
        world.thing("same", PART)
        world.thing("other", PART, labels={"on": "yes"})

        world.runner().settle()

        kinds = [(one["object"]["kind"], name) for one, name in _with_names(world)]
        assert sorted(set(kinds)) == [("Part", "other"), ("Thing", "same")]


def _with_names(world: World) -> list[tuple[Manifest, str]]:
    return list(zip(world.hooks.asked("sync"), asked(world), strict=True))


class TestAttachments:
    def test_an_attachment_is_owned_and_signed(self, world: World) -> None:
        world.answers("sync", {"attachments": [config_map(data={"k": "v"})]})
        thing = world.thing()

        world.runner().settle()

        made = world.get(CONFIG_MAP, "c")["metadata"]
        uid = thing["metadata"]["uid"]
        assert made["ownerReferences"] == [
            {
                "apiVersion": "example.com/v1",
                "kind": "Thing",
                "name": "t",
                "uid": uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert made.get("labels") is None
        assert made["annotations"][SIGNED] == "things"
        applied = json.loads(made["annotations"][LAST_APPLIED])
        assert applied == {
            **config_map(data={"k": "v"}),
            "metadata": {"name": "c", "namespace": "a", "annotations": {SIGNED: "things"}},
        }

    def test_what_others_made_for_the_object_is_neither_seen_nor_touched(
        self, world: World
    ) -> None:
        thing = world.thing()
        foreign = world.cluster.create(
            owned_by(
                thing,
                config_map("foreign", metadata={"name": "foreign", "namespace": "a"}),
                controller=True,
            )
        )
        orphan = world.cluster.create(config_map(metadata={"name": "orphan", "namespace": "a"}))

        world.runner().settle()

        assert world.hooks.asked("sync")[-1]["attachments"] == {"ConfigMap.v1": {}}
        assert [world.get(CONFIG_MAP, "foreign"), world.get(CONFIG_MAP, "orphan")] == [
            foreign,
            orphan,
        ]

    def test_what_is_listed_no_more_is_deleted(self, world: World) -> None:
        world.answers("sync", {"attachments": [config_map("c"), config_map("d")]})
        world.thing()
        world.runner().settle()

        world.answers("sync", {"attachments": [config_map("d")]})
        world.runner().resync()
        world.runner().settle()

        assert world.names(CONFIG_MAP) == ["d"]

    @pytest.mark.parametrize(
        ("method", "data"),
        [
            pytest.param("InPlace", {"k": "new"}, id="in-place"),
            pytest.param("OnDelete", {"k": "old"}, id="on-delete"),
        ],
    )
    @pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
    def test_an_attachment_is_updated_by_its_method(
        self, world: World, strategy: ApplyStrategy, method: str, data: dict[str, str]
    ) -> None:
        world.strategy = strategy
        world.runner(method=method)
        world.answers("sync", {"attachments": [config_map(data={"k": "old"})]})
        world.thing()
        world.runner().settle()

        world.answers("sync", {"attachments": [config_map(data={"k": "new"})]})
        world.runner().resync()
        world.runner().settle()

        assert world.get(CONFIG_MAP, "c")["data"] == data

    def test_a_deleted_attachment_comes_back(self, world: World) -> None:
        world.answers("sync", {"attachments": [config_map()]})
        world.thing()
        world.runner().settle()

        world.cluster.delete(CONFIG_MAP, "a", "c")
        world.runner().settle()

        assert world.names(CONFIG_MAP) == ["c"]

    def test_a_failed_sync_leaves_them(self, world: World) -> None:
        world.answers("sync", {"attachments": [config_map()]})
        thing = world.thing()
        world.runner().settle()

        world.answers("sync", {"children": []})
        with pytest.raises(SyncError, match='unknown field "children"'):
            world.runner().sync(THING, "a", "t")

        assert (world.names(CONFIG_MAP), world.get(THING, "t")) == (["c"], thing)

    def test_a_null_attachment_ends_the_process(self, world: World) -> None:
        world.answers("sync", {"attachments": [None]})
        world.thing()

        with pytest.raises(RunnerCrashed, match="attachments has a null item"):
            world.runner().settle()


class TestDecoration:
    def test_labels_and_annotations_are_merged_and_null_takes_one_away(self, world: World) -> None:
        world.answers(
            "sync", {"labels": {"new": "1", "old": None}, "annotations": {"new": "2", "old": None}}
        )
        world.thing(labels={"old": "x", "kept": "y"}, annotations={"old": "x", "kept": "y"})

        world.runner().settle()

        meta = world.get(THING, "t")["metadata"]
        assert (meta["labels"], meta["annotations"]) == (
            {"new": "1", "kept": "y"},
            {"new": "2", "kept": "y"},
        )

    def test_a_label_that_is_no_text_is_an_error(self, world: World) -> None:
        world.answers("sync", {"labels": {"a": 1}})
        world.thing()

        with pytest.raises(SyncError, match="labels has a value that is no text"):
            world.runner().sync(THING, "a", "t")

    @pytest.mark.parametrize(
        "answer", [pytest.param({}, id="absent"), pytest.param({"status": None}, id="null")]
    )
    def test_without_a_status_the_status_stays(self, world: World, answer: Manifest) -> None:
        world.answers("sync", {**answer, "labels": {"new": "1"}})
        thing = world.thing()
        world.cluster.replace_status(thing | {"status": {"phase": "theirs"}})

        world.runner().settle()

        assert world.get(THING, "t")["status"] == {"phase": "theirs"}

    def test_a_status_is_replaced_whole_and_nothing_is_added(self, world: World) -> None:
        world.answers("sync", {"status": {"observedGeneration": 7}})
        thing = world.thing()
        world.cluster.replace_status(thing | {"status": {"phase": "theirs"}})

        world.runner().settle()

        assert world.get(THING, "t")["status"] == {"observedGeneration": 7}

    def test_an_empty_status_wipes(self, world: World) -> None:
        world.answers("sync", {"status": {}})
        thing = world.thing()
        world.cluster.replace_status(thing | {"status": {"phase": "theirs"}})

        world.runner().settle()

        assert world.get(THING, "t")["status"] == {}

    def test_after_a_changed_status_the_object_is_written_as_well(self, world: World) -> None:
        world.answers("sync", {"status": {"phase": "ours"}})
        world.thing()

        world.runner().settle()

        counts = world.runner().statistics.of("a", "t")
        assert (counts["status"], counts["parent"]) == (1, 1)

    def test_who_wrote_in_between_wins_and_the_next_sync_sees_it(self, world: World) -> None:
        def sync(request: Manifest) -> Manifest:
            if len(world.hooks.asked("sync")) == 1:
                world.cluster.replace_status(
                    world.get(THING, "t") | {"status": {"phase": "theirs"}}
                )
            status = request["object"].get("status", {})
            return {
                "status": {**status, "observedGeneration": 7},
                "attachments": [config_map()],
            }

        world.answers("sync", sync)
        world.thing()
        world.runner().sync(THING, "a", "t")
        first = (world.get(THING, "t")["status"], world.names(CONFIG_MAP))

        world.runner().settle()

        assert first == ({"phase": "theirs"}, [])
        assert world.get(THING, "t")["status"] == {"phase": "theirs", "observedGeneration": 7}
        assert world.names(CONFIG_MAP) == ["c"]

    def test_once_everything_is_as_wanted_nothing_is_written(self, world: World) -> None:
        answer = {"labels": {"l": "1"}, "status": {"phase": "p"}, "attachments": [config_map()]}
        world.answers("sync", answer)
        world.thing()
        world.runner().settle()
        before = world.runner().statistics.writes

        world.runner().resync()
        world.runner().settle()

        assert world.runner().statistics.writes == before

    def test_it_asks_again_after_the_time_that_it_was_given(self, world: World) -> None:
        world.answers("sync", {"resyncAfterSeconds": 30})
        world.thing()
        world.runner().settle()

        assert world.runner().settle(within=31) == 1


class TestFinalize:
    def test_the_finalizer_says_which_type_of_controller_it_is_for(self, world: World) -> None:
        world.thing()

        world.runner("sync", "finalize").settle()

        assert world.get(THING, "t")["metadata"]["finalizers"] == [FINALIZER]

    def test_without_a_finalize_hook_there_is_no_finalizer(self, world: World) -> None:
        world.thing()

        world.runner().settle()

        assert "finalizers" not in world.get(THING, "t")["metadata"]

    def test_a_deleted_object_goes_when_its_hook_says_so(self, world: World) -> None:
        world.answers("sync", {"attachments": [config_map()]})
        world.answers(
            "finalize",
            lambda request: {"finalized": request["attachments"] == {"ConfigMap.v1": {}}},
        )
        world.thing()
        world.runner("sync", "finalize").settle()

        world.cluster.delete(THING, "a", "t")
        world.runner().settle()

        assert (world.names(THING), world.names(CONFIG_MAP)) == ([], [])

    def test_an_object_that_is_deselected_is_finalized_and_stays(self, world: World) -> None:
        selector = {"labelSelector": {"matchLabels": {"on": "yes"}}}
        resource = {"apiVersion": "example.com/v1", "resource": "things"} | selector
        world.answers("sync", {"attachments": [config_map()]})
        world.answers("finalize", {"finalized": True})
        world.runner("sync", "finalize", resources=[resource])
        world.thing(labels={"on": "yes"})
        world.runner().settle()

        edit(world, world.get(THING, "t"), labels={})
        world.runner().settle()

        assert "finalizers" not in world.get(THING, "t")["metadata"]
        assert (world.names(THING), world.names(CONFIG_MAP)) == (["t"], [])
        assert world.hooks.asked("finalize")[-1]["finalizing"] is True

    def test_attachments_of_the_last_answer_are_still_applied(self, world: World) -> None:
        """Unlike a CompositeController: the object is taken as it was, with its finalizer."""
        world.answers("finalize", {"finalized": True, "attachments": [config_map("farewell")]})
        world.thing(finalizers=["example.com/other"])
        world.runner("sync", "finalize").settle()

        world.cluster.delete(THING, "a", "t")
        world.runner().settle()

        assert world.get(THING, "t")["metadata"]["finalizers"] == ["example.com/other"]
        assert world.names(CONFIG_MAP) == ["farewell"]


def test_a_composite_and_a_decorator_of_one_name_do_not_disturb_each_other(world: World) -> None:
    composite = {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": "things"},
        "spec": {
            "parentResource": {"apiVersion": "example.com/v1", "resource": "parts"},
            "generateSelector": True,
            "hooks": {"sync": {"version": "v2", "webhook": {"url": "http://hooks/composite"}}},
        },
    }
    world.answers("composite", {"status": {"phase": "composed"}})
    world.answers("sync", {"labels": {"decorated": "yes"}})
    world.thing()
    world.thing("p", PART)
    runner = Runner(
        world.cluster,
        [composite, controller("sync")],
        connect=Connection(world.hooks.url),
        time=Time(lambda: 0.0),
    )

    runner.settle()
    runner.stop()

    assert world.get(THING, "t")["metadata"]["labels"] == {"decorated": "yes"}
    assert world.get(PART, "p")["status"] == {"phase": "composed", "observedGeneration": 1}
