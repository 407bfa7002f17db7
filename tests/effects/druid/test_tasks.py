"""What real Druids showed of tasks, as the hooks are told it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from hooks.core.errors import EffectError
from hooks.effects.ports.druid import Cluster, DruidUnavailable, Forbidden, Report, Rows, Task
from tests.effects.druid.recordings import Recording, Replay, recording

S01 = "index_parallel_bike_dock_events_kfgnadhf_2026-11-29T18:48:36.620Z"
PARSEFAIL = "index_parallel_parsefail_akjghgda_2026-11-29T18:49:48.754Z"
BAD_ROW = "Timestamp[not a time] is unparseable! Event: {observed_at=not a time, dock_id=D}"


def asked(name: str, question: Callable[[Cluster], object]) -> object:
    with Replay(recording(name)) as replay:
        try:
            return question(replay.cluster)
        except EffectError as error:
            return error


def task_of(name: str) -> str:
    """The id in the path of a recording that needs no percent-encoding."""
    return recording(name).path.split("/")[5]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "37/native-s01-status",
            Task(
                id=S01,
                state="SUCCESS",
                type="index_parallel",
                datasource="bike_dock_events",
                created="2026-11-29T18:48:36.797Z",
                duration_ms=2586,
            ),
            id="success-beside-a-runner-that-waits",
        ),
        pytest.param(
            "37/parsefail-status",
            Task(
                id=PARSEFAIL,
                state="FAILED",
                type="index_parallel",
                datasource="parsefail",
                error="org.apache.druid.java.util.common.RE: Max parse exceptions[0] exceeded",
                created="2026-11-29T18:49:48.760Z",
                duration_ms=156,
            ),
            id="an-error-without-its-stack-trace",
        ),
    ],
)
def test_a_task_is_what_its_status_code_says(name: str, expected: Task) -> None:
    assert asked(name, lambda cluster: cluster.task(expected.id)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "37/noop-running-status",
            Task("noop-1795978160", "RUNNING", "noop", "zzz", "", "2026-11-29T18:49:20.981Z"),
        ),
        (
            "37/noop-status-after",
            Task(
                "noop-1795978160",
                "FAILED",
                "noop",
                "zzz",
                "Shutdown request from user",
                "2026-11-29T18:49:20.981Z",
            ),
        ),
        (
            "37/hadoop-id-status",
            Task(
                "myhadoop",
                "FAILED",
                "index_hadoop",
                "parcel_scans_archive",
                "The Apache Hadoop ingestion task was removed in Druid 37.0",
                "2026-11-29T18:49:47.254Z",
            ),
        ),
        (
            "27/badrow-status",
            Task(
                "query-5ef69b66-d167-46fa-bcc4-1831d531f9b3",
                "FAILED",
                "query_controller",
                "ferry_boardings",
                "InsertTimeNull: Null timestamp (__time) encountered during INSERT or REPLACE.",
                "2026-11-29T19:01:12.147Z",
                1769,
            ),
        ),
    ],
)
def test_a_task_that_druid_knows(name: str, expected: Task) -> None:
    assert asked(name, lambda cluster: cluster.task(task_of(name))) == expected


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("37/unknown-task-status", lambda cluster: cluster.task("nope-1")),
        ("37/unknown-task", lambda cluster: cluster.payload("nope-1")),
        ("37/unknown-task-reports", lambda cluster: cluster.report("nope-1")),
        ("33/unk33", lambda cluster: cluster.task("nope")),
        ("37auth/unknown-nobody", lambda cluster: cluster.task("nope")),
        ("37/unknown-task-shutdown", lambda cluster: cluster.shut_down("nope-1")),
        ("37/noop-shutdown-again", lambda cluster: cluster.shut_down("noop-1795978160")),
        ("37/native-s01-report-early", lambda cluster: cluster.report(S01)),
        ("37/noop-running-reports", lambda cluster: cluster.report("noop-1795978160")),
        ("37/noop-reports-after", lambda cluster: cluster.report("noop-1795978160")),
        ("37/hadoop-id-report", lambda cluster: cluster.report("myhadoop")),
        (
            "27/sql-cancel-report",
            lambda cluster: cluster.report("query-72a41056-93b4-4fa5-9bfc-06211b734f0e"),
        ),
    ],
)
def test_there_is_none_in_druids_words(name: str, question: Callable[[Cluster], object]) -> None:
    assert asked(name, question) is None


def test_a_null_status_is_no_task() -> None:
    path = "/druid/indexer/v1/task/gone/status"
    with Replay(Recording("GET", path, 404, {}, '{"task":"gone","status":null}')) as replay:
        assert replay.cluster.task("gone") is None


@pytest.mark.parametrize(
    ("name", "task_id"),
    [("37/unicode-shutdown", "lot été 東京:1"), ("37/encoded-utf8", "été 東京")],
)
def test_an_id_is_encoded_once_and_whole(name: str, task_id: str) -> None:
    asking = {
        "POST": lambda cluster: cluster.shut_down(task_id),
        "GET": lambda cluster: cluster.task(task_id),
    }
    assert asked(name, asking[recording(name).method]) is None


def test_a_tasks_payload_is_the_task_as_druid_holds_it() -> None:
    found = asked("37/native-s01-payload", lambda cluster: cluster.payload(S01))
    assert isinstance(found, dict)
    assert (found["type"], found["id"], found["context"]) == (
        "index_parallel",
        S01,
        {"forceTimeChunkLock": True, "useLineageBasedSegmentAllocation": True},
    )


def test_numbers_of_a_payload_are_exact() -> None:
    path = "/druid/indexer/v1/task/exact"
    body = '{"task":"exact","payload":{"whole":9007199254740993,"part":0.1}}'
    with Replay(Recording("GET", path, 200, {}, body)) as replay:
        found = replay.cluster.payload("exact")
    assert found == {"whole": 9007199254740993, "part": Decimal("0.1")}


@pytest.mark.parametrize(
    ("name", "task_id", "expected"),
    [
        pytest.param("37/native-s01-reports", S01, Report(rows=Rows(3)), id="success"),
        pytest.param(
            "33/n33-rep", "nightly-meter-load_2026-05-05", Report(rows=Rows(2)), id="success-33"
        ),
        pytest.param(
            "37/parsefail-report",
            PARSEFAIL,
            Report(
                error="org.apache.druid.java.util.common.RE: Max parse exceptions[0] exceeded",
                parse_errors=(f"{BAD_ROW} (Record: 4, Line: 4)",),
                rows=Rows(processed=3, unparseable=1),
            ),
            id="a-row-that-cannot-be-parsed",
        ),
        pytest.param(
            "33/had33-report",
            "had33",
            Report(
                error="org.apache.druid.java.util.common.ISE: Hadoop dependency [/srv/druid] "
                "didn't exist!?"
            ),
            id="a-task-that-never-began",
        ),
    ],
)
def test_a_report_says_why_and_how_many(name: str, task_id: str, expected: Report) -> None:
    assert asked(name, lambda cluster: cluster.report(task_id)) == expected


@pytest.mark.parametrize(
    ("name", "question", "right"),
    [
        ("37auth/status-nobody", lambda cluster, name: cluster.task(name), "DATASOURCE READ"),
        ("37auth/report-nobody", lambda cluster, name: cluster.report(name), "DATASOURCE READ"),
        ("37auth/status-writer", lambda cluster, name: cluster.task(name), "DATASOURCE READ"),
        (
            "37auth/shutdown-nobody",
            lambda cluster, name: cluster.shut_down(name),
            "DATASOURCE WRITE",
        ),
    ],
)
def test_a_missing_permission_is_named(
    name: str, question: Callable[[Cluster, str], object], right: str
) -> None:
    task_id = "index_parallel_bike_dock_events_eadddfll_2026-11-29T18:52:05.883Z"
    expected = Forbidden("Druid", f"the user lacks a permission: {right}", code="403")
    assert asked(name, lambda cluster: question(cluster, task_id)) == expected


def test_a_failure_inside_druid_is_not_absence() -> None:
    path = "/druid/indexer/v1/task/broken/reports"
    broken = Recording("GET", path, 500, {}, "")
    with Replay(broken) as replay, pytest.raises(DruidUnavailable) as raised:
        replay.cluster.report("broken")
    assert raised.value == DruidUnavailable("Druid", "it failed inside", code="500")
