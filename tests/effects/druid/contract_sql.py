"""The contract of SQL-based ingestion: any Druid with the multi-stage-query extension keeps it."""

from __future__ import annotations

from hooks.effects.ports.druid import Rows
from tests.effects.druid.contract import World, name, sql
from tests.effects.druid.contract_tasks import ended


def test_a_statement_runs_under_the_id_that_was_chosen(druid: World) -> None:
    cluster, query_id, datasource = druid.cluster(), name(), name()
    task_id = f"query-{query_id}"
    answer = cluster.submit("sql", sql(datasource, query_id), id=task_id)
    assert (answer.code, answer.id) == (202, task_id)
    task = ended(druid, task_id)
    assert (task.state, task.type) == ("SUCCESS", "query_controller")
    assert task.datasource == datasource
    druid.until(lambda: cluster.report(task_id) is not None)
    report = cluster.report(task_id)
    assert report is not None
    assert (report.error, report.rows) == ("", Rows(2))
    payload = cluster.payload(task_id)
    assert payload is not None
    assert payload["sqlQueryContext"]["sqlQueryId"] == query_id


def test_a_query_id_runs_once(druid: World) -> None:
    cluster, query_id = druid.cluster(), name()
    task_id = f"query-{query_id}"
    body = sql(name(), query_id)
    assert cluster.submit("sql", body, id=task_id).accepted
    while_it_runs = cluster.submit("sql", body, id=task_id)
    ended(druid, task_id)
    afterwards = cluster.submit("sql", body, id=task_id)
    for answer in (while_it_runs, afterwards):
        assert (answer.code, answer.id, answer.exists) == (500, None, True)


def test_a_statement_is_refused_for_its_content(druid: World) -> None:
    cluster, query_id = druid.cluster(), name()
    answer = cluster.submit("sql", sql(name(), query_id, partitioned=""), id=f"query-{query_id}")
    assert (answer.code, answer.id, answer.exists) == (400, None, False)
    assert "requires a PARTITIONED BY" in answer.text
    assert cluster.task(f"query-{query_id}") is None
    assert cluster.submit("sql", b"{}").code == 400
    assert cluster.submit("sql", b'{"query": "SELEC 1"}').code == 500
    assert cluster.submit("sql", b'{"query": ').code == 400


def test_an_explanation_is_no_task(druid: World) -> None:
    answer = druid.cluster().submit("sql", b'{"query": "EXPLAIN PLAN FOR SELECT 1"}')
    assert (answer.code, answer.id) == (200, None)
