"""Whatever write is cut off, lost, refused or doubled, the world ends the same.

The list of writes is not written here: a run without faults counts them, and each is then made to
fail in each way.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hooks.effects.ports.druid import Cluster
from hooks.sandbox.druid_specs import supervisor
from tests.ingestion.faults import FAULTS, READS, Fault, Fuse, Killed
from tests.ingestion.world import BATCH, KAFKA, SQL, A, B, IngestionWorld, edited, text_of

RULES = [{"type": "loadForever", "tieredReplicants": {"_default_tier": 1}}]


def test_every_port_method_is_a_read_by_name_or_a_write() -> None:
    methods = {
        name
        for name, _ in inspect.getmembers(Cluster, inspect.isfunction)
        if not name.startswith("_")
    }
    assert methods - READS == {
        "submit",
        "shut_down",
        "suspend",
        "resume",
        "terminate",
        "set_compaction",
        "delete_compaction",
        "set_rules",
    }
    assert methods >= READS


def finish(world: IngestionWorld) -> None:
    """Let everything in Druid come to its end."""
    for id_ in world.running:
        world.druid.tasks.succeed(id_)
    world.druid.supervisors.settle()
    world.settle()


def other_stream(name: str) -> str:
    return edited(KAFKA, "spec", "dataSchema", "dataSource", value=name)


def batch(world: IngestionWorld) -> None:
    world.make(BATCH, ingestion={"rules": RULES, "compaction": {"skipOffsetFromLatest": "P1D"}})


def sql(world: IngestionWorld) -> None:
    world.make(SQL, "sql")


def own_id(world: IngestionWorld) -> None:
    world.make(text_of(9))


def update(world: IngestionWorld) -> None:
    world.make(A)
    world.settle()
    world.edit(B)


def stream(world: IngestionWorld) -> None:
    world.make(KAFKA, "kafka")


def stream_update(world: IngestionWorld) -> None:
    stream(world)
    world.settle()
    world.edit(edited(KAFKA, "spec", "ioConfig", "taskDuration", value="PT10M"))


def stream_moved(world: IngestionWorld) -> None:
    stream(world)
    world.settle()
    world.edit(other_stream("clicks_2"))


def stream_suspended(world: IngestionWorld) -> None:
    stream(world)
    world.settle()
    world.edit(suspend=True)


def stream_resumed(world: IngestionWorld) -> None:
    world.make(KAFKA, "kafka", suspend=True)
    world.settle()
    world.edit(suspend=False)


def deleted_batch(world: IngestionWorld) -> None:
    batch(world)
    world.settle()
    world.delete()


def deleted_stream(world: IngestionWorld) -> None:
    stream(world)
    world.settle()
    world.delete()


Scene = Callable[[IngestionWorld], None]
SCENES: dict[Scene, tuple[str, ...]] = {
    batch: ("submit", "set_compaction", "set_rules"),
    sql: ("submit",),
    own_id: ("submit",),
    update: ("shut_down", "submit"),
    stream: ("submit",),
    stream_update: ("submit",),
    stream_moved: ("terminate", "submit"),
    stream_suspended: ("suspend",),
    stream_resumed: ("resume",),
    deleted_batch: ("shut_down", "delete_compaction", "set_rules"),
    deleted_stream: ("terminate",),
}
CASES = [(scene, at) for scene, writes in SCENES.items() for at in range(len(writes))]


def once(world: IngestionWorld, fuse: Fuse) -> None:
    """Sync with a fault; a call that was killed leaves no answer."""
    try:
        world.sync(wrap=fuse.services)
    except Killed:
        world.wait(2)


def play(world: IngestionWorld, scene: Scene, fuse: Fuse) -> None:
    """Set a scene, sync through the fuse until it is over, then without it to the end."""
    scene(world)
    for _ in range(6):
        if "load" in world.parents:
            once(world, fuse)
            world.wait(10)
    for _ in range(4):
        if "load" in world.parents:
            world.wait(200)
            world.settle()
    if "load" in world.parents:
        finish(world)


def end(world: IngestionWorld) -> object:
    """Return how the world ended, without what may differ: times, and how often it was asked."""
    druid = world.druid
    kept = {
        "tasks": {task.id: task.state for task in druid.tasks.values()},
        "supervisors": {one.id: one.spec for one in druid.supervisors.values()},
        "compaction": druid.coordinator.compaction,
        "rules": {name: rules for name, rules in druid.coordinator.rules.items() if rules},
    }
    if "load" not in world.parents:
        return kept, None
    status = world.status()
    history = [(entry["id"], entry["state"]) for entry in status["history"]]
    return kept, (world.conditions(), status["taskId"], history)


@functools.cache
def without_faults(scene: Scene) -> object:
    """Return how a scene ends when nothing goes wrong."""
    with IngestionWorld() as world:
        play(world, scene, Fuse())
        return end(world)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_the_writes_of_a_life_are_those_that_get_faults(
    world: IngestionWorld, scene: Scene
) -> None:
    fuse = Fuse()
    play(world, scene, fuse)
    assert tuple(fuse.writes) == SCENES[scene]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("scene", "at"), CASES, ids=[f"{scene.__name__}-{at}" for scene, at in CASES]
)
def test_it_ends_the_same(scene: Scene, at: int, fault: Fault) -> None:
    with IngestionWorld() as world:
        fuse = Fuse(at, fault)
        play(world, scene, fuse)
        assert len(fuse.writes) > at
        assert end(world) == without_faults(scene)
        tasks = [one.id for one in world.druid.submissions if one.endpoint != "supervisor"]
        assert len(set(tasks)) == len(tasks)


@settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    steps=st.lists(
        st.sampled_from([A, B, "suspend", "go on", "finish", "fail", "lose", "delete"]),
        min_size=2,
        max_size=5,
    ),
    at=st.integers(0, 4),
    fault=st.sampled_from(FAULTS),
)
def test_no_sequence_runs_two_tasks_at_once_or_one_run_twice(
    steps: list[str], at: int, fault: Fault
) -> None:
    with IngestionWorld() as world:
        fuse = Fuse(at, fault)
        world.make(A)
        for step in steps:
            take(world, step)
            for _ in range(3):
                if "load" in world.parents:
                    once(world, fuse)
                    world.wait(70)
                    assert len(world.running) <= 1
        assert len(set(world.runs)) == len(world.runs)
        for _ in range(5):
            if "load" in world.parents:
                world.wait(200)
                world.settle()
        assert len(world.running) <= ("load" in world.parents)


def take(world: IngestionWorld, step: str) -> None:
    """Do what somebody may do."""
    if "load" not in world.parents:
        return
    match step:
        case "suspend" | "go on":
            world.edit(suspend=step == "suspend")
        case "finish" | "fail" | "lose":
            for id_ in world.running:
                if step == "finish":
                    world.druid.tasks.succeed(id_)
                elif step == "fail":
                    world.druid.tasks.fail(id_, "no luck")
                else:
                    world.parents["load"].pop("status", None)
        case "delete":
            world.delete()
        case text:
            world.edit(text)


def duration(text: str) -> str:
    return edited(KAFKA, "spec", "ioConfig", "taskDuration", value=text)


STREAM_STEPS = {
    "ten minutes": duration("PT10M"),
    "an hour": duration("PT1H"),
    "moved": other_stream("clicks_2"),
    "back": KAFKA,
}


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(
        st.sampled_from([*STREAM_STEPS, "suspend", "go on", "terminated by hand"]),
        min_size=1,
        max_size=5,
    ),
    at=st.integers(0, 4),
    fault=st.sampled_from(FAULTS),
    looks=st.integers(1, 3),
)
def test_every_sequence_ends_in_the_one_supervisor_that_is_asked_for(
    steps: list[str], at: int, fault: Fault, looks: int
) -> None:
    with IngestionWorld() as world:
        fuse = Fuse(at, fault)
        world.make(KAFKA, "kafka", drift="Restore")
        for step in steps:
            if step in STREAM_STEPS:
                world.edit(STREAM_STEPS[step])
            elif step == "terminated by hand":
                world.terminate_by_hand()
            else:
                world.edit(suspend=step == "suspend")
            for _ in range(looks):
                once(world, fuse)
                world.wait(5)
        for _ in range(15):
            world.sync()
            world.wait(60)
            world.druid.supervisors.settle()
        world.settle()
        spec = world.parents["load"]["spec"]
        (only,) = world.druid.supervisors.values()
        other = supervisor(json.loads(spec["ingestion"]["spec"]), own_id="")
        assert only.suspended is spec["suspend"]
        assert only.spec["ioConfig"]["taskDuration"] == other["ioConfig"]["taskDuration"]
        assert only.id == other["dataSchema"]["dataSource"]
        assert world.condition()[0] == "True"
