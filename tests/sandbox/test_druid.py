"""The double of Druid: it answers in the forms that real servers used, and goes on when told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import requests

from hooks.sandbox.druid import Conduct, DruidServer, Fault, Submission, User
from tests.effects.druid.contract import kafka, name, native, noop, sql
from tests.effects.druid.recordings import recording

TASK, SUPERVISOR, SQL = (
    "/druid/indexer/v1/task",
    "/druid/indexer/v1/supervisor",
    "/druid/v2/sql/task",
)
ROW = "2026-03-01T00:00:00Z,A"
NO_RIGHTS = User("a-password", read="", write="", external=False, config=False, state=False)


@pytest.fixture
def druid() -> Iterator[DruidServer]:
    with DruidServer() as druid:
        yield druid


def ask(
    druid: DruidServer,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    media: str = "application/json",
    auth: tuple[str, str] | None = None,
) -> requests.Response:
    headers = {"Content-Type": media}
    return requests.request(
        method, druid.url + path, data=body, headers=headers, auth=auth, timeout=5
    )


def told(druid: DruidServer, path: str) -> object:
    return ask(druid, "GET", path).json()


def shape(found: object) -> object:
    """Keep the keys of objects, and of what is in them nothing."""
    return sorted(found) if isinstance(found, dict) else type(found).__name__


def form(status: int, content_type: str | None, body: str) -> tuple[object, ...]:
    """Return what a client has to cope with: status, type, and the kind of the body."""
    if body.lstrip().startswith("<"):
        title = re.search(r"<title>(Error \d+ [\w.]*)", body)
        return status, content_type, title and title[1]
    try:
        return status, content_type, shape(json.loads(body))
    except ValueError:
        return status, content_type, re.sub(r"\[.*\]", "[ID]", body)


@dataclass(frozen=True)
class Case:
    """How the double is brought to answer in the form of a recording."""

    like: str
    method: str
    path: str
    body: bytes = b""
    media: str = "application/json"
    auth: tuple[str, str] | None = None
    before: Callable[[DruidServer], object] = lambda _: None


def submitted(path: str, body: bytes) -> Callable[[DruidServer], object]:
    return lambda druid: ask(druid, "POST", path, body)


def with_users(druid: DruidServer) -> None:
    druid.conduct.users = {"nobody": NO_RIGHTS}


def with_a_task_of_others(druid: DruidServer) -> None:
    submitted(TASK, noop("t"))(druid)
    with_users(druid)


def failed_with_bad_rows(druid: DruidServer) -> None:
    submitted(TASK, native("ds", ROW, task_id="t"))(druid)
    druid.tasks.fail("t", "java.lang.RuntimeException: no", parse_errors=["a row"])


def terminated(druid: DruidServer) -> None:
    submitted(SUPERVISOR, kafka("ds"))(druid)
    ask(druid, "POST", f"{SUPERVISOR}/ds/terminate")


def led_by(overlord: str) -> Callable[[DruidServer], object]:
    return lambda druid: setattr(druid.conduct, "overlord", overlord)


CASES = (
    Case("33/n33", "POST", TASK, native("ds", ROW, task_id="t")),
    Case("33/n33-dup", "POST", TASK, noop("t"), before=submitted(TASK, noop("t"))),
    Case("33/mal33", "POST", TASK, b'{"t'),
    Case("33/empty33", "POST", TASK),
    Case("33/ct33", "POST", TASK, b"{}", media="text/plain"),
    Case("33/longid33", "POST", TASK, noop("x" * 300)),
    Case("37/empty-object", "POST", TASK, b"{}"),
    Case("37/list", "POST", TASK, b"[]"),
    Case("37/unknown-type", "POST", TASK, b'{"type": "no_such_type"}'),
    Case("37/slash-id", "POST", TASK, noop("a/b")),
    Case("37/missing-inputSource", "POST", TASK, b'{"type": "index_parallel", "dataSource": "d"}'),
    Case("33/unk33", "GET", f"{TASK}/nope/status"),
    Case("33/unkrep33", "GET", f"{TASK}/nope/reports"),
    Case("37/unknown-task-shutdown", "POST", f"{TASK}/nope/shutdown"),
    Case("37/encoded-slash", "GET", f"{TASK}/a%2Fb/status"),
    Case("37/noop-running-status", "GET", f"{TASK}/t/status", before=submitted(TASK, noop("t"))),
    Case("37/noop-running-reports", "GET", f"{TASK}/t/reports", before=submitted(TASK, noop("t"))),
    Case("37/noop-shutdown", "POST", f"{TASK}/t/shutdown", before=submitted(TASK, noop("t"))),
    Case("37/parsefail-status", "GET", f"{TASK}/t/status", before=failed_with_bad_rows),
    Case("37/down-post", "POST", TASK, noop("t"), before=led_by("down")),
    Case("37auth/post-nohdr", "POST", TASK, noop("t"), before=with_users),
    Case("37auth/post-wrongpw", "POST", TASK, noop("t"), auth=("nobody", "x"), before=with_users),
    Case("37auth/post-unknownuser", "POST", TASK, noop("t"), auth=("who", "x"), before=with_users),
    Case(
        "37auth/post-nobody",
        "POST",
        TASK,
        noop("t"),
        auth=("nobody", "a-password"),
        before=with_users,
    ),
    Case(
        "37auth/status-nobody",
        "GET",
        f"{TASK}/t/status",
        auth=("nobody", "a-password"),
        before=with_a_task_of_others,
    ),
    Case(
        "37auth/malformed-nobody",
        "POST",
        TASK,
        b'{"t',
        auth=("nobody", "a-password"),
        before=with_users,
    ),
    Case("33/k-create", "POST", SUPERVISOR, kafka("ds")),
    Case("33/u-no-bootstrap", "POST", SUPERVISOR, kafka("d").replace(b"bootstrap.s", b"s")),
    Case(
        "37/f-create-throws",
        "POST",
        SUPERVISOR,
        kafka("ds"),
        before=lambda druid: setattr(druid.conduct, "creation_error", "no"),
    ),
    Case(
        "33/k2-suspend-again",
        "POST",
        f"{SUPERVISOR}/ds/suspend",
        before=submitted(SUPERVISOR, kafka("ds", suspended=True)),
    ),
    Case(
        "33/k2-resume-again",
        "POST",
        f"{SUPERVISOR}/ds/resume",
        before=submitted(SUPERVISOR, kafka("ds")),
    ),
    Case("33/k2-terminate-again", "POST", f"{SUPERVISOR}/ds/terminate", before=terminated),
    Case("33/k2-get-after", "GET", f"{SUPERVISOR}/ds", before=terminated),
    Case("37/unknown-sup-history", "GET", f"{SUPERVISOR}/nope/history"),
    Case("37/unknown-sup-suspend", "POST", f"{SUPERVISOR}/nope/suspend"),
    Case("27/sql-own-id", "POST", SQL, sql("ds", "q")),
    Case("27/sql-own-id-dup", "POST", SQL, sql("ds", "q"), before=submitted(SQL, sql("ds", "q"))),
    Case("27/sql-no-partitioned", "POST", SQL, sql("ds", "q", partitioned="")),
    Case("27/sql-bad-syntax", "POST", SQL, b'{"query": "SELEC"}'),
    Case("27/sql-empty", "POST", SQL, b"{}"),
    Case("27/sql-malformed", "POST", SQL, b'{"query"'),
    Case("27/sql-explain", "POST", SQL, b'{"query": "EXPLAIN PLAN FOR SELECT 1"}'),
    Case(
        "33/sql33-task",
        "POST",
        SQL,
        sql("ds", "q"),
        before=lambda druid: setattr(druid.conduct, "sql", False),
    ),
    Case("37/rules-unknown-ds", "GET", "/druid/coordinator/v1/rules/nope"),
    Case("37/unknown-path", "GET", "/druid/indexer/v1/nothing"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.like)
def test_it_answers_in_the_form_of_a_real_server(druid: DruidServer, case: Case) -> None:
    case.before(druid)
    answer = ask(druid, case.method, case.path, case.body, media=case.media, auth=case.auth)
    real = recording(case.like)
    found = form(answer.status_code, answer.headers.get("Content-Type"), answer.text)
    assert found == form(real.status, real.headers.get("Content-Type"), real.body)
    assert answer.headers.get("WWW-Authenticate") == real.headers.get("WWW-Authenticate")


def test_a_duplicate_of_a_statement_quotes_the_overlord(druid: DruidServer) -> None:
    for _ in range(2):
        answer = ask(druid, "POST", SQL, sql("ds", "q"))
    assert "Task[query-q] already exists" in answer.json()["error"]["errorMessage"]


def test_what_was_taken_is_written_down(druid: DruidServer) -> None:
    bodies = {TASK: noop("t"), SQL: sql("ds", "q"), SUPERVISOR: kafka("ds")}
    for path, body in bodies.items():
        for _ in range(2):
            ask(druid, "POST", path, body)
    assert druid.submissions == [
        Submission("task", "t", json.loads(bodies[TASK])),
        Submission("sql", "query-q", json.loads(bodies[SQL])),
        Submission("supervisor", "ds", json.loads(bodies[SUPERVISOR])),
        Submission("supervisor", "ds", json.loads(bodies[SUPERVISOR])),
    ]


def test_a_task_that_is_forgotten_runs_again(druid: DruidServer) -> None:
    ask(druid, "POST", TASK, noop("t"))
    druid.tasks.forget("t")
    assert ask(druid, "GET", f"{TASK}/t/status").status_code == 404
    assert ask(druid, "POST", TASK, noop("t")).json() == {"task": "t"}


def test_a_task_may_linger_after_its_shutdown(druid: DruidServer) -> None:
    druid.conduct.lingering = True
    ask(druid, "POST", TASK, noop("t"))
    ask(druid, "POST", f"{TASK}/t/shutdown")
    assert druid.tasks["t"].state == "RUNNING"
    druid.tasks.end("t")
    assert (druid.tasks["t"].state, druid.tasks["t"].error) == (
        "FAILED",
        "Shutdown request from user",
    )


def test_a_long_error_is_cut_in_the_status_and_whole_in_the_report(druid: DruidServer) -> None:
    ask(druid, "POST", TASK, native("ds", ROW, task_id="t"))
    druid.tasks.fail("t", "A: " + "x" * 5000)
    status = told(druid, f"{TASK}/t/status")
    report = told(druid, f"{TASK}/t/reports")
    assert isinstance(status, dict)
    assert isinstance(report, dict)
    assert len(status["status"]["errorMsg"]) < 1100
    assert len(report["ingestionStatsAndErrors"]["payload"]["errorMsg"]) > 5000


def test_in_a_demo_work_goes_on_by_itself() -> None:
    now = 1_000_000.0
    with DruidServer(Conduct(seconds=3, now=lambda: now)) as druid:
        for path, body in {
            TASK: native("ds", ROW, ROW, task_id="t"),
            SQL: sql("ds", "q"),
            SUPERVISOR: kafka("ds"),
        }.items():
            ask(druid, "POST", path, body)
        told(druid, "/status")
        assert [task.state for task in druid.tasks.values()] == ["RUNNING", "RUNNING"]
        now += 3
        told(druid, "/status")
        assert [task.state for task in druid.tasks.values()] == ["SUCCESS", "SUCCESS"]
        assert druid.supervisors["ds"].state == "RUNNING"
        native_report = told(druid, f"{TASK}/t/reports")
        sql_report = told(druid, f"{TASK}/query-q/reports")
    assert isinstance(native_report, dict)
    assert isinstance(sql_report, dict)
    native_rows = native_report["ingestionStatsAndErrors"]["payload"]["rowStats"]["buildSegments"]
    assert native_rows["processed"] == 2
    progress = sql_report["multiStageQuery"]["payload"]["counters"]["1"]["0"]
    assert progress["segmentGenerationProgress"]["rowsProcessed"] == 2


NOT_ALLOWED = (
    "Hadoop tasks are not allowed to run on this cluster: "
    "set [druid.indexer.task.allowHadoopTaskExecution] to true"
)
HADOOP = json.dumps(
    {"type": "index_hadoop", "id": "h", "spec": {"dataSchema": {"dataSource": "ds"}}}
).encode()


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("33.0.0", ("RUNNING", "")),
        (
            "36.0.0",
            ("FAILED", NOT_ALLOWED),
        ),
        ("37.0.0", ("FAILED", "The Apache Hadoop ingestion task was removed in Druid 37.0")),
    ],
)
def test_what_becomes_of_hadoop_tasks(version: str, expected: tuple[str, str]) -> None:
    with DruidServer(Conduct(version=version)) as druid:
        assert ask(druid, "POST", TASK, HADOOP).status_code == 200
        assert (druid.tasks["h"].state, druid.tasks["h"].error) == expected


def test_a_type_that_is_gone_is_unknown(druid: DruidServer) -> None:
    druid.conduct.hadoop = "unknown"
    answer = ask(druid, "POST", TASK, HADOOP)
    assert answer.status_code == 400
    assert "Could not resolve type id 'index_hadoop'" in answer.json()["error"]


@pytest.mark.parametrize(("version", "expected"), [("33.0.0", "ds"), ("34.0.0", "eu")])
def test_a_supervisor_has_an_id_of_its_own_from_34_on(version: str, expected: str) -> None:
    with DruidServer(Conduct(version=version)) as druid:
        assert ask(druid, "POST", SUPERVISOR, kafka("ds", id="eu")).json() == {"id": expected}


@pytest.mark.parametrize(("version", "expected"), [("33.0.0", 200), ("34.0.0", 500)])
def test_a_supervisor_keeps_its_stream_from_34_on(version: str, expected: int) -> None:
    other = kafka("ds").replace(b'"topic": "contract"', b'"topic": "other"')
    with DruidServer(Conduct(version=version)) as druid:
        ask(druid, "POST", SUPERVISOR, kafka("ds"))
        answer = ask(druid, "POST", SUPERVISOR, other)
        stream = druid.supervisors["ds"].spec["ioConfig"]["stream"]
    assert (answer.status_code, stream) == (expected, "other" if expected == 200 else "contract")


def test_an_update_that_throws_leaves_no_supervisor_and_its_past(druid: DruidServer) -> None:
    ask(druid, "POST", SUPERVISOR, kafka("ds"))
    druid.conduct.creation_error = "bad autoscaler"
    assert ask(druid, "POST", SUPERVISOR, kafka("ds", task_count=2)).status_code == 500
    assert list(druid.supervisors) == []
    assert [one["spec"]["ioConfig"]["taskCount"] for one in druid.supervisors.history["ds"]] == [1]


def test_only_an_unchanged_supervisor_is_not_restarted(druid: DruidServer) -> None:
    skipping = f"{SUPERVISOR}?skipRestartIfUnmodified=true"
    for path, body, restarts in (
        (skipping, kafka("ds"), 0),
        (skipping, kafka("ds"), 0),
        (SUPERVISOR, kafka("ds"), 1),
        (skipping, kafka("ds", task_count=2), 2),
    ):
        ask(druid, "POST", path, body)
        assert druid.supervisors["ds"].restarts == restarts


def test_a_stream_that_is_lost_is_unhealthy_until_the_next_change(druid: DruidServer) -> None:
    ask(druid, "POST", SUPERVISOR, kafka("ds"))
    druid.supervisors.settle()
    druid.supervisors.lose_stream("ds", "no broker")
    health = ask(druid, "GET", f"{SUPERVISOR}/ds/health")
    assert (health.status_code, health.json()) == (503, {"healthy": False})
    ask(druid, "POST", f"{SUPERVISOR}/ds/suspend")
    druid.supervisors.settle()
    one = druid.supervisors["ds"]
    assert (one.state, one.healthy, one.errors) == ("SUSPENDED", True, [])


def test_a_fault_counts_as_often_as_it_says(druid: DruidServer) -> None:
    druid.faults.append(Fault(method="POST", path="/task", times=2, status=503))
    codes = [ask(druid, "POST", TASK, noop(name())).status_code for _ in range(3)]
    assert (codes, len(druid.tasks)) == ([503, 503, 200], 1)


@pytest.mark.parametrize("acted", ["acted", ""])
def test_a_reply_may_be_lost_before_or_after_the_act(druid: DruidServer, acted: str) -> None:
    druid.faults.append(Fault(acted=bool(acted)))
    with pytest.raises(requests.ConnectionError):
        ask(druid, "POST", TASK, noop("t"))
    assert list(druid.tasks) == (["t"] if acted else [])


def test_everything_that_arrives_is_seen(druid: DruidServer) -> None:
    ask(druid, "GET", "/status/health")
    ask(druid, "POST", TASK, noop("t"))
    assert druid.seen == ["GET /status/health", "POST /druid/indexer/v1/task"]


def test_health_is_open_to_everybody(druid: DruidServer) -> None:
    with_users(druid)
    led_by("down")(druid)
    assert told(druid, "/status/health") is True
    assert ask(druid, "GET", "/status").status_code == 401
