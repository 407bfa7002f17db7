"""The contract of batch tasks: any Druid with native ingestion keeps it."""

from __future__ import annotations

from collections.abc import Callable

from hooks.core.errors import Unavailable
from hooks.effects.ports.druid import Answer, Report, Rows, Task
from tests.effects.druid.contract import World, name, native, noop

ROWS = ("2026-03-01T00:00:00Z,A", "2026-03-01T01:00:00Z,B")


def ended(druid: World, task_id: str) -> Task:
    """Wait for a task to end."""
    cluster = druid.cluster()

    def over() -> bool:
        task = cluster.task(task_id)
        return task is not None and task.state != "RUNNING"

    druid.until(over)
    task = cluster.task(task_id)
    assert task is not None
    return task


def taken(write: Callable[[], Answer]) -> bool:
    """Write a configuration; older Coordinators refuse with an empty 500."""
    try:
        return write().accepted
    except Unavailable:
        return False


def test_it_says_its_version(druid: World) -> None:
    assert druid.cluster().version() == druid.version


def test_a_batch_runs_under_the_id_that_was_chosen(druid: World) -> None:
    cluster, task_id, datasource = druid.cluster(), name(), name()
    answer = cluster.submit("task", native(datasource, *ROWS, task_id=task_id), id=task_id)
    assert (answer.accepted, answer.id, answer.exists) == (True, task_id, False)
    task = ended(druid, task_id)
    assert (task.id, task.state, task.type) == (task_id, "SUCCESS", "index_parallel")
    assert (task.datasource, task.error) == (datasource, "")
    assert task.created.endswith("Z")
    druid.until(lambda: cluster.report(task_id) is not None)
    assert cluster.report(task_id) == Report(rows=Rows(2))
    payload = cluster.payload(task_id)
    assert payload is not None
    assert (payload["id"], payload["type"]) == (task_id, "index_parallel")


def test_an_id_runs_once(druid: World) -> None:
    cluster, task_id = druid.cluster(), name()
    body = native(name(), *ROWS, task_id=task_id)
    assert cluster.submit("task", body, id=task_id).accepted
    while_it_runs = cluster.submit("task", body, id=task_id)
    ended(druid, task_id)
    afterwards = cluster.submit("task", body, id=task_id)
    for answer in (while_it_runs, afterwards):
        assert (answer.code, answer.id, answer.exists) == (400, None, True)


def test_a_row_that_cannot_be_parsed_is_told(druid: World) -> None:
    cluster, task_id = druid.cluster(), name()
    rows = (ROWS[0], "not a time,B")
    body = native(name(), *rows, task_id=task_id, maxParseExceptions=0, maxSavedParseExceptions=5)
    assert cluster.submit("task", body, id=task_id).accepted
    error = "org.apache.druid.java.util.common.RE: Max parse exceptions[0] exceeded"
    druid.spoil(task_id, error, "Timestamp[not a time] is unparseable!")
    task = ended(druid, task_id)
    assert (task.state, task.error.splitlines()[0]) == ("FAILED", error)
    druid.until(lambda: cluster.report(task_id) is not None)
    report = cluster.report(task_id)
    assert report is not None
    assert (report.error.splitlines()[0], report.rows) == (error, Rows(1, unparseable=1))
    assert [one.startswith("Timestamp[not a time]") for one in report.parse_errors] == [True]


def test_a_task_is_shut_down(druid: World) -> None:
    cluster, task_id = druid.cluster(), name()
    assert cluster.submit("task", noop(task_id), id=task_id).accepted
    running = cluster.task(task_id)
    assert running is not None
    assert (running.state, running.duration_ms) == ("RUNNING", None)
    cluster.shut_down(task_id)
    stopped = ended(druid, task_id)
    assert (stopped.state, stopped.error) == ("FAILED", "Shutdown request from user")
    cluster.shut_down(task_id)
    assert cluster.report(task_id) is None


def test_what_never_was_is_not_there(druid: World) -> None:
    cluster, task_id = druid.cluster(), name()
    assert cluster.task(task_id) is None
    assert cluster.payload(task_id) is None
    assert cluster.report(task_id) is None
    cluster.shut_down(task_id)


def test_an_id_may_hold_what_a_path_may_not(druid: World) -> None:
    cluster, task_id = druid.cluster(), f"lot 100% été 東京:1?x=#~+&{name()}"
    assert cluster.submit("task", noop(task_id), id=task_id).id == task_id
    found = cluster.task(task_id)
    assert found is not None
    assert found.id == task_id
    assert cluster.submit("task", noop(task_id), id=task_id).exists
    cluster.shut_down(task_id)
    assert ended(druid, task_id).state == "FAILED"


def test_what_cannot_be_read_is_refused_for_its_content(druid: World) -> None:
    cluster = druid.cluster()
    unknown = cluster.submit("task", b'{"type": "no_such_type"}')
    assert (unknown.code, unknown.accepted) == (400, False)
    assert "Could not resolve type id 'no_such_type'" in unknown.text
    broken = cluster.submit("task", b'{"type": ')
    assert (broken.code, broken.accepted) == (500, False)
    assert broken.text.startswith("javax.servlet.ServletException: com.fasterxml.jackson.core.")
    assert "\tat " not in broken.text
    assert cluster.submit("task", native("a/b", *ROWS)).code == 400


def test_compaction_is_kept_until_it_is_removed(druid: World) -> None:
    cluster, datasource = druid.cluster(), name()
    assert cluster.compaction(datasource) is None
    wanted = {"dataSource": datasource, "skipOffsetFromLatest": "P2D"}
    answer = cluster.set_compaction(wanted)
    assert (answer.code, answer.id, answer.accepted) == (200, datasource, True)
    found = cluster.compaction(datasource)
    assert found is not None
    assert (found["dataSource"], found["skipOffsetFromLatest"]) == (datasource, "P2D")
    cluster.delete_compaction(datasource)
    cluster.delete_compaction(datasource)
    assert cluster.compaction(datasource) is None
    assert not taken(lambda: cluster.set_compaction({"skipOffsetFromLatest": "P2D"}))


def test_rules_are_kept_until_they_are_removed(druid: World) -> None:
    cluster, datasource = druid.cluster(), name()
    assert cluster.rules(datasource) == []
    load: dict[str, object] = {
        "type": "loadByPeriod",
        "period": "P1M",
        "tieredReplicants": {"_default_tier": 1},
    }
    drop: dict[str, object] = {"type": "dropForever"}
    assert cluster.set_rules(datasource, [load, drop]) == Answer(200, datasource, "")
    found = cluster.rules(datasource)
    assert [rule["type"] for rule in found] == ["loadByPeriod", "dropForever"]
    assert found[0]["tieredReplicants"] == {"_default_tier": 1}
    assert cluster.set_rules(datasource, []) == Answer(200, datasource, "")
    assert cluster.rules(datasource) == []
    assert not taken(lambda: cluster.set_rules(datasource, [{"type": "no_such_rule"}]))
    assert cluster.rules(datasource) == []
