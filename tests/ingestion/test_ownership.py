"""Whose supervisor is it? One that became somebody else's is left alone, and ours is not lost."""

from __future__ import annotations

import json

import pytest

from hooks.core.manifests import Manifest
from hooks.ingestion import submission
from hooks.ingestion.model import Spec
from hooks.ingestion.parsing import parse
from hooks.sandbox.druid import Fault
from tests.ingestion.test_streams import CLICKS, of_datasource, run, with_duration
from tests.ingestion.world import KAFKA, IngestionWorld, edited, text_of

UNUSABLE = edited(KAFKA, "spec", "ioConfig", "consumerProperties", value=None)


def minutes(world: IngestionWorld, count: int, *names: str) -> None:
    """Sync every minute."""
    for _ in range(count):
        for name in names or ("load",):
            world.sync(name)
        world.wait(60)


def lasting(world: IngestionWorld) -> Manifest:
    """Return Druid's copy of the supervisor, as its console shows it."""
    copy: Manifest = json.loads(json.dumps(world.druid.supervisors[CLICKS].spec))
    return copy


def edited_in_console(world: IngestionWorld) -> None:
    copy = lasting(world)
    for holder in (copy, copy["spec"]):
        holder["ioConfig"] = {**holder["ioConfig"], "taskDuration": "PT60S"}
    world.druid.supervisors.submit(copy, skip_unmodified=False)


def sent(world: IngestionWorld) -> Manifest:
    """Return what is sent for the spec as it is."""
    spec = parse(world.parents["load"])
    assert isinstance(spec, Spec)
    body: Manifest = json.loads(submission.body(spec, CLICKS))
    return body


def of_task_duration(world: IngestionWorld) -> str:
    return str(world.druid.supervisors[CLICKS].spec["ioConfig"]["taskDuration"])


def adopted_by_another(world: IngestionWorld, drift: str = "Report") -> None:
    """Let the DruidIngestion `two` take over what `one` runs."""
    run(world, name="one", drift=drift)
    world.make(with_duration("PT5M"), "kafka", name="two", drift=drift)
    world.annotate("adopt-id", CLICKS, name="two")
    world.settle("two")


def test_two_that_restore_do_not_fight_for_what_one_of_them_adopted(world: IngestionWorld) -> None:
    adopted_by_another(world, drift="Restore")
    known = len(world.runs)
    minutes(world, 25, "one", "two")
    assert len(world.runs) == known
    assert world.condition("Ready", "one") == ("False", "IdConflict")
    assert world.condition("Ready", "two") == ("True", "SupervisorRunning")
    written = world.writes
    minutes(world, 12, "one", "two")
    assert world.writes == written


def test_what_another_adopted_is_not_suspended(world: IngestionWorld) -> None:
    adopted_by_another(world)
    world.edit(name="one", suspend=True)
    world.settle("one")
    assert not world.druid.supervisors[CLICKS].suspended
    assert world.condition("Submitted", "one") == ("False", "IdConflict")


def test_what_another_adopted_and_suspended_is_not_resumed(world: IngestionWorld) -> None:
    run(world, name="one", drift="Restore")
    world.make(KAFKA, "kafka", name="two", suspend=True)
    world.annotate("adopt-id", CLICKS, name="two")
    world.settle("two")
    world.settle("one")
    assert world.druid.supervisors[CLICKS].suspended
    assert world.condition("Submitted", "one") == ("False", "IdConflict")


def test_a_status_that_was_restored_under_another_uid_is_adopted_once(
    world: IngestionWorld,
) -> None:
    run(world)
    world.parents["load"]["metadata"]["uid"] = "restored-from-a-backup"
    minutes(world, 12)
    assert world.condition() == ("False", "IdConflict")
    world.annotate("adopt-id", CLICKS)
    minutes(world, 3)
    assert world.condition() == ("True", "SupervisorRunning")
    assert world.runs == [CLICKS, CLICKS]
    world.parents["load"]["metadata"]["uid"] = "yet-another"
    minutes(world, 12)
    assert world.condition() == ("False", "IdConflict")
    assert world.runs == [CLICKS, CLICKS]


def test_a_deletion_leaves_what_somebody_put_in_the_place_of_ours(world: IngestionWorld) -> None:
    run(world)
    world.terminate_by_hand()
    world.druid.supervisors.submit(json.loads(KAFKA), skip_unmodified=False)
    world.delete()
    world.settle()
    assert "load" not in world.parents
    assert list(world.druid.supervisors) == [CLICKS]


def test_an_id_is_kept_by_a_druid_that_begins_to_honour_ids(world: IngestionWorld) -> None:
    run(world, text_of(8))
    assert list(world.druid.supervisors) == [CLICKS]
    world.druid.conduct.version = "34.0.0"
    world.edit(edited(text_of(8), "spec", "ioConfig", "taskDuration", value="PT20M"))
    world.settle()
    assert list(world.druid.supervisors) == [CLICKS]
    assert of_task_duration(world) == "PT1200S"


def test_an_edit_that_made_it_unhealthy_is_undone(world: IngestionWorld) -> None:
    run(world, drift="Restore")
    edited_in_console(world)
    world.druid.supervisors.lose_stream(CLICKS, "no such broker")
    minutes(world, 3)
    assert of_task_duration(world) == "PT1800S"


def test_an_edit_that_druid_does_not_undo_is_told_in_its_words(world: IngestionWorld) -> None:
    run(world, drift="Restore")
    edited_in_console(world)
    world.druid.faults.append(Fault("POST", "/supervisor", 999, status=400, body='{"error":"no"}'))
    minutes(world, 12)
    assert world.condition() == ("False", "Drifted")
    assert 'Druid refuses to change it back: {"error":"no"}' in world.message()
    written = world.writes
    minutes(world, 12)
    assert world.writes == written
    world.druid.faults.clear()
    minutes(world, 3)
    assert world.condition() == ("True", "SupervisorRunning")


def test_an_outage_while_an_edit_is_undone_does_not_hide_it(world: IngestionWorld) -> None:
    run(world, drift="Restore")
    edited_in_console(world)
    world.druid.faults.append(Fault("POST", "/supervisor", 999))
    minutes(world, 12)
    assert world.condition() == ("False", "DruidUnavailable")
    world.druid.faults.clear()
    minutes(world, 2)
    assert of_task_duration(world) == "PT1800S"


def test_an_upgrade_that_spells_values_anew_is_settled_by_a_restoration(
    world: IngestionWorld,
) -> None:
    run(world, drift="Restore")
    world.druid.supervisors[CLICKS].spec["spec"]["ioConfig"]["taskDuration"] = "PT0.5H"
    world.druid.conduct.version = "40.0.0"
    minutes(world, 12)
    assert world.condition() == ("True", "SupervisorRunning")
    known = len(world.runs)
    minutes(world, 25)
    assert len(world.runs) == known


def test_a_submission_that_arrives_after_a_later_one_is_sent_over(world: IngestionWorld) -> None:
    run(world)
    world.edit(with_duration("PT10M"))
    world.sync()
    late = sent(world)
    world.druid.faults.append(Fault("POST", "/supervisor"))
    world.sync()
    world.edit(with_duration("PT20M"))
    world.settle()
    world.druid.supervisors.submit(late, skip_unmodified=False)
    minutes(world, 12)
    assert of_task_duration(world) == "PT1200S"
    assert world.condition() == ("True", "SupervisorRunning")


def test_a_submission_of_long_after_it_was_written_down_is_waited_for_too(
    world: IngestionWorld,
) -> None:
    world.make(KAFKA, "kafka")
    world.sync()
    world.wait(600)
    late = sent(world)
    world.druid.faults.append(Fault("POST", "/supervisor"))
    world.sync()
    world.edit(of_datasource("moved"))
    world.sync()
    world.druid.supervisors.submit(late, skip_unmodified=False)
    minutes(world, 6)
    assert list(world.druid.supervisors) == ["moved"]


def test_silence_of_hours_moves_the_status_once_a_minute_and_no_more(
    world: IngestionWorld,
) -> None:
    world.make(KAFKA, "kafka")
    world.sync()
    world.druid.faults.append(Fault("POST", times=999))
    world.sync()
    written = world.writes
    for _ in range(300):
        world.wait(2)
        world.sync()
    assert world.writes - written <= 10


class TestARefusedUpdate:
    def refused(self, world: IngestionWorld, *, healed: bool = True) -> None:
        """Destroy the supervisor in an update, and put nothing back."""
        run(world)
        world.druid.conduct.creation_error = "no more room"
        world.edit(with_duration("PT10M"))
        world.settle()
        assert dict(world.druid.supervisors) == {}
        if healed:
            world.druid.conduct.creation_error = ""

    def test_what_it_destroyed_is_put_back_as_soon_as_that_can_be(
        self, world: IngestionWorld
    ) -> None:
        self.refused(world)
        minutes(world, 2)
        assert list(world.druid.supervisors) == [CLICKS]
        assert of_task_duration(world) == "PT1800S"
        assert world.condition() == ("False", "SubmissionRejected")
        assert "runs with the specification before it" in world.message()

    def test_what_was_terminated_after_it_is_not_put_back(self, world: IngestionWorld) -> None:
        self.refused(world)
        minutes(world, 2)
        world.terminate_by_hand()
        minutes(world, 3)
        assert dict(world.druid.supervisors) == {}
        assert world.condition() == ("False", "SupervisorLost")
        assert "somebody terminated it" in world.message()

    def test_to_undo_it_is_to_run_what_ran_before(self, world: IngestionWorld) -> None:
        self.refused(world)
        world.edit(KAFKA)
        world.settle()
        assert of_task_duration(world) == "PT1800S"
        assert world.condition() == ("True", "SupervisorRunning")

    def test_what_a_new_leader_brings_back_goes_with_the_object(
        self, world: IngestionWorld
    ) -> None:
        run(world)
        copy = lasting(world)
        world.druid.conduct.creation_error = "no more room"
        world.edit(with_duration("PT10M"))
        world.settle()
        world.druid.conduct.creation_error = ""
        world.druid.supervisors.submit(copy, skip_unmodified=False)
        world.delete()
        world.settle()
        assert "load" not in world.parents
        assert dict(world.druid.supervisors) == {}

    @pytest.mark.parametrize("suspend", [True, False])
    def test_what_runs_on_is_suspended_and_resumed(
        self, world: IngestionWorld, *, suspend: bool
    ) -> None:
        run(world, suspend=not suspend)
        world.edit(UNUSABLE)
        world.settle()
        world.edit(suspend=suspend)
        world.settle()
        assert world.druid.supervisors[CLICKS].suspended is suspend
        assert world.condition("Suspended")[0] == str(suspend)
        assert world.condition() == ("False", "SubmissionRejected")

    def test_many_of_them_do_not_make_it_forgotten_what_runs(self, world: IngestionWorld) -> None:
        run(world)
        for number in range(12):
            world.edit(edited(UNUSABLE, "spec", "ioConfig", "taskCount", value=number))
            world.settle()
        assert len(world.status()["history"]) == 10
        world.delete()
        world.settle()
        assert dict(world.druid.supervisors) == {}
