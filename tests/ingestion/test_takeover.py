"""Objects that druid-operator's own controller served, and tasks that somebody else submitted."""

from __future__ import annotations

import json

import pytest

from hooks.core.manifests import Manifest
from hooks.ingestion.model import OTHER_FINALIZER
from tests.ingestion.world import BATCH, KAFKA, IngestionWorld, edited

CLICKS = "checkout_clicks"


def legacy(world: IngestionWorld, id_: str, stored: str) -> Manifest:
    """Give the object the status that the other controller wrote."""
    status = {
        "taskId": id_,
        "currentIngestionSpec.json": stored,
        "type": "DruidIngestionControllerCreateSuccess",
        "message": "DruidIngestionControllerCreateSuccess",
        "reason": json.dumps({"task": id_}),
        "status": "True",
        "lastUpdateTime": "2023-05-06T21:34:29Z",
    }
    world.parents["load"]["status"] = status
    return status


def submitted_by_hand(world: IngestionWorld, text: str, id_: str) -> None:
    """Submit a task as somebody else."""
    document = {**json.loads(text), "id": id_}
    world.druid.tasks.add(id_, "index_parallel", "bike_dock_events", document)


def as_floats(text: str) -> str:
    """Print a specification as that controller did: sorted, through 64-bit floats."""
    return json.dumps(json.loads(text, parse_int=float), sort_keys=True)


def test_a_running_task_of_the_other_controller_is_followed(world: IngestionWorld) -> None:
    submitted_by_hand(world, BATCH, "theirs")
    world.make(BATCH)
    words = legacy(world, "theirs", as_floats(BATCH))
    world.settle()
    assert world.runs == []
    assert world.condition() == ("Unknown", "TaskRunning")
    assert {key: world.status()[key] for key in ("taskId", "type", "reason", "status")} == {
        key: words[key] for key in ("taskId", "type", "reason", "status")
    }
    world.druid.tasks.succeed("theirs")
    world.settle()
    assert world.condition() == ("True", "TaskSucceeded")


def test_a_specification_that_changed_meanwhile_is_an_update(world: IngestionWorld) -> None:
    submitted_by_hand(world, BATCH, "theirs")
    world.make(edited(BATCH, "spec", "tuningConfig", "maxRowsInMemory", value=5))
    legacy(world, "theirs", as_floats(BATCH))
    world.settle()
    assert world.druid.tasks["theirs"].state == "FAILED"
    assert len(world.runs) == 1
    assert world.status()["type"] == "DruidIngestionControllerUpdateSuccess"


def test_a_running_supervisor_of_the_other_controller_is_followed_without_a_restart(
    world: IngestionWorld,
) -> None:
    world.druid.supervisors.submit(json.loads(KAFKA), skip_unmodified=False)
    world.druid.supervisors.settle()
    world.make(KAFKA, "kafka")
    legacy(world, CLICKS, as_floats(KAFKA))
    world.settle()
    assert world.condition() == ("True", "SupervisorRunning")
    assert world.druid.supervisors[CLICKS].restarts == 0
    world.edit(edited(KAFKA, "spec", "ioConfig", "taskDuration", value="PT10M"))
    world.settle()
    assert world.condition() == ("True", "SupervisorRunning")
    assert world.druid.supervisors[CLICKS].restarts == 1
    world.delete()
    world.settle()
    assert dict(world.druid.supervisors) == {}


def test_an_object_that_the_other_controller_still_serves_is_left_to_it(
    world: IngestionWorld,
) -> None:
    world.make(BATCH)
    world.parents["load"]["metadata"]["finalizers"].append(OTHER_FINALIZER)
    legacy(world, "theirs", as_floats(BATCH))
    assert world.asked(world.settle) == []
    assert world.condition("Accepted") == ("False", "OtherController")
    assert world.condition() == ("False", "OtherController")
    assert "take-over" in world.message()


def test_an_object_that_was_taken_over_is_served(world: IngestionWorld) -> None:
    submitted_by_hand(world, BATCH, "theirs")
    world.make(BATCH)
    world.parents["load"]["metadata"]["finalizers"].append(OTHER_FINALIZER)
    legacy(world, "theirs", as_floats(BATCH))
    world.settle()
    world.annotate("take-over", "true")
    world.settle()
    assert world.condition() == ("Unknown", "TaskRunning")
    assert world.runs == []


@pytest.mark.parametrize("known", [True, False])
def test_a_task_is_adopted_by_annotation_if_there_is_one(
    world: IngestionWorld, *, known: bool
) -> None:
    if known:
        submitted_by_hand(world, BATCH, "restored")
    world.make(BATCH)
    world.annotate("adopt-id", "restored")
    world.settle()
    assert world.runs == []
    if known:
        assert world.condition() == ("Unknown", "TaskRunning")
        assert world.status()["taskId"] == "restored"
    else:
        assert world.condition() == ("False", "TaskLost")
        assert "adopt-id" in world.message()


def test_a_supervisor_is_adopted_by_annotation(world: IngestionWorld) -> None:
    world.druid.supervisors.submit(json.loads(KAFKA), skip_unmodified=False)
    world.make(KAFKA, "kafka")
    world.settle()
    assert world.condition() == ("False", "IdConflict")
    assert "adopt-id: checkout_clicks" in world.message()
    world.annotate("adopt-id", CLICKS)
    world.settle()
    assert world.condition() == ("True", "SupervisorRunning")
    world.delete()
    world.settle()
    assert dict(world.druid.supervisors) == {}


def test_a_supervisor_that_was_restored_with_another_uid_is_adopted(world: IngestionWorld) -> None:
    world.make(KAFKA, "kafka")
    world.settle()
    parent = world.parents["load"]
    parent["metadata"]["uid"] = "restored-from-a-backup"
    del parent["status"]
    world.settle()
    assert world.condition() == ("False", "IdConflict")
    world.annotate("adopt-id", CLICKS)
    world.settle()
    assert world.condition() == ("True", "SupervisorRunning")


def test_a_bad_edit_before_the_first_look_does_not_forget_the_others_task(
    world: IngestionWorld,
) -> None:
    submitted_by_hand(world, BATCH, "theirs")
    world.make("{")
    legacy(world, "theirs", as_floats(BATCH))
    world.settle()
    assert world.status()["taskId"] == "theirs"
    world.edit(BATCH)
    world.settle()
    assert world.condition() == ("Unknown", "TaskRunning")
    assert world.runs == []


def test_the_others_task_is_not_ended_by_a_deletion_after_we_looked(world: IngestionWorld) -> None:
    submitted_by_hand(world, BATCH, "theirs")
    world.make(BATCH)
    world.parents["load"]["metadata"]["finalizers"].append(OTHER_FINALIZER)
    legacy(world, "theirs", as_floats(BATCH))
    world.settle()
    world.delete()
    world.settle()
    assert "load" not in world.parents
    assert world.running == ["theirs"]


def test_a_task_with_a_bad_specification_is_ended_by_its_id(world: IngestionWorld) -> None:
    submitted_by_hand(world, BATCH, "theirs")
    world.make("{")
    legacy(world, "theirs", as_floats(BATCH))
    world.delete()
    world.settle()
    assert "load" not in world.parents
    assert world.running == []


def test_rules_of_the_other_controller_that_leave_the_spec_leave_druid(
    world: IngestionWorld,
) -> None:
    rules = [{"type": "loadForever"}]
    submitted_by_hand(world, BATCH, "theirs")
    world.druid.coordinator.rules["bike_dock_events"] = rules
    world.make(BATCH)
    legacy(world, "theirs", as_floats(BATCH))["rules"] = rules
    world.settle()
    assert world.druid.coordinator.rules["bike_dock_events"] == []


def test_an_annotation_that_stays_adopts_nothing_twice(world: IngestionWorld) -> None:
    submitted_by_hand(world, BATCH, "restored")
    world.make(BATCH)
    world.annotate("adopt-id", "restored")
    world.settle()
    changed = edited(BATCH, "spec", "tuningConfig", "maxRowsInMemory", value=5)
    world.edit(changed)
    world.settle()
    (mine,) = world.runs
    assert world.running == [mine]
    del world.parents["load"]["status"]
    world.settle()
    assert world.status()["taskId"] == mine
    assert world.runs == [mine]


def test_an_annotation_that_stays_adopts_nothing_for_the_content_of_many_edits_later(
    world: IngestionWorld,
) -> None:
    submitted_by_hand(world, BATCH, "restored")
    world.druid.tasks.succeed("restored")
    world.make(BATCH)
    world.annotate("adopt-id", "restored")
    world.settle()
    for number in range(1, 13):
        world.edit(edited(BATCH, "spec", "tuningConfig", "maxRowsInMemory", value=number))
        world.settle()
        assert len(world.runs) == number
        world.druid.tasks.succeed(world.runs[-1])
        world.settle()
    assert world.status()["taskId"] == world.runs[-1]
