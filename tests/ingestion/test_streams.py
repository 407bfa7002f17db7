"""Lives of streaming ingestions."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from hooks.effects.ports import Services
from hooks.sandbox.druid import Fault
from tests.ingestion.faults import Healing
from tests.ingestion.world import KAFKA, KINESIS, IngestionWorld, edited, text_of

CLICKS = "checkout_clicks"
MINUTE = 60


def of_datasource(name: str) -> str:
    return edited(KAFKA, "spec", "dataSchema", "dataSource", value=name)


def with_duration(duration: str) -> str:
    return edited(KAFKA, "spec", "ioConfig", "taskDuration", value=duration)


def run(
    world: IngestionWorld,
    text: str = KAFKA,
    type_: str = "kafka",
    *,
    name: str = "load",
    **spec: object,
) -> None:
    """Create a supervisor and let it become steady."""
    world.make(text, type_, name=name, **spec)
    world.settle(name)
    world.druid.supervisors.settle()
    world.settle(name)


def round_of(world: IngestionWorld) -> list[str]:
    """Sync ten times, a minute apart, and return what Druid was asked."""

    def ten() -> None:
        for _ in range(10):
            world.wait(MINUTE)
            world.sync()

    return world.asked(ten)


@pytest.mark.parametrize(
    ("type_", "text"),
    [("kafka", KAFKA), ("Kafka", KAFKA), ("kinesis", KINESIS), ("Kinesis", KINESIS)],
)
def test_every_streaming_type_runs_under_both_of_its_names(
    world: IngestionWorld, type_: str, text: str
) -> None:
    run(world, text, type_)
    (id_,) = world.druid.supervisors
    assert world.condition() == ("True", "SupervisorRunning")
    assert world.status()["taskId"] == id_
    assert world.status()["supervisor"] == {
        "id": id_,
        "state": "RUNNING",
        "detailedState": "RUNNING",
        "healthy": True,
        "suspended": False,
    }


def test_a_supervisor_is_written_down_before_it_is_submitted(world: IngestionWorld) -> None:
    world.make(KAFKA, "kafka")
    world.sync()
    assert dict(world.druid.supervisors) == {}
    assert world.status()["history"][0]["state"] == "Submitting"
    world.sync()
    assert list(world.druid.supervisors) == [CLICKS]


@pytest.mark.parametrize("suspend", [False, True], ids=["running", "suspended"])
def test_a_steady_supervisor_is_one_question_a_sync_and_no_write(
    world: IngestionWorld, *, suspend: bool
) -> None:
    run(world, suspend=suspend)
    written = world.writes
    asked = round_of(world)
    path = f"GET /druid/indexer/v1/supervisor/{CLICKS}"
    assert sorted(asked) == sorted([path, *[f"{path}/status"] * 9])
    assert world.writes == written


def test_an_update_goes_to_the_running_supervisor(world: IngestionWorld) -> None:
    run(world)
    world.edit(with_duration("PT10M"))
    world.settle()
    supervisor = world.druid.supervisors[CLICKS]
    assert supervisor.spec["ioConfig"]["taskDuration"] == "PT600S"
    assert supervisor.restarts == 1
    assert [entry["state"] for entry in world.status()["history"]] == ["Running", "Replaced"]
    assert world.status()["type"] == "DruidIngestionControllerUpdateSuccess"


def test_an_update_of_a_suspended_supervisor_leaves_it_suspended(world: IngestionWorld) -> None:
    run(world, suspend=True)
    assert world.condition() == ("True", "Suspended")
    assert world.condition("Suspended") == ("True", "Suspended")
    world.edit(with_duration("PT10M"))
    world.settle()
    assert world.druid.supervisors[CLICKS].suspended


def test_suspend_and_resume_are_one_call_each(world: IngestionWorld) -> None:
    run(world)
    for suspend, verb in ((True, "suspend"), (False, "resume")):
        world.edit(suspend=suspend)
        asked = world.asked(world.settle)
        assert [one for one in asked if one.startswith("POST")] == [
            f"POST /druid/indexer/v1/supervisor/{CLICKS}/{verb}"
        ]
        assert world.druid.supervisors[CLICKS].suspended is suspend
        assert world.condition("Suspended")[0] == str(suspend)


def test_a_users_own_suspended_counts(world: IngestionWorld) -> None:
    run(world, edited(KAFKA, "suspended", value=True))
    assert world.druid.supervisors[CLICKS].suspended
    world.edit(KAFKA)
    world.settle()
    assert not world.druid.supervisors[CLICKS].suspended
    assert len(world.runs) == 1


def test_another_datasource_ends_the_old_supervisor_first(world: IngestionWorld) -> None:
    run(world)
    world.edit(of_datasource("clicks_2"))
    world.settle()
    assert list(world.druid.supervisors) == ["clicks_2"]
    assert world.status()["taskId"] == "clicks_2"
    assert [entry["state"] for entry in world.status()["history"]] == ["Running", "Stopped"]


def test_an_unhealthy_supervisor_is_reported_with_its_errors(world: IngestionWorld) -> None:
    run(world)
    world.druid.supervisors.lose_stream(CLICKS, "Failed to connect to broker")
    world.sync()
    assert world.condition() == ("False", "SupervisorUnhealthy")
    assert world.status()["supervisor"]["errors"] == ["Failed to connect to broker"]
    assert world.condition("Submitted") == ("True", "Submitted")


def test_a_suspended_supervisor_without_a_stream_is_as_asked(world: IngestionWorld) -> None:
    run(world, suspend=True)
    world.druid.supervisors.lose_stream(CLICKS, "no such topic")
    world.settle()
    assert world.condition() == ("True", "Suspended")


def test_an_invalid_update_is_refused_and_the_old_supervisor_runs_on(
    world: IngestionWorld,
) -> None:
    run(world)
    world.edit(edited(KAFKA, "spec", "ioConfig", "consumerProperties", value=None))
    world.settle()
    assert world.conditions()["Submitted"] == ("False", "SubmissionRejected")
    assert "runs with the specification before it" in world.message()
    assert world.status()["taskId"] == CLICKS
    assert world.status()["type"] == "DruidIngestionControllerUpdateFail"
    assert world.status()["status"] == "False"
    posted = [one for one in round_of(world) if one.startswith("POST")]
    assert posted == []
    world.edit(KAFKA)
    world.settle()
    assert world.condition() == ("True", "SupervisorRunning")
    assert world.druid.supervisors[CLICKS].restarts == 0


def test_a_topic_cannot_change_and_what_to_do_is_said(world: IngestionWorld) -> None:
    world.druid.conduct.version = "34.0.0"
    run(world)
    world.edit(edited(KAFKA, "spec", "ioConfig", "topic", value="another"))
    world.settle()
    assert world.condition() == ("False", "StreamChangeNotAllowed")
    assert "reset" in world.message()
    assert world.druid.supervisors[CLICKS].spec["ioConfig"]["topic"] == "shop.checkout.v3"


def test_a_supervisor_that_an_update_destroyed_is_put_back(world: IngestionWorld) -> None:
    run(world)
    world.druid.conduct.creation_error = "no more room"

    def heal(services: Services) -> Services:
        """Let Druid make supervisors again once the update was refused."""
        return replace(services, druid=Healing(services.druid, world.druid.conduct))

    world.edit(with_duration("PT10M"))
    world.sync()
    world.sync(wrap=heal)
    assert world.condition() == ("False", "SubmissionRejected")
    assert "its earlier specification put back" in world.message()
    assert world.druid.supervisors[CLICKS].spec["ioConfig"]["taskDuration"] == "PT1800S"
    assert [entry["state"] for entry in world.status()["history"]] == ["Rejected", "Running"]
    world.settle()
    assert list(world.druid.supervisors) == [CLICKS]


def test_a_supervisor_that_cannot_be_put_back_is_lost_and_said_so(world: IngestionWorld) -> None:
    run(world)
    world.druid.conduct.creation_error = "no more room"
    world.edit(with_duration("PT10M"))
    world.settle()
    assert world.condition() == ("False", "SupervisorLost")
    assert "could not be put back" in world.message()
    world.druid.conduct.creation_error = ""
    world.edit(with_duration("PT11M"))
    world.settle()
    assert world.druid.supervisors[CLICKS].spec["ioConfig"]["taskDuration"] == "PT660S"


def test_an_id_of_its_own_is_honoured_by_a_druid_that_can(world: IngestionWorld) -> None:
    world.druid.conduct.version = "34.0.0"
    run(world, text_of(8))
    assert list(world.druid.supervisors) == ["checkout_clicks.eu-backfill"]
    assert world.status()["taskId"] == "checkout_clicks.eu-backfill"


def test_a_druid_that_ignores_ids_is_followed_under_its_own(world: IngestionWorld) -> None:
    run(world, text_of(8))
    assert world.status()["taskId"] == CLICKS
    assert world.condition() == ("True", "Suspended")
    changed = edited(text_of(8), "spec", "ioConfig", "taskDuration", value="PT20M")
    world.edit(changed)
    world.settle()
    assert world.condition() == ("True", "Suspended")
    assert world.druid.supervisors[CLICKS].restarts == 1
    assert world.druid.supervisors[CLICKS].spec["ioConfig"]["taskDuration"] == "PT1200S"
    world.delete()
    world.settle()
    assert dict(world.druid.supervisors) == {}


def test_a_druid_that_ignores_ids_does_not_replace_a_strangers_supervisor(
    world: IngestionWorld,
) -> None:
    run(world, KAFKA, name="first")
    world.make(text_of(8), "kafka", name="second")
    world.settle("second")
    assert world.condition("Ready", "second") == ("False", "IdConflict")
    assert world.druid.supervisors[CLICKS].spec["ioConfig"]["topic"] == "shop.checkout.v3"


def test_two_objects_never_share_a_supervisor(world: IngestionWorld) -> None:
    run(world, name="first")
    world.make(with_duration("PT5M"), "kafka", name="second")
    world.settle("second")
    assert world.condition("Submitted", "second") == ("False", "IdConflict")
    world.delete("second")
    world.wait(121)
    world.settle("second")
    assert "second" not in world.parents
    assert list(world.druid.supervisors) == [CLICKS]
    assert world.druid.supervisors[CLICKS].restarts == 0


class TestDrift:
    def reported(self, world: IngestionWorld) -> None:
        round_of(world)
        assert world.condition()[0] == "False"

    def test_a_supervisor_that_somebody_suspended_is_reported(self, world: IngestionWorld) -> None:
        run(world)
        world.suspend_by_hand(CLICKS)
        self.reported(world)
        assert world.condition() == ("False", "Drifted")
        assert world.druid.supervisors[CLICKS].suspended
        world.suspend_by_hand(CLICKS, suspend=False)
        world.druid.supervisors.settle()
        world.settle()
        assert world.condition() == ("True", "SupervisorRunning")

    def test_a_supervisor_that_somebody_suspended_is_resumed(self, world: IngestionWorld) -> None:
        run(world, drift="Restore")
        world.suspend_by_hand(CLICKS)
        round_of(world)
        assert not world.druid.supervisors[CLICKS].suspended

    def test_a_supervisor_that_somebody_terminated_is_reported(self, world: IngestionWorld) -> None:
        run(world)
        world.terminate_by_hand()
        self.reported(world)
        assert world.condition() == ("False", "SupervisorLost")
        assert "supervisor" not in world.status()
        assert world.runs == [CLICKS]

    def test_a_supervisor_that_somebody_terminated_is_made_again(
        self, world: IngestionWorld
    ) -> None:
        run(world, drift="Restore")
        world.terminate_by_hand()
        round_of(world)
        world.druid.supervisors.settle()
        world.settle()
        assert world.condition() == ("True", "SupervisorRunning")
        assert world.runs == [CLICKS, CLICKS]

    def edit_in_console(self, world: IngestionWorld) -> None:
        """Take Druid's copy, change it and send it, as its console does."""
        copy = json.loads(json.dumps(world.druid.supervisors[CLICKS].spec))
        for holder in (copy, copy["spec"]):
            holder["ioConfig"] = {**holder["ioConfig"], "taskDuration": "PT60S"}
        world.druid.supervisors.submit(copy, skip_unmodified=False)
        world.druid.supervisors.settle()

    def test_a_supervisor_that_somebody_edited_is_reported(self, world: IngestionWorld) -> None:
        run(world)
        self.edit_in_console(world)
        self.reported(world)
        assert world.condition() == ("False", "Drifted")
        assert "edited" in world.message()
        written = world.writes
        round_of(world)
        assert world.writes == written

    def test_a_supervisor_that_somebody_edited_is_restored(self, world: IngestionWorld) -> None:
        run(world, drift="Restore")
        self.edit_in_console(world)
        round_of(world)
        world.druid.supervisors.settle()
        world.settle()
        assert world.druid.supervisors[CLICKS].spec["ioConfig"]["taskDuration"] == "PT1800S"
        assert world.condition() == ("True", "SupervisorRunning")

    def test_defaults_that_an_upgrade_adds_are_no_drift(self, world: IngestionWorld) -> None:
        run(world)
        spec = world.druid.supervisors[CLICKS].spec
        for holder in (spec, spec["spec"]):
            holder["tuningConfig"]["brandNew"] = 5
        written = world.writes
        round_of(world)
        assert world.writes == written

    def test_the_autoscalers_task_count_is_no_drift(self, world: IngestionWorld) -> None:
        run(world, KINESIS, "kinesis")
        spec = world.druid.supervisors["depot_telemetry"].spec
        for holder in (spec, spec["spec"]):
            holder["ioConfig"]["taskCount"] = 4
        written = world.writes
        round_of(world)
        assert world.writes == written


def test_a_terminated_supervisor_of_before_is_waited_for(world: IngestionWorld) -> None:
    run(world)
    world.druid.faults.append(Fault("POST", "/terminate", times=2))
    world.edit(of_datasource("clicks_2"))
    world.sync()
    assert world.condition("Submitted") == ("Unknown", "Stopping")
    assert list(world.druid.supervisors) == [CLICKS]
    world.now += timedelta(seconds=200)
    for _ in range(4):
        world.sync()
        world.wait(100)
    assert list(world.druid.supervisors) == ["clicks_2"]
