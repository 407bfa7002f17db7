"""SQL as tasks through the hooks, on a real Druid that wants a user and a password."""

from __future__ import annotations

from tests.e2e.druid import specs, users
from tests.e2e.druid.releases import SQL
from tests.e2e.druid.server import DruidServer
from tests.e2e.druid.source import HeldSource
from tests.e2e.druid.specs import ROWS
from tests.e2e.druid.users import INGESTS
from tests.e2e.druid.waiting import until
from tests.e2e.druid.world import IngestionWorld

RELEASES = (SQL,)


def test_a_replace_ends_in_success_with_its_rows(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    auth = ingestions.log_in(users.make_user(server, *INGESTS))
    ingestions.make("sql", specs.replace(datasource), auth=auth)
    status = ingestions.until("TaskSucceeded")
    assert status["taskId"].startswith("query-")
    assert (status["task"]["state"], status["task"]["rows"]["processed"]) == ("SUCCESS", 3)
    assert server.tasks(datasource)[status["taskId"]] == "SUCCESS"
    until(lambda: server.rows(datasource) == 3)
    ingestions.sync()
    assert ingestions.status() == status


def test_a_row_without_a_time_is_told(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    auth = ingestions.log_in(users.make_user(server, *INGESTS))
    timeless = specs.inline([*ROWS, {"at": "no time", "dock": "D-022"}])
    ingestions.make("sql", specs.replace(datasource, source=timeless), auth=auth)
    ingestions.until("TaskFailed")
    assert ingestions.ready() == ("False", "TaskFailed")
    assert "InsertTimeNull" in ingestions.message()


def test_what_the_planner_refuses_is_told_and_leaves_no_task(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    auth = ingestions.log_in(users.make_user(server, *INGESTS))
    into = f'REPLACE INTO "{datasource}" OVERWRITE ALL'
    query = f"{into} SELECT * FROM missing PARTITIONED BY ALL"  # noqa: S608  a test's own name
    ingestions.make("sql", {"query": query}, auth=auth)
    ingestions.until("SubmissionRejected")
    assert "Object 'missing' not found" in ingestions.message()
    assert server.tasks(datasource) == {}


def test_a_lost_status_is_read_back_and_nothing_runs_again(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    auth = ingestions.log_in(users.make_user(server, *INGESTS))
    ingestions.make("sql", specs.replace(datasource), auth=auth)
    task_id = ingestions.until("TaskSucceeded")["taskId"]
    ingestions.lose_status()
    assert ingestions.until("TaskSucceeded")["taskId"] == task_id
    assert controllers(server, datasource) == [task_id]


def test_a_deletion_ends_a_running_statement(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, held: HeldSource
) -> None:
    auth = ingestions.log_in(users.make_user(server, *INGESTS))
    ingestions.make("sql", specs.replace(datasource, source=held.input_source), auth=auth)
    task_id = ingestions.until("TaskRunning")["taskId"]
    ingestions.delete()
    ingestions.until_gone()
    assert server.tasks(datasource)[task_id] == "FAILED"


def test_a_statement_that_is_read_after_we_gave_up_is_adopted(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    auth = ingestions.log_in(users.make_user(server, *INGESTS))
    ingestions.make("sql", specs.replace(datasource), auth=auth)
    ingestions.sync()
    with server.silent_overlord():
        ingestions.sync()
        assert ingestions.ready() == ("False", "DruidUnavailable")
    task_id = ingestions.until("TaskSucceeded")["taskId"]
    assert controllers(server, datasource) == [task_id]


def controllers(server: DruidServer, datasource: str) -> list[str]:
    """Return the ids of the statements that ran; each has workers of its own beside it."""
    return [id_ for id_ in server.tasks(datasource) if "-worker" not in id_]
