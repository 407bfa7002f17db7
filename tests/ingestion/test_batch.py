"""Lives of batch ingestions: native, SQL and Hadoop."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from hooks.sandbox.druid import Fault
from tests.ingestion.world import BATCH, HADOOP, SQL, A, B, IngestionWorld, batch


def test_a_batch_is_written_down_then_submitted_then_followed_to_its_end(
    world: IngestionWorld,
) -> None:
    world.make(BATCH)
    world.sync()
    assert world.runs == []
    (record,) = world.status()["history"]
    assert record["state"] == "Submitting"
    assert world.conditions() == {
        "Accepted": ("True", "Accepted"),
        "Submitted": ("Unknown", "Submitting"),
        "Ready": ("Unknown", "Submitting"),
        "Suspended": ("False", "NotSuspended"),
    }
    world.sync()
    assert world.runs == [record["id"]]
    assert world.conditions() == {
        "Accepted": ("True", "Accepted"),
        "Submitted": ("True", "Submitted"),
        "Ready": ("Unknown", "TaskRunning"),
        "Suspended": ("False", "NotSuspended"),
    }
    world.wait(10)
    world.druid.tasks.succeed(record["id"])
    world.sync()
    status = world.status()
    assert world.condition() == ("True", "TaskSucceeded")
    assert status["state"] == "Succeeded"
    assert status["task"] == {
        "id": record["id"],
        "state": "SUCCESS",
        "startTime": "2026-03-01T12:00:30.000Z",
        "durationSeconds": 10,
        "rows": {"processed": 3, "withError": 0, "unparseable": 0, "thrownAway": 0},
    }


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("native-batch", BATCH),
        ("NativeBatchIndexParallel", BATCH),
        ("sql", SQL),
        ("QueryControllerSQL", SQL),
        ("index-hadoop", HADOOP),
        ("HadoopIndexHadoop", HADOOP),
    ],
)
def test_every_batch_type_runs_under_both_of_its_names(
    world: IngestionWorld, type_: str, text: str
) -> None:
    world.make(text, type_)
    world.settle()
    world.druid.tasks.succeed(world.task())
    world.settle()
    assert world.condition() == ("True", "TaskSucceeded")
    assert world.status()["taskId"] == world.task()


def test_a_finished_batch_asks_nobody_and_writes_nothing(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.settle()
    world.druid.tasks.succeed(world.task())
    world.settle()
    written = world.writes
    world.wait(3600)
    assert world.asked(world.sync) == []
    assert world.writes == written


def test_druid_may_forget_a_task_that_succeeded(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.settle()
    id_ = world.task()
    world.druid.tasks.succeed(id_)
    world.settle()
    world.druid.tasks.forget(id_)
    world.settle()
    assert world.condition() == ("True", "TaskSucceeded")
    assert world.runs == [id_]


def test_a_running_task_that_druid_forgets_is_lost_and_not_run_again(
    world: IngestionWorld,
) -> None:
    world.make(BATCH)
    world.settle()
    world.druid.tasks.forget(world.task())
    world.settle()
    assert world.condition() == ("False", "TaskLost")
    assert world.status()["task"]["state"] == "LOST"
    world.wait(3600)
    world.settle()
    assert len(world.runs) == 1


def test_a_failed_task_shows_the_reports_error_and_is_not_run_again(
    world: IngestionWorld,
) -> None:
    world.make(BATCH)
    world.settle()
    world.druid.tasks.fail(
        world.task(), "Max parse exceptions[0] exceeded", parse_errors=["Timestamp[x] is bad"]
    )
    world.settle()
    assert world.condition() == ("False", "TaskFailed")
    assert "Max parse exceptions[0] exceeded\nTimestamp[x] is bad" in world.message()
    assert "at org.apache" not in world.message()
    world.wait(7200)
    world.settle()
    assert len(world.runs) == 1


def test_a_failed_task_without_a_report_shows_druids_short_error(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.settle()
    world.druid.tasks.fail(world.task(), "No worker took it", reported=False)
    world.settle()
    assert "No worker took it" in world.message()


def test_failed_runs_are_repeated_as_the_retry_policy_says(world: IngestionWorld) -> None:
    world.make(BATCH, retryPolicy={"maxRetries": 2, "backoffSeconds": 60})
    for pause in (60, 120):
        world.settle()
        world.druid.tasks.fail(world.running[0], "No luck")
        world.sync()
        assert world.condition() == ("False", "TaskFailed")
        known = list(world.runs)
        world.wait(pause - 1)
        world.sync()
        assert world.runs == known
        world.wait(2)
    world.settle()
    world.druid.tasks.fail(world.running[0], "No luck")
    world.settle()
    world.wait(7200)
    world.settle()
    assert len(set(world.runs)) == len(world.runs) == 3
    assert [entry["attempt"] for entry in world.status()["history"]] == [3, 2, 1]


def test_as_many_retries_as_the_history_has_places_come_to_an_end(world: IngestionWorld) -> None:
    world.make(BATCH, retryPolicy={"maxRetries": 10, "backoffSeconds": 1})
    for _ in range(14):
        world.settle()
        for id_ in world.running:
            world.druid.tasks.fail(id_, "No luck")
        world.settle()
        world.wait(3601)
    assert len(world.runs) == 11
    assert world.condition() == ("False", "TaskFailed")


def test_a_retry_that_is_held_back_is_not_announced_and_made_when_it_may(
    world: IngestionWorld,
) -> None:
    world.make(BATCH, retryPolicy={"maxRetries": 1, "backoffSeconds": 1})
    world.settle()
    world.druid.tasks.fail(world.task(), "No luck")
    world.sync()
    world.edit(suspend=True)
    world.wait(100)
    assert world.asked(world.settle) == []
    assert "run again" not in world.message()
    world.edit(suspend=False)
    world.settle()
    assert len(world.runs) == 2


def test_a_task_that_was_failed_only_for_a_moment_is_not_run_again(world: IngestionWorld) -> None:
    world.make(BATCH, retryPolicy={"maxRetries": 1, "backoffSeconds": 60})
    world.settle()
    id_ = world.task()
    world.druid.tasks.fail(id_, "the Overlord restarts")
    world.sync()
    world.druid.tasks.succeed(id_)
    world.wait(61)
    world.settle()
    assert world.condition() == ("True", "TaskSucceeded")
    assert world.runs == [id_]


def test_a_changed_specification_ends_the_running_task_before_the_next_begins(
    world: IngestionWorld,
) -> None:
    world.druid.conduct.lingering = True
    world.make(A)
    world.settle()
    old = world.task()
    world.edit(B)
    world.sync()
    world.sync()
    assert world.condition("Submitted") == ("Unknown", "Stopping")
    assert world.runs == [old]
    world.druid.tasks.end(old)
    world.settle()
    (new,) = world.running
    assert world.runs == [old, new]
    assert [entry["state"] for entry in world.status()["history"]] == ["Running", "Stopped"]
    assert world.status()["taskId"] == new
    assert world.status()["type"] == "DruidIngestionControllerUpdateSuccess"


def test_a_b_and_a_again_are_three_runs(world: IngestionWorld) -> None:
    world.make(A)
    for text in (A, B, A):
        world.edit(text)
        world.settle()
        world.druid.tasks.succeed(world.running[0])
        world.settle()
        assert world.condition() == ("True", "TaskSucceeded")
    assert len(set(world.runs)) == len(world.runs) == 3


def test_undoing_an_edit_that_druid_refused_runs_nothing_again(world: IngestionWorld) -> None:
    world.make(A)
    world.settle()
    world.druid.tasks.succeed(world.task())
    world.settle()
    world.druid.faults.append(Fault("POST", "/task", status=400, body='{"error":"no"}'))
    world.edit(B)
    world.settle()
    assert world.condition() == ("False", "SubmissionRejected")
    world.edit(A)
    world.settle()
    assert world.condition() == ("True", "TaskSucceeded")
    assert world.status()["state"] == "Succeeded"
    assert len(world.runs) == 1


def test_a_history_that_is_full_still_tells_a_new_run_from_an_old_one(
    world: IngestionWorld,
) -> None:
    world.make(A)
    texts = [batch(f"20{year}-01-01/P1Y") for year in range(10, 22)]
    for text in (A, *texts, A):
        world.edit(text)
        world.settle()
        world.druid.tasks.succeed(world.running[0])
        world.settle()
    assert len(set(world.runs)) == len(world.runs) == 14
    assert len(world.status()["history"]) == 10


def test_a_full_history_that_is_old_runs_nothing_twice(world: IngestionWorld) -> None:
    world.make(A)
    for year in range(10, 21):
        world.edit(batch(f"20{year}-01-01/P1Y"))
        world.settle()
        world.druid.tasks.succeed(world.running[0])
        world.settle()
        world.wait(60)
    old = world.status()
    world.edit(B)
    world.settle()
    known = list(world.runs)
    world.parents["load"]["status"] = old
    world.settle()
    assert world.runs == known
    assert world.condition() == ("Unknown", "TaskRunning")


def test_many_refused_edits_do_not_make_it_forgotten_what_ran(world: IngestionWorld) -> None:
    world.make(A)
    world.settle()
    world.druid.tasks.succeed(world.task())
    world.settle()
    refusals = [Fault("POST", "/task", status=400, body='{"error":"no"}') for _ in range(12)]
    world.druid.faults.extend(refusals)
    for year in range(10, 22):
        world.edit(batch(f"20{year}-01-01/P1Y"))
        world.settle()
        assert world.condition() == ("False", "SubmissionRejected")
    world.edit(A)
    world.settle()
    assert world.condition() == ("True", "TaskSucceeded")
    assert len(world.runs) == 1


def test_a_lost_status_adopts_what_druid_knows(world: IngestionWorld) -> None:
    world.make(A)
    for text in (A, B, A):
        world.edit(text)
        world.settle()
        world.druid.tasks.succeed(world.running[0])
        world.settle()
    last = world.status()["taskId"]
    del world.parents["load"]["status"]
    world.settle()
    assert world.condition() == ("True", "TaskSucceeded")
    assert world.status()["taskId"] == last
    assert len(world.runs) == 3


def test_an_old_status_does_not_make_anything_run_twice(world: IngestionWorld) -> None:
    world.make(A)
    world.settle()
    world.druid.tasks.succeed(world.task())
    world.settle()
    old = world.status()
    world.edit(B)
    world.settle()
    world.parents["load"]["status"] = old
    world.settle()
    assert len(world.runs) == 2
    assert world.condition() == ("Unknown", "TaskRunning")


def test_nothing_is_submitted_while_suspended(world: IngestionWorld) -> None:
    world.make(BATCH, suspend=True)
    world.settle()
    assert world.asked(world.sync) == []
    assert world.conditions() == {
        "Accepted": ("True", "Accepted"),
        "Submitted": ("Unknown", "Suspended"),
        "Ready": ("Unknown", "Suspended"),
        "Suspended": ("True", "Suspended"),
    }
    assert world.status()["state"] == "Suspended"
    world.edit(suspend=False)
    world.settle()
    assert len(world.runs) == 1


def test_a_running_batch_runs_on_when_it_is_suspended_and_that_is_said(
    world: IngestionWorld,
) -> None:
    world.make(BATCH)
    world.settle()
    world.edit(suspend=True)
    world.settle()
    assert world.condition("Suspended") == ("False", "NotSuspended")
    assert "runs on" in world.message()
    world.druid.tasks.succeed(world.task())
    world.settle()
    assert world.condition() == ("True", "TaskSucceeded")


@pytest.mark.parametrize(
    ("hadoop", "reason"), [("removed", "HadoopRemoved"), ("disabled", "HadoopDisabled")]
)
def test_a_druid_without_hadoop_is_told_apart_from_a_failure(
    world: IngestionWorld, hadoop: Literal["removed", "disabled"], reason: str
) -> None:
    world.druid.conduct.hadoop = hadoop
    world.make(HADOOP, "index-hadoop", retryPolicy={"maxRetries": 3, "backoffSeconds": 1})
    world.settle()
    assert world.condition() == ("False", reason)


def test_a_druid_that_does_not_know_the_hadoop_type_has_removed_it(world: IngestionWorld) -> None:
    error = "Could not resolve type id 'index_hadoop' as a subtype of `Task` known type ids = []"
    fault = Fault("POST", "/task", status=400, body=json.dumps({"error": error}))
    world.druid.faults.append(fault)
    world.make(HADOOP, "index-hadoop")
    world.settle()
    assert world.condition() == ("False", "HadoopRemoved")
    assert world.status()["taskId"] == ""
