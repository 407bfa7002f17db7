"""Native and Hadoop batches through the hooks, on a real Druid."""

from __future__ import annotations

import pytest

from tests.e2e.druid import specs
from tests.e2e.druid.releases import STREAMING
from tests.e2e.druid.server import DruidServer
from tests.e2e.druid.source import HeldSource
from tests.e2e.druid.specs import DAY, ROWS
from tests.e2e.druid.waiting import until
from tests.e2e.druid.world import IngestionWorld

RELEASES = (STREAMING,)


@pytest.fixture
def endless(datasource: str, held: HeldSource) -> specs.Document:
    """A batch that runs for ever."""
    return specs.native(datasource, held.input_source)


def test_a_batch_ends_in_success_with_its_rows(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    ingestions.make("native-batch", specs.batch(datasource))
    status = ingestions.until("TaskSucceeded")
    task = status["task"]
    assert (status["taskId"], status["state"]) == (task["id"], "Succeeded")
    assert (status["type"], status["status"]) == (
        "DruidIngestionControllerCreateSuccess",
        "True",
    )
    assert (task["state"], task["rows"]) == (
        "SUCCESS",
        {"processed": 3, "withError": 0, "unparseable": 0, "thrownAway": 0},
    )
    assert server.tasks(datasource) == {task["id"]: "SUCCESS"}
    until(lambda: server.rows(datasource) == 3)
    ingestions.sync()
    assert ingestions.status() == status


def test_a_row_that_cannot_be_read_is_told_and_mended_by_an_edit(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    bad = {"at": "the first of March", "dock": "D-017", "free": 4}
    ingestions.make("native-batch", specs.batch(datasource, [ROWS[0], bad]))
    failed = ingestions.until("TaskFailed")
    assert ingestions.ready() == ("False", "TaskFailed")
    assert "Timestamp[the first of March] is unparseable" in ingestions.message()
    assert failed["task"]["rows"]["unparseable"] == 1
    for _ in range(3):
        ingestions.sync()
    assert server.tasks(datasource) == {failed["taskId"]: "FAILED"}
    ingestions.edit(specs.batch(datasource))
    mended = ingestions.until("TaskSucceeded")
    assert server.tasks(datasource) == {failed["taskId"]: "FAILED", mended["taskId"]: "SUCCESS"}


def test_what_druid_refuses_is_told_in_its_words_and_sent_once(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    document = specs.native(datasource, {"type": "nowhere"})
    ingestions.make("native-batch", document)
    ingestions.until("SubmissionRejected")
    assert "Could not resolve type id 'nowhere'" in ingestions.message()
    assert server.tasks(datasource) == {}


def test_an_edit_ends_the_running_batch_before_the_next_one(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, endless: specs.Document
) -> None:
    ingestions.make("native-batch", endless)
    first = ingestions.until("TaskRunning")["taskId"]
    ingestions.edit(specs.batch(datasource))
    second = ingestions.until("TaskSucceeded")["taskId"]
    assert server.tasks(datasource) == {first: "FAILED", second: "SUCCESS"}


def test_a_deletion_ends_the_running_batch(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, endless: specs.Document
) -> None:
    ingestions.make("native-batch", endless)
    task_id = ingestions.until("TaskRunning")["taskId"]
    ingestions.delete()
    ingestions.until_gone()
    assert server.tasks(datasource) == {task_id: "FAILED"}


def test_a_suspended_batch_is_not_sent_until_it_may_run(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    ingestions.make("native-batch", specs.batch(datasource), suspend=True)
    ingestions.until("Suspended")
    assert server.tasks(datasource) == {}
    ingestions.edit(suspend=False)
    ingestions.until("TaskSucceeded")


def test_a_lost_status_is_read_back_and_nothing_runs_again(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    ingestions.make("native-batch", specs.batch(datasource))
    task_id = ingestions.until("TaskSucceeded")["taskId"]
    ingestions.lose_status()
    assert ingestions.until("TaskSucceeded")["taskId"] == task_id
    assert server.tasks(datasource) == {task_id: "SUCCESS"}


def test_going_back_to_an_earlier_specification_runs_it_again(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    ingestions.make("native-batch", specs.batch(datasource))
    first = ingestions.until("TaskSucceeded")["taskId"]
    ingestions.edit(specs.batch(datasource, ROWS[:1]))
    ingestions.sync()
    second = ingestions.until("TaskSucceeded")["taskId"]
    ingestions.edit(specs.batch(datasource))
    ingestions.sync()
    third = ingestions.until("TaskSucceeded")["taskId"]
    assert server.tasks(datasource) == dict.fromkeys({first, second, third}, "SUCCESS")
    assert len({first, second, third}) == 3


def test_a_new_object_of_the_same_name_runs_anew(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    ids = set()
    for _ in range(2):
        ingestions.make("native-batch", specs.batch(datasource))
        ids.add(ingestions.until("TaskSucceeded")["taskId"])
        ingestions.delete()
        ingestions.until_gone()
    assert server.tasks(datasource) == dict.fromkeys(ids, "SUCCESS")
    assert len(ids) == 2


def test_hadoop_without_hadoop_fails_for_good(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    ingestions.make("index-hadoop", specs.hadoop(datasource))
    status = ingestions.until("TaskFailed")
    assert ingestions.ready() == ("False", "TaskFailed")
    assert "Hadoop dependency" in ingestions.message()
    ingestions.sync()
    assert ingestions.status() == status
    assert server.tasks(datasource) == {status["taskId"]: "FAILED"}


def test_rules_and_compaction_are_applied_and_taken_away(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    rules = [{"type": "loadForever", "tieredReplicants": {"_default_tier": 1}}]
    ingestion = {
        "type": "native-batch",
        "nativeSpec": specs.batch(datasource),
        "compaction": {"dataSource": datasource, "skipOffsetFromLatest": "P2D"},
        "rules": rules,
    }
    ingestions.make("native-batch", {}, ingestion=ingestion)
    ingestions.until("TaskSucceeded")
    [rule] = server.call("GET", f"/druid/coordinator/v1/rules/{datasource}")
    assert (rule["type"], rule["tieredReplicants"]) == ("loadForever", {"_default_tier": 1})
    compaction = f"/druid/coordinator/v1/config/compaction/{datasource}"
    assert server.call("GET", compaction)["skipOffsetFromLatest"] == "P2D"
    ingestions.edit(ingestion={"compaction": None, "rules": None})
    ingestions.sync()
    ingestions.until("TaskSucceeded")
    assert server.call("GET", f"/druid/coordinator/v1/rules/{datasource}") == []
    configs = server.call("GET", "/druid/coordinator/v1/config/compaction")["compactionConfigs"]
    assert [one for one in configs if one["dataSource"] == datasource] == []


def test_each_day_is_kept_until_another_run_replaces_it(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    ingestions.make("native-batch", specs.batch(datasource))
    ingestions.until("TaskSucceeded")
    until(lambda: server.rows(datasource) == 3)
    more = [{"at": f"{DAY}T23:00:00Z", "dock": "D-099", "free": 1}]
    ingestions.edit(specs.batch(datasource, more))
    ingestions.sync()
    ingestions.until("TaskSucceeded")
    until(lambda: server.rows(datasource) == 1)
