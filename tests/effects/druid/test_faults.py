"""What is made of Routers that fail, of answers that are none, and that nobody is told a secret."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError, OutOfTime
from hooks.effects.druid import DruidClusters
from hooks.effects.ports.druid import (
    Answer,
    Cluster,
    DruidUnavailable,
    NoLeader,
    ProtocolError,
    ProxyDisabled,
    Report,
    Router,
    TooManyRequests,
)
from hooks.effects.ports.server import Login
from hooks.sandbox.druid import DruidServer, Fault
from tests.effects.druid.conftest import Raw
from tests.effects.druid.contract import kafka, native, sql

LOGIN = Login("an-operator-in-no-text", "a-password-in-no-text")
NO_LEADER = "the Router knows no leading Coordinator or Overlord that is ready"
NO_PROXY = ProxyDisabled(
    "Druid",
    "the Router has no such path: set druid.router.managementProxy.enabled=true on it",
    code="404",
)
NOT_HTTP = "the answer is not HTTP: check the Router's address and port"
NOT_DRUIDS = "the answer is none of Druid's: check the Router"
BATCH = native("ds", "2026-03-01T00:00:00Z,A", task_id="mine")

QUESTIONS: dict[str, Callable[[Cluster], object]] = {
    "submit": lambda cluster: cluster.submit("task", BATCH),
    "task": lambda cluster: cluster.task("mine"),
    "payload": lambda cluster: cluster.payload("mine"),
    "report": lambda cluster: cluster.report("mine"),
    "shut-down": lambda cluster: cluster.shut_down("mine"),
    "supervisor": lambda cluster: cluster.supervisor("mine"),
    "supervisor-spec": lambda cluster: cluster.supervisor_spec("mine"),
    "past-specs": lambda cluster: cluster.past_specs("mine"),
    "suspend": lambda cluster: cluster.suspend("mine"),
    "resume": lambda cluster: cluster.resume("mine"),
    "terminate": lambda cluster: cluster.terminate("mine"),
    "compaction": lambda cluster: cluster.compaction("ds"),
    "set-compaction": lambda cluster: cluster.set_compaction({"dataSource": "ds"}),
    "rules": lambda cluster: cluster.rules("ds"),
    "set-rules": lambda cluster: cluster.set_rules("ds", []),
}
every_question = pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)


def failure(cluster: Cluster, question: Callable[[Cluster], object]) -> EffectError:
    with pytest.raises(EffectError) as raised:
        question(cluster)
    return raised.value


def at(url: str, seconds: float = 20.0) -> Cluster:
    return DruidClusters().bind(Deadline(seconds)).cluster(Router(url), LOGIN)


@every_question
def test_a_router_that_does_not_forward_is_not_absence(
    server: DruidServer, cluster: Cluster, question: Callable[[Cluster], object]
) -> None:
    server.conduct.management_proxy = False
    assert failure(cluster, question) == NO_PROXY


@every_question
@pytest.mark.parametrize("body", ["", "<html><title>Error 404 Not Found</title></html>", "{}"])
def test_a_404_of_somebody_else_is_not_absence(
    server: DruidServer, cluster: Cluster, question: Callable[[Cluster], object], body: str
) -> None:
    server.faults.append(Fault(status=404, body=body))
    assert failure(cluster, question) == NO_PROXY


@every_question
@pytest.mark.parametrize(
    ("overlord", "expected"),
    [
        ("starting", NoLeader("Druid", NO_LEADER, code="503")),
        ("down", NoLeader("Druid", NO_LEADER, code="503")),
        (
            "killed",
            NoLeader(
                "Druid",
                "the Router does not reach the leading Coordinator or Overlord",
                code="502",
            ),
        ),
    ],
)
def test_without_a_leader_nothing_is_known(
    server: DruidServer,
    cluster: Cluster,
    question: Callable[[Cluster], object],
    overlord: str,
    expected: EffectError,
) -> None:
    server.conduct.overlord = overlord  # type: ignore[assignment]  # one of its literals
    assert failure(cluster, question) == expected


@every_question
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        pytest.param(Fault(), DruidUnavailable("Druid", "it closed the connection"), id="closed"),
        pytest.param(
            Fault(status=503, body="no healthy upstream"),
            DruidUnavailable("Druid", "it cannot answer now", code="503"),
            id="a-proxy-without-a-router",
        ),
        pytest.param(
            Fault(status=502, body="<html><title>502 Bad Gateway</title></html>"),
            DruidUnavailable("Druid", "it cannot answer now", code="502"),
            id="a-proxy-that-cannot-reach-it",
        ),
        pytest.param(
            Fault(status=504),
            DruidUnavailable("Druid", "it cannot answer now", code="504"),
            id="a-proxy-that-waited",
        ),
        pytest.param(
            Fault(status=429),
            TooManyRequests("Druid", "too many tasks or requests", code="429"),
            id="a-limit",
        ),
        pytest.param(
            Fault(status=500, body="stream timeout"),
            DruidUnavailable("Druid", "it failed inside", code="500"),
            id="a-500-of-somebody-else",
        ),
    ],
)
def test_a_fault_is_told_in_our_words(
    server: DruidServer,
    cluster: Cluster,
    question: Callable[[Cluster], object],
    fault: Fault,
    expected: EffectError,
) -> None:
    server.faults.append(fault)
    assert failure(cluster, question) == expected


@pytest.mark.parametrize("name", ["set-compaction", "set-rules"])
def test_an_empty_500_may_be_a_refusal_of_a_configuration(
    server: DruidServer, cluster: Cluster, name: str
) -> None:
    server.faults.append(Fault(status=500))
    text = "it failed inside, or cannot read what was sent: see the Coordinator's log"
    assert failure(cluster, QUESTIONS[name]) == DruidUnavailable("Druid", text, code="500")


def test_a_full_queue_is_not_a_refusal(server: DruidServer, cluster: Cluster) -> None:
    server.conduct.queue = 0
    full = TooManyRequests("Druid", "too many tasks or requests", code="429")
    assert failure(cluster, QUESTIONS["submit"]) == full
    assert server.submissions == []


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("7", 7.0),
        ("86400", 300.0),
        pytest.param("9" * 5000, 300.0, id="5000 digits"),
        ("0", None),
        ("-1", None),
        ("soon", None),
        ("²", None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_router_may_say_how_long_to_wait(
    server: DruidServer, cluster: Cluster, status: int, header: str, expected: float | None
) -> None:
    server.faults.append(Fault(status=status, headers={"Retry-After": header}))
    assert failure(cluster, QUESTIONS["task"]).retry_after == expected


@pytest.mark.parametrize(
    "body",
    [
        "com.x.ServiceNotAvailableException: Service [overlord] is not available",
        "org.skife.jdbi.v2.exceptions.UnableToObtainConnectionException: refused",
    ],
)
def test_trouble_inside_druid_is_not_a_refusal(
    server: DruidServer, cluster: Cluster, body: str
) -> None:
    page = f"<html><title>Error 500 java.lang.RuntimeException: {body}</title></html>"
    server.faults.append(Fault(status=500, body=page))
    expected = DruidUnavailable("Druid", "it failed inside", code="500")
    assert failure(cluster, QUESTIONS["submit"]) == expected


def test_a_statement_while_no_overlord_leads_is_not_refused(
    server: DruidServer, cluster: Cluster
) -> None:
    server.conduct.overlord = "down"
    expected = DruidUnavailable("Druid", "it failed inside", code="500")
    assert failure(cluster, lambda one: one.submit("sql", sql("ds", "q"))) == expected


@pytest.mark.parametrize("endpoint", ["task", "sql", "supervisor"])
def test_a_submission_whose_reply_is_lost_is_found_by_the_next_look(
    server: DruidServer, cluster: Cluster, endpoint: str
) -> None:
    bodies = {"task": BATCH, "sql": sql("ds", "mine"), "supervisor": kafka("ds")}
    looks: dict[str, Callable[[], object]] = {
        "task": lambda: cluster.task("mine"),
        "sql": lambda: cluster.task("query-mine"),
        "supervisor": lambda: cluster.supervisor("ds"),
    }
    server.faults.append(Fault(method="POST", acted=True))
    lost = failure(cluster, lambda one: one.submit(endpoint, bodies[endpoint]))  # type: ignore[arg-type]  # one of its literals
    assert lost == DruidUnavailable("Druid", "it closed the connection")
    assert looks[endpoint]() is not None
    assert len(server.submissions) == 1


def test_a_router_that_never_answers_costs_the_time_that_is_left(server: DruidServer) -> None:
    server.faults.append(Fault(silent=True))
    expected = DruidUnavailable("Druid", "no answer in time")
    assert failure(at(server.url, 1.1), QUESTIONS["submit"]) == expected
    assert at(server.url).task("mine") is None


def test_a_time_out_says_nothing_about_what_was_done(server: DruidServer) -> None:
    server.faults.append(Fault(silent=True, acted=True))
    expected = DruidUnavailable("Druid", "no answer in time")
    assert failure(at(server.url, 1.1), QUESTIONS["submit"]) == expected
    assert at(server.url).task("mine") is not None


def test_nothing_is_asked_without_time(server: DruidServer) -> None:
    expected = OutOfTime("Druid", "not asked, the time of this call was spent")
    assert failure(at(server.url, 0.5), QUESTIONS["submit"]) == expected
    assert server.seen == []


def test_an_answer_that_trickles_is_not_waited_for() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + b" " * 9999
    with Raw(answer, drips=True) as raw:
        expected = DruidUnavailable("Druid", "no whole answer in time")
        assert failure(at(raw.url, 1.5), QUESTIONS["task"]) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
            DruidUnavailable("Druid", "it closed the connection"),
            id="half-a-body",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
            DruidUnavailable("Druid", "it closed the connection"),
            id="half-a-chunk",
        ),
        pytest.param(b"", DruidUnavailable("Druid", "it closed the connection"), id="nothing"),
        pytest.param(
            b"SSH-2.0-OpenSSH_9.2\r\n",
            ProtocolError("Druid", NOT_HTTP),
            id="another-protocol",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi",
            ProtocolError("Druid", NOT_HTTP),
            id="a-broken-encoding",
        ),
    ],
)
def test_half_an_answer_is_none(answer: bytes, expected: EffectError) -> None:
    with Raw(answer) as raw:
        assert failure(at(raw.url), QUESTIONS["task"]) == expected


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html><title>Please log in</title></html>",
        "[]",
        "null",
        "true",
        '{"task": "mine"',
        '{"value": NaN}',
        '{"deep": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"digits": ' + "9" * 5000 + "}",
        "\ufeff{}",
    ],
    ids=lambda body: body[:12] or "empty",
)
@pytest.mark.parametrize("name", ["task", "payload", "supervisor", "supervisor-spec", "compaction"])
def test_an_answer_that_is_none_of_druids(
    server: DruidServer, cluster: Cluster, name: str, body: str
) -> None:
    server.faults.append(Fault(status=200, body=body))
    assert isinstance(failure(cluster, QUESTIONS[name]), ProtocolError)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("task", '{"task": "mine", "status": {}}'),
        ("task", '{"task": "mine", "status": {"id": "mine", "statusCode": "DANCING"}}'),
        ("task", '{"anything": "else"}'),
        ("payload", '{"task": "mine", "payload": "text"}'),
        ("supervisor", '{"id": "mine"}'),
        ("past-specs", '{"no": "list"}'),
        ("past-specs", '["no object"]'),
        ("rules", '{"no": "list"}'),
        ("rules", '["no object"]'),
        ("compaction", '{"compactionConfigs": "none"}'),
        ("compaction", '{"compactionConfigs": ["none"]}'),
    ],
)
def test_an_object_that_is_something_else(
    server: DruidServer, cluster: Cluster, name: str, body: str
) -> None:
    server.faults.append(Fault(status=200, body=body))
    assert isinstance(failure(cluster, QUESTIONS[name]), ProtocolError)


@pytest.mark.parametrize(
    "body", ["", "<html>", "[]", '{"task": null}', '{"task": 7}', '{"id": "x"}']
)
def test_an_acceptance_without_an_id_names_none(
    server: DruidServer, cluster: Cluster, body: str
) -> None:
    server.faults.append(Fault(status=200, body=body))
    answer = cluster.submit("task", BATCH)
    assert (answer.code, answer.id, answer.accepted) == (200, None, False)


def test_of_a_long_refusal_the_beginning_is_read(server: DruidServer, cluster: Cluster) -> None:
    server.faults.append(Fault(status=400, body="x" * 1_000_000))
    assert cluster.submit("task", BATCH) == Answer(400, None, "x" * 65536)


def test_a_report_that_is_too_long_says_nothing(server: DruidServer, cluster: Cluster) -> None:
    server.faults.append(Fault(status=200, body='{"x": "' + "x" * 9_000_000))
    assert cluster.report("mine") == Report()


def test_a_document_that_is_too_long_is_refused(server: DruidServer, cluster: Cluster) -> None:
    server.faults.append(Fault(status=200, body='{"x": "' + "x" * 9_000_000 + '"}'))
    expected = ProtocolError("Druid", NOT_DRUIDS, code="200")
    assert failure(cluster, QUESTIONS["supervisor-spec"]) == expected


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../../status", "\ud800"])
def test_a_name_that_leads_elsewhere_is_not_asked_for(
    server: DruidServer, cluster: Cluster, name: str
) -> None:
    expected = ProtocolError("Druid", "no task, supervisor or datasource can have this name")
    for ask in (cluster.task, cluster.shut_down, cluster.terminate, cluster.rules):
        assert failure(cluster, lambda _, ask=ask: ask(name)) == expected  # type: ignore[misc]  # bound in a loop
    assert server.seen == []


@pytest.mark.parametrize("status", [None, 200, 307, 400, 401, 403, 404, 405, 429, 500, 502, 503])
def test_no_text_holds_a_secret(server: DruidServer, status: int | None) -> None:
    echo = f'<html><title>Error 500 {LOGIN.password} {LOGIN.username}</title> {{"error": "x"}}'
    cluster = at(server.url)
    told = [repr(LOGIN), repr(Router(server.url, client_pem=(b"chain", b"a-key"))), repr(cluster)]
    for question in QUESTIONS.values():
        server.faults.append(Fault(status=status, body=echo))
        try:
            told.append(repr(question(cluster)))
        except EffectError as error:
            told += [repr(error), str(error), *traceback.format_exception(error)]
    text = "\n".join(told)
    secrets = (LOGIN.password, LOGIN.username, "a-key", "Basic ")
    assert [secret for secret in secrets if secret in text] == []
