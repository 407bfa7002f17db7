"""Who may ingest: basic authentication through the hooks, on a real Druid."""

from __future__ import annotations

from dataclasses import replace

from tests.e2e.druid import specs, users
from tests.e2e.druid.releases import SQL
from tests.e2e.druid.server import DruidServer
from tests.e2e.druid.users import INGESTS, READS, WRITES
from tests.e2e.druid.world import IngestionWorld

RELEASES = (SQL,)


def test_a_wrong_password_sends_nothing_and_the_right_one_sends_it_once(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    login = users.make_user(server, *INGESTS)
    auth = ingestions.log_in(replace(login, password="not-this-one"))
    ingestions.make("native-batch", specs.batch(datasource), auth=auth)
    status = ingestions.until("Unauthorized")
    assert (ingestions.ready()[0], status["taskId"]) == ("False", "")
    assert server.tasks(datasource) == {}
    assert "not-this-one" not in str(ingestions.ingestion())
    ingestions.log_in(login)
    task_id = ingestions.until("TaskSucceeded")["taskId"]
    assert server.tasks(datasource) == {task_id: "SUCCESS"}


def test_no_login_is_told_to_be_wanted(ingestions: IngestionWorld, datasource: str) -> None:
    ingestions.make("native-batch", specs.batch(datasource))
    ingestions.until("Unauthorized")
    assert "it wants a user name and a password" in ingestions.message()


def test_a_missing_permission_is_named_and_sent_once_it_is_there(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    login = users.make_user(server, READS)
    auth = ingestions.log_in(login)
    ingestions.make("native-batch", specs.batch(datasource), auth=auth)
    ingestions.until("Forbidden")
    assert "DATASOURCE WRITE" in ingestions.message()
    assert server.tasks(datasource) == {}
    users.permit(server, login, READS, WRITES)
    task_id = ingestions.until("TaskSucceeded")["taskId"]
    assert server.tasks(datasource) == {task_id: "SUCCESS"}


def test_who_may_only_write_is_told_that_nothing_can_be_followed(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    login = users.make_user(server, WRITES)
    auth = ingestions.log_in(login)
    ingestions.make("native-batch", specs.batch(datasource), auth=auth)
    ingestions.until("Forbidden")
    ingestions.sync()
    assert "DATASOURCE READ" in ingestions.message()
    users.permit(server, login, READS, WRITES)
    task_id = ingestions.until("TaskSucceeded")["taskId"]
    assert server.tasks(datasource) == {task_id: "SUCCESS"}


def test_sql_that_reads_from_outside_wants_a_permission_of_its_own(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    login = users.make_user(server, READS, WRITES)
    auth = ingestions.log_in(login)
    ingestions.make("sql", specs.replace(datasource), auth=auth)
    ingestions.until("Forbidden")
    assert "EXTERNAL READ" in ingestions.message()
    users.permit(server, login, *INGESTS)
    ingestions.until("TaskSucceeded")


def test_a_password_of_any_characters_gets_in(
    ingestions: IngestionWorld, server: DruidServer, datasource: str
) -> None:
    login = replace(users.make_user(server, *INGESTS), password="pä\"s's wörd\\ €")
    users.set_password(server, login)
    auth = ingestions.log_in(login)
    ingestions.make("native-batch", specs.batch(datasource), auth=auth)
    ingestions.until("TaskSucceeded")
