"""Submissions through the hooks while the Overlord is away: exactly one task comes of each."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.druid import specs
from tests.e2e.druid.releases import STREAMING
from tests.e2e.druid.server import DruidServer
from tests.e2e.druid.source import HeldSource
from tests.e2e.druid.specs import ROWS
from tests.e2e.druid.world import IngestionWorld

RELEASES = (STREAMING,)

AWAY = {"DruidUnavailable", "NoLeader"}
SUPERVISORS = "/druid/indexer/v1/supervisor"


@pytest.fixture
def intended(ingestions: IngestionWorld, datasource: str) -> IngestionWorld:
    """A batch whose id is written down and that was not sent yet."""
    ingestions.make("native-batch", specs.batch(datasource))
    ingestions.sync()
    [record] = ingestions.status()["history"]
    assert record["state"] == "Submitting"
    return ingestions


def test_an_overlord_that_was_stopped_in_order_is_waited_for(
    intended: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    server.stop_overlord()
    intended.sync()
    assert intended.ready()[1] in AWAY
    server.start_overlord()
    task_id = intended.until("TaskSucceeded")["taskId"]
    assert server.tasks(datasource) == {task_id: "SUCCESS"}


def test_an_overlord_that_was_killed_is_waited_for(
    intended: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    server.stop_overlord(how=signal.SIGKILL)
    intended.sync()
    assert intended.ready()[1] in AWAY
    server.start_overlord()
    task_id = intended.until("TaskSucceeded")["taskId"]
    assert server.tasks(datasource) == {task_id: "SUCCESS"}


def test_a_submission_that_is_read_after_we_gave_up_is_adopted(
    intended: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    with server.silent_overlord():
        intended.sync()
        assert intended.ready() == ("False", "DruidUnavailable")
    task_id = intended.until("TaskSucceeded")["taskId"]
    assert server.tasks(datasource) == {task_id: "SUCCESS"}


def test_a_submission_that_dies_with_the_overlord_is_sent_again(
    intended: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    with server.silent_overlord():
        intended.sync()
        assert intended.ready() == ("False", "DruidUnavailable")
        server.stop_overlord(how=signal.SIGKILL)
    server.start_overlord()
    task_id = intended.until("TaskSucceeded")["taskId"]
    assert server.tasks(datasource) == {task_id: "SUCCESS"}


def test_a_running_batch_is_followed_beyond_a_new_overlord(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, held: HeldSource
) -> None:
    ingestions.make("native-batch", specs.native(datasource, held.input_source))
    running = ingestions.until("TaskRunning")
    server.stop_overlord(how=signal.SIGKILL)
    ingestions.sync()
    assert ingestions.ready()[1] in AWAY
    server.start_overlord()
    ingestions.sync()
    assert ingestions.ready() == ("Unknown", "TaskRunning")
    held.release()
    assert ingestions.until("TaskSucceeded")["task"]["rows"]["processed"] == len(ROWS)
    assert server.tasks(datasource) == {running["taskId"]: "SUCCESS"}


def test_a_supervisor_that_is_read_after_we_gave_up_is_adopted(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    document = specs.stream(datasource, "nowhere", "127.0.0.1:1") | {"suspended": True}
    ingestions.make("kafka", document)
    ingestions.sync()
    with server.silent_overlord():
        ingestions.sync()
        assert ingestions.ready() == ("False", "DruidUnavailable")
    assert ingestions.until("Suspended")["taskId"] == datasource
    assert len(server.call("GET", f"{SUPERVISORS}/{datasource}/history")) == 1
    ingestions.delete()
    ingestions.until_gone()


def test_a_deletion_waits_for_the_overlord(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    ingestions.make("kafka", specs.stream(datasource, "nowhere", "127.0.0.1:1"))
    ingestions.sync()
    ingestions.sync()
    assert datasource in server.call("GET", SUPERVISORS)
    server.stop_overlord(how=signal.SIGKILL)
    ingestions.delete()
    ingestions.sync()
    assert ingestions.ready()[1] in AWAY
    server.start_overlord()
    ingestions.until_gone()
    assert datasource not in server.call("GET", SUPERVISORS)
