"""What druid-operator's own controller gets wrong, numbered as it was found."""

from __future__ import annotations

import json

import pytest

from hooks.sandbox.druid import Conduct, Fault, User
from tests.ingestion.world import BATCH, KAFKA, A, B, IngestionWorld, batch, edited

CLICKS = "checkout_clicks"
RULES = [{"type": "loadForever"}]


def submitted(world: IngestionWorld, text: str = BATCH, type_: str = "native-batch") -> str:
    world.make(text, type_)
    world.settle()
    return str(world.status()["taskId"])


def test_1_a_creation_without_compaction_is_a_success(world: IngestionWorld) -> None:
    id_ = submitted(world)
    status = world.status()
    words = {key: status[key] for key in ("type", "message", "status", "reason")}
    assert words == {
        "type": "DruidIngestionControllerCreateSuccess",
        "message": "DruidIngestionControllerCreateSuccess",
        "status": "True",
        "reason": json.dumps({"task": id_}, separators=(",", ":")),
    }


@pytest.mark.parametrize(
    "body", ['{"error":"no"}', "<html><title>Error 500 x</title></html>"], ids=["JSON", "HTML"]
)
def test_2_a_refused_creation_reaches_the_status_and_is_not_repeated(
    world: IngestionWorld, body: str
) -> None:
    code = 400 if "error" in body else 500
    world.druid.faults.append(Fault("POST", "/task", status=code, body=body))
    world.make(BATCH)
    world.settle()
    status = world.status()
    assert world.condition("Submitted") == ("False", "SubmissionRejected")
    assert (status["type"], status["status"]) == ("DruidIngestionControllerCreateFail", "False")
    assert status["taskId"] == ""
    world.wait(3600)
    assert [one for one in world.asked(world.settle) if one.startswith("POST")] == []
    assert world.runs == []


def test_3_a_refused_update_leaves_a_trace_and_is_not_repeated(world: IngestionWorld) -> None:
    submitted(world, KAFKA, "kafka")
    world.edit(edited(KAFKA, "spec", "ioConfig", "topic", value=None))
    world.settle()
    assert world.status()["type"] == "DruidIngestionControllerUpdateFail"
    assert "topic" in world.status()["reason"]
    world.wait(3600)
    assert [one for one in world.asked(world.settle) if one.startswith("POST")] == []


def test_4_suspend_is_read(world: IngestionWorld) -> None:
    world.make(KAFKA, "kafka", suspend=True)
    world.settle()
    assert world.druid.supervisors[CLICKS].suspended


def test_5_nothing_is_submitted_before_the_status_says_what(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.sync()
    assert world.runs == []
    assert world.status()["history"][0]["state"] == "Submitting"


def test_6_a_deletion_submits_nothing(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.sync()
    world.delete()
    for _ in range(20):
        if "load" in world.parents:
            world.sync()
            world.wait(10)
    assert world.runs == []


@pytest.mark.parametrize("what", ["specification", "Secret", "Service", "compaction"])
def test_7_a_deletion_ends_whatever_is_broken(what: str) -> None:
    with IngestionWorld() as world:
        world.make(
            KAFKA,
            "kafka",
            auth=world.log_in("admin", "a-long-password"),
            ingestion={"compaction": {"skipOffsetFromLatest": "P1D"}},
        )
        world.settle()
        match what:
            case "specification":
                world.edit("{")
            case "Secret":
                world.kubernetes.secrets.clear()
            case "Service":
                world.routers = []
            case _:
                world.druid.coordinator.compaction.clear()
        world.delete()
        world.wait(601)
        world.settle()
        assert "load" not in world.parents


def test_8_a_shutdown_names_its_task_and_an_unanswered_one_keeps_the_object(
    world: IngestionWorld,
) -> None:
    id_ = submitted(world)
    world.delete()
    world.druid.faults.append(Fault("POST", "/shutdown", status=503))
    assert not world.sync().finalized
    world.settle()
    shut_down = {one for one in world.druid.seen if "shutdown" in one}
    assert shut_down == {f"POST /druid/indexer/v1/task/{id_}/shutdown"}
    assert world.running == []


def test_9_a_changed_batch_and_a_moved_stream_leave_nothing_running(world: IngestionWorld) -> None:
    submitted(world, A)
    world.edit(B)
    world.settle()
    assert world.running == [world.status()["taskId"]]
    world.make(KAFKA, "kafka", name="stream")
    world.settle("stream")
    world.edit(edited(KAFKA, "spec", "dataSchema", "dataSource", value="other"), name="stream")
    world.settle("stream")
    assert list(world.druid.supervisors) == ["other"]


def test_9_the_type_cannot_change_after_a_submission(world: IngestionWorld) -> None:
    submitted(world)
    world.edit(KAFKA, ingestion={"type": "kafka"})
    world.settle()
    assert world.condition("Accepted") == ("False", "ImmutableField")
    assert dict(world.druid.supervisors) == {}


def test_10_a_change_of_content_and_rules_at_once_keeps_the_new_id(world: IngestionWorld) -> None:
    submitted(world, A)
    world.edit(B, ingestion={"rules": RULES})
    world.settle()
    assert world.status()["taskId"] == world.runs[-1] == world.running[0]
    assert "bike_dock_events" in world.druid.coordinator.rules


def test_11_a_submission_whose_status_was_not_written_is_not_repeated(
    world: IngestionWorld,
) -> None:
    world.make(BATCH)
    world.sync()
    written = world.status()
    world.sync()
    world.parents["load"]["status"] = written
    world.settle()
    assert len(world.runs) == 1
    assert world.condition("Submitted") == ("True", "Submitted")


def test_12_rules_and_compaction_that_leave_the_spec_leave_druid(world: IngestionWorld) -> None:
    both = {"rules": RULES, "compaction": {"skipOffsetFromLatest": "P1D"}}
    world.make(BATCH, ingestion=both)
    world.settle()
    assert list(world.druid.coordinator.compaction) == ["bike_dock_events"]
    assert world.druid.coordinator.rules["bike_dock_events"]
    world.edit(ingestion={"rules": None, "compaction": None})
    world.settle()
    assert world.druid.coordinator.compaction == {}
    assert world.druid.coordinator.rules["bike_dock_events"] == []


def test_13_the_flat_form_of_a_supervisor_has_a_datasource_too(world: IngestionWorld) -> None:
    document = json.loads(KAFKA)
    flat = {**document.pop("spec"), **document}
    world.make(json.dumps(flat), "kafka", ingestion={"rules": RULES})
    world.settle()
    assert world.status()["taskId"] == CLICKS
    assert world.druid.coordinator.rules[CLICKS]


def test_14_a_silent_router_costs_one_call_its_time_and_no_more(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.sync()
    world.druid.faults.append(Fault(times=99))
    asked = world.asked(world.sync)
    assert len(asked) == 1
    assert world.condition() == ("False", "DruidUnavailable")


def test_15_the_scheme_and_the_port_come_from_the_service(world: IngestionWorld) -> None:
    other = world.router("a-headless-one")
    other["spec"] |= {"clusterIP": "None", "ports": [{"port": 1}]}
    world.routers.append(other)
    submitted(world)
    assert world.condition("Submitted") == ("True", "Submitted")


def test_16_integers_are_exact_and_differ_by_one(world: IngestionWorld) -> None:
    path = ("spec", "tuningConfig", "maxBytesInMemory")
    submitted(world, edited(BATCH, *path, value=9007199254740993))
    (task,) = world.druid.tasks.values()
    assert task.payload["spec"]["tuningConfig"]["maxBytesInMemory"] == 9007199254740993
    world.edit(edited(BATCH, *path, value=9007199254740992))
    world.settle()
    assert len(world.runs) == 2


def test_17_a_secret_of_another_namespace_is_not_read(world: IngestionWorld) -> None:
    world.secret("login", "kube-system", OperatorUserName=b"u", OperatorPassword=b"p")
    world.make(BATCH, auth={"secretRef": {"name": "login", "namespace": "kube-system"}})
    world.settle()
    assert world.condition("Accepted") == ("False", "SecretNotAllowed")
    assert world.kubernetes.reads == []
    assert world.druid.seen == []


def test_18_two_objects_of_one_datasource_do_not_overwrite_each_other(
    world: IngestionWorld,
) -> None:
    world.make(KAFKA, "kafka", name="one")
    world.settle("one")
    world.make(edited(KAFKA, "spec", "ioConfig", "topic", value="x"), "kafka", name="two")
    world.settle("two")
    assert world.condition("Ready", "two") == ("False", "IdConflict")
    world.delete("two")
    world.wait(121)
    world.settle("two")
    assert world.druid.supervisors[CLICKS].spec["ioConfig"]["topic"] == "shop.checkout.v3"


def test_19_the_update_time_moves_only_with_something_else(world: IngestionWorld) -> None:
    submitted(world)
    before = dict(world.status())
    world.wait(3600)
    world.sync()
    assert world.status() == before
    world.druid.tasks.succeed(world.task())
    world.sync()
    assert world.status()["lastUpdateTime"] > before["lastUpdateTime"]


def test_20_the_reason_of_a_condition_is_a_word_and_druids_text_is_not(
    world: IngestionWorld,
) -> None:
    world.druid.faults.append(Fault("POST", "/task", status=400, body='{"error":"a b c"}'))
    world.make(BATCH)
    world.settle()
    for entry in world.status()["conditions"]:
        assert entry["reason"].isalpha()
    assert "a b c" in world.message()


def test_21_a_user_with_just_the_rights_that_are_named_is_enough() -> None:
    name = "bike_dock_events"
    user = User("a-long-password", read=name, write=name, external=False, config=False, state=False)
    with IngestionWorld(Conduct(users={"loader": user})) as world:
        world.make(BATCH, auth=world.log_in("loader", "a-long-password"))
        world.settle()
        world.druid.tasks.succeed(world.task())
        world.settle()
        assert world.condition() == ("True", "TaskSucceeded")
        world.edit(batch("2027-01-01/P1D"))
        world.settle()
        world.delete()
        world.settle()
        assert "load" not in world.parents
