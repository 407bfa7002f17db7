"""Inputs and the right behaviour, case by case, over the real client and the double."""

from __future__ import annotations

import json

import pytest

from hooks.sandbox.druid import Conduct, Fault, User
from tests.ingestion.world import (
    BATCH,
    HADOOP,
    KAFKA,
    SQL,
    A,
    B,
    IngestionWorld,
    edited,
    text_of,
)

CLICKS = "checkout_clicks"
PASSWORD = "a-long-password"


def posted(world: IngestionWorld) -> list[str]:
    """Settle, and return what was submitted in it."""
    before = len(world.runs)
    world.settle()
    return world.runs[before:]


def test_1_a_task_that_is_taken_is_submitted(world: IngestionWorld) -> None:
    world.make(text_of(1))
    world.settle()
    assert world.status()["taskId"] == world.task()
    assert json.loads(world.status()["currentIngestionSpec.json"]) == json.loads(text_of(1))
    assert world.condition("Submitted") == ("True", "Submitted")


def test_2_sql_that_is_accepted_is_a_success(world: IngestionWorld) -> None:
    world.make(SQL, "sql")
    world.settle()
    assert world.status()["taskId"] == world.task()
    assert world.task().startswith("query-load_")
    assert json.loads(world.status()["reason"])["state"] == "RUNNING"


@pytest.mark.parametrize("code", [400, 500])
def test_2_the_id_inside_of_a_refusal_is_not_stored(world: IngestionWorld, code: int) -> None:
    error = {"error": "druidException", "errorCode": "general", "errorMessage": "no PARTITIONED BY"}
    body = json.dumps({"taskId": "not-a-task", "state": "FAILED", "error": error})
    world.druid.faults.append(Fault("POST", "/sql/task", status=code, body=body))
    world.make(SQL, "sql")
    world.settle()
    assert world.condition() == ("False", "SubmissionRejected")
    assert world.status()["taskId"] == ""


def test_3_the_stored_id_is_the_answers(world: IngestionWorld) -> None:
    world.make(text_of(3), "kafka", name="plain")
    world.settle("plain")
    assert world.status("plain")["taskId"] == CLICKS
    world.delete("plain")
    world.settle("plain")
    world.make(text_of(8), "kafka", name="own-id")
    world.settle("own-id")
    assert world.status("own-id")["taskId"] == CLICKS


@pytest.mark.parametrize("number", [10, 11])
def test_4_what_is_no_json_is_not_sent(world: IngestionWorld, number: int) -> None:
    world.make(text_of(number))
    assert world.asked(world.settle) == []
    assert world.condition("Accepted") == ("False", "InvalidSpec")
    assert world.condition() == ("False", "InvalidSpec")
    assert "line " in world.message()
    assert ("nativeSpec" in world.message()) is (number == 11)


@pytest.mark.parametrize("number", [12, 13])
def test_5_another_spelling_is_no_second_submission(world: IngestionWorld, number: int) -> None:
    world.make(text_of(1))
    world.settle()
    world.edit(text_of(number))
    assert posted(world) == []
    world.druid.tasks.succeed(world.task())
    world.settle()
    world.edit(text_of(1))
    assert posted(world) == []


def test_5_true_and_one_are_different(world: IngestionWorld) -> None:
    world.make(text_of(1))
    world.settle()
    path = ("spec", "dataSchema", "granularitySpec", "rollup")
    world.edit(edited(text_of(1), *path, value=1))
    assert len(posted(world)) == 1


def test_5_an_integer_beyond_floats_is_a_change_and_the_id_must_change_too(
    world: IngestionWorld,
) -> None:
    text = text_of(9)
    world.make(text)
    world.settle()
    world.edit(text.replace("9007199254740993 }", "9007199254740992 }"))
    assert posted(world) == []
    assert world.condition() == ("False", "IdConflict")
    assert world.running == ["nightly-meter-load_2026-05-05"]
    world.edit(text)
    world.settle()
    assert world.condition() == ("Unknown", "TaskRunning")


@pytest.mark.parametrize(
    ("type_", "text"), [("native-batch", BATCH), ("native-batch", text_of(9)), ("sql", SQL)]
)
def test_6_an_answer_that_is_lost_does_not_run_it_twice(
    world: IngestionWorld, type_: str, text: str
) -> None:
    world.make(text, type_)
    world.sync()
    world.druid.faults.append(Fault("POST", acted=True))
    world.sync()
    assert world.condition("Submitted") == ("False", "DruidUnavailable")
    world.settle()
    assert len(world.runs) <= 1
    assert len(world.druid.tasks) == 1
    assert world.condition("Submitted") == ("True", "Submitted")


@pytest.mark.parametrize(("type_", "text"), [("native-batch", BATCH), ("sql", SQL)])
def test_6_a_duplicate_is_adopted(world: IngestionWorld, type_: str, text: str) -> None:
    """The task is there, and the look before the submission did not show it."""
    world.make(text, type_)
    world.sync()
    id_ = world.status()["history"][0]["id"]
    unknown = f"Cannot find any task with id: [{id_}]"
    world.druid.faults.append(Fault("POST", acted=True))
    world.sync()
    path = f"/task/{id_}/status"
    world.druid.faults.append(Fault("GET", path, times=2, status=404, body=unknown))
    world.sync()
    assert world.condition("Submitted") == ("True", "Submitted")
    assert len(world.druid.tasks) == 1


def test_6_a_duplicate_that_is_not_shown_yet_is_no_refusal(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.sync()
    id_ = world.status()["history"][0]["id"]
    world.druid.faults.append(Fault("POST", acted=True))
    world.sync()
    unknown = f"Cannot find any task with id: [{id_}]"
    world.druid.faults.append(Fault("GET", f"/{id_}/status", times=3, status=404, body=unknown))
    world.sync()
    assert world.condition("Submitted") == ("False", "ProtocolError")
    world.settle()
    assert world.condition("Submitted") == ("True", "Submitted")
    assert len(world.druid.tasks) == 1


def test_7_somebody_elses_task_of_the_id_is_not_adopted(world: IngestionWorld) -> None:
    own = "nightly-meter-load_2026-05-05"
    other = edited(text_of(1), "id", value=own)
    world.make(other, name="other")
    world.settle("other")
    world.make(text_of(9))
    world.settle()
    assert world.condition() == ("False", "IdConflict")
    assert world.status()["taskId"] == ""
    world.annotate("adopt-id", own)
    world.settle()
    assert world.status()["taskId"] == own


def test_8_a_failure_shows_the_report_or_else_the_short_error(world: IngestionWorld) -> None:
    for name, reported in (("a", True), ("b", False)):
        text = edited(BATCH, "spec", "dataSchema", "dataSource", value=name)
        world.make(text, name=name)
        world.settle(name)
        world.druid.tasks.fail(
            world.status(name)["taskId"], "broken", parse_errors=["row 4"], reported=reported
        )
        world.settle(name)
        assert world.condition("Ready", name) == ("False", "TaskFailed")
        assert "broken" in world.message("Ready", name)
        assert ("row 4" in world.message("Ready", name)) is reported
    assert len(world.runs) == 2


def test_9_a_final_state_is_kept_and_a_running_one_can_be_lost(world: IngestionWorld) -> None:
    world.make(A)
    world.settle()
    world.druid.tasks.fail(world.task(), "broken")
    world.settle()
    world.druid.tasks.forget(world.task())
    world.settle()
    assert world.condition() == ("False", "TaskFailed")
    world.edit(B)
    world.settle()
    world.druid.tasks.forget(world.task())
    world.settle()
    assert world.condition() == ("False", "TaskLost")


def test_10_a_wrong_password_that_is_corrected_submits_once() -> None:
    with IngestionWorld(Conduct(users={"admin": User(PASSWORD)})) as world:
        world.make(BATCH, auth=world.log_in("admin", "a-wrong-password"))
        world.settle()
        assert world.condition() == ("False", "Unauthorized")
        assert world.status()["taskId"] == ""
        world.log_in("admin", PASSWORD)
        world.settle()
        assert len(world.runs) == 1
        assert world.condition("Submitted") == ("True", "Submitted")


def test_10_a_missing_permission_is_forbidden_and_no_refusal() -> None:
    user = User(PASSWORD, write="nothing")
    with IngestionWorld(Conduct(users={"reader": user})) as world:
        world.make(BATCH, auth=world.log_in("reader", PASSWORD))
        world.settle()
        assert world.condition() == ("False", "Forbidden")
        assert world.status()["taskId"] == ""
        assert world.status()["type"] == "DruidIngestionControllerCreateFail"
        world.druid.conduct.users["reader"] = User(PASSWORD)
        world.settle()
        assert world.condition("Submitted") == ("True", "Submitted")


OUTAGES = {
    "503 empty": (Fault(times=2, status=503), "NoLeader"),
    "a proxy's 503": (Fault(times=2, status=503, body="<html></html>"), "DruidUnavailable"),
    "dropped": (Fault(times=2), "DruidUnavailable"),
    "429": (Fault("POST", times=2, status=429, headers={"Retry-After": "7"}), "TooManyRequests"),
}


@pytest.mark.parametrize("outage", OUTAGES)
def test_11_an_outage_is_no_failure_and_an_edit_is_used_at_once(
    world: IngestionWorld, outage: str
) -> None:
    fault, reason = OUTAGES[outage]
    world.make(A)
    world.sync()
    world.druid.faults.append(fault)
    first = world.sync()
    assert world.condition() == ("False", reason)
    assert world.condition("Accepted") == ("True", "Accepted")
    assert first.recheck == (7 if outage == "429" else 2)
    world.druid.faults.clear()
    world.edit(B)
    world.wait(121)
    world.settle()
    assert world.condition("Submitted") == ("True", "Submitted")
    assert len(world.runs) == 1


@pytest.mark.parametrize("body", ["", "<html></html>", '{"task": null}', "[]"])
@pytest.mark.parametrize("acted", [True, False])
def test_12_an_answer_that_says_nothing_is_resolved_by_a_look(
    world: IngestionWorld, body: str, *, acted: bool
) -> None:
    world.make(BATCH)
    world.sync()
    world.druid.faults.append(Fault("POST", "/task", acted=acted, status=200, body=body))
    world.sync()
    expected = ("True", "Submitted") if acted else ("False", "ProtocolError")
    assert world.condition("Submitted") == expected
    world.settle()
    assert world.condition("Submitted") == ("True", "Submitted")
    assert len(world.druid.tasks) == 1


def test_13_an_update_is_one_submission_that_skips_needless_restarts(
    world: IngestionWorld,
) -> None:
    world.make(KAFKA, "kafka")
    world.settle()
    world.edit(edited(KAFKA, "spec", "ioConfig", "taskDuration", value="PT10M"))
    asked = [one for one in world.asked(world.settle) if one.startswith("POST")]
    assert asked == ["POST /druid/indexer/v1/supervisor"]


def test_15_toggling_suspend_is_one_call_and_done_already_is_success(
    world: IngestionWorld,
) -> None:
    world.make(KAFKA, "kafka")
    world.settle()
    world.edit(suspend=True)
    body = json.dumps({"error": f"[{CLICKS}] is already suspended"})
    world.druid.faults.append(Fault("POST", "/suspend", acted=True, status=400, body=body))
    asked = [one for one in world.asked(world.settle) if one.startswith("POST")]
    assert asked == [f"POST /druid/indexer/v1/supervisor/{CLICKS}/suspend"]
    assert world.condition() == ("True", "Suspended")


def test_17_a_cluster_that_is_gone_lets_the_object_go_and_says_what_may_run(
    world: IngestionWorld,
) -> None:
    world.make(KAFKA, "kafka")
    world.settle()
    world.routers = []
    world.delete()
    world.sync()
    assert 'druid.apache.org/let-go: "true"' in world.message()
    world.wait(601)
    world.sync()
    assert "load" not in world.parents
    assert "LetGo(ids=('checkout_clicks',))" in repr(world.effects)


def test_20_hadoop_ends_in_a_reason_of_its_own_whatever_the_release() -> None:
    for version, reason in (
        ("33.0.0", "TaskFailed"),
        ("34.0.0", "HadoopDisabled"),
        ("37.0.0", "HadoopRemoved"),
    ):
        with IngestionWorld(Conduct(version=version)) as world:
            world.make(HADOOP, "index-hadoop")
            world.settle()
            for id_ in world.running:
                world.druid.tasks.fail(id_, "Hadoop dependency [/srv] didn't exist!?")
            world.settle()
            assert world.condition() == ("False", reason)
            assert len(world.runs) == 1


def test_21_an_id_of_any_characters_is_found_again(world: IngestionWorld) -> None:
    own = "relevés été 東京 1:2"
    world.make(edited(text_of(1), "id", value=own))
    world.settle()
    assert world.status()["taskId"] == own
    world.delete()
    world.settle()
    assert world.running == []


def test_21_a_datasource_that_druid_refuses_is_refused_before(world: IngestionWorld) -> None:
    world.make(edited(BATCH, "spec", "dataSchema", "dataSource", value="docks 🚲"))
    assert world.asked(world.settle) == []
    assert world.condition() == ("False", "InvalidSpec")


def test_24_two_looks_at_the_same_write_the_same(world: IngestionWorld) -> None:
    world.make(BATCH)
    for _ in range(3):
        world.sync()
    before = json.dumps(world.status())
    world.wait(30)
    world.sync()
    assert json.dumps(world.status()) == before


def test_24_the_required_fields_are_there_from_the_first_status(world: IngestionWorld) -> None:
    for number, text in enumerate([BATCH, "{"]):
        name = f"load-{number}"
        world.make(text, name=name)
        world.sync(name)
        status = world.status(name)
        assert (status["taskId"], status["currentIngestionSpec.json"]) == ("", "")


def test_26_rules_that_druid_refuses_do_not_undo_the_submission(world: IngestionWorld) -> None:
    world.make(BATCH, ingestion={"rules": [{"type": "nonsense"}]})
    world.settle()
    world.druid.tasks.succeed(world.task())
    world.settle()
    assert world.status()["taskId"] == world.task()
    assert world.condition("Submitted") == ("True", "Submitted")
    assert world.condition() == ("False", "RulesRejected")
    world.wait(3600)
    assert [one for one in world.asked(world.settle) if one.startswith("POST")] == []
    world.edit(ingestion={"rules": [{"type": "loadForever"}]})
    world.settle()
    assert world.condition() == ("True", "TaskSucceeded")
    assert world.status()["rules"] == [{"type": "loadForever"}]
