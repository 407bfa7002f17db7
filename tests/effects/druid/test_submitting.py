"""What real Druids said to specifications, as the hooks are told it."""

from __future__ import annotations

import pytest

from hooks.core.errors import EffectError
from hooks.effects.ports.druid import (
    Answer,
    DruidUnavailable,
    Endpoint,
    Forbidden,
    NoLeader,
    ProxyDisabled,
    Unauthorized,
)
from tests.effects.druid.recordings import Recording, Replay, recording

SYSTEM = "Druid"
NO_LEADER = NoLeader(
    SYSTEM, "the Router knows no leading Coordinator or Overlord that is ready", code="503"
)
NO_SQL = ProxyDisabled(
    SYSTEM, "it has no SQL-based ingestion: load the extension druid-multi-stage-query", code="405"
)


def submitted(name: str, endpoint: Endpoint, chosen: str = "") -> Answer | EffectError:
    with Replay(recording(name)) as replay:
        try:
            return replay.cluster.submit(endpoint, b"{}", id=chosen)
        except EffectError as error:
            return error


@pytest.mark.parametrize(
    ("name", "endpoint", "code", "task_id"),
    [
        (
            "37/native-s01",
            "task",
            200,
            "index_parallel_bike_dock_events_kfgnadhf_2026-11-29T18:48:36.620Z",
        ),
        ("37/unicode", "task", 200, "lot été 東京:1"),
        ("37/hadoop-with-id", "task", 200, "myhadoop"),
        ("33/hadoop33-id", "task", 200, "had33"),
        ("27/sql-submit", "sql", 202, "query-cb3050f8-0c86-4a8f-bd8a-676301839ab4"),
        ("27/sql-own-id", "sql", 202, "query-own-1795978860"),
        ("33/k-create", "supervisor", 200, "checkout_clicks"),
        ("33/s08-create", "supervisor", 200, "checkout_clicks"),
        ("37/f-unicode", "supervisor", 200, "été 東京"),
        ("20/kin-s04", "supervisor", 200, "depot_telemetry"),
    ],
)
def test_what_was_taken_has_the_id_of_the_answer(
    name: str, endpoint: Endpoint, code: int, task_id: str
) -> None:
    assert submitted(name, endpoint) == Answer(code, task_id, recording(name).body)


def test_an_explanation_is_no_task() -> None:
    plan = recording("27/sql-explain").body.strip()
    assert submitted("27/sql-explain", "sql") == Answer(200, None, plan)


@pytest.mark.parametrize(
    ("name", "endpoint", "chosen"),
    [
        ("20/n20-dup", "task", "nightly-meter-load_2026-05-05"),
        ("27/n27-dup", "task", "nightly-meter-load_2026-05-05"),
        ("33/n33-dup", "task", "nightly-meter-load_2026-05-05"),
        ("37/native-id-dup-running", "task", "nightly-1795978121"),
        ("37/hadoop-with-id-dup", "task", "myhadoop"),
        ("27/sql-own-id-dup", "sql", "query-own-1795978860"),
        ("27/sql-own-id-dup-ended", "sql", "query-own-1795978860"),
    ],
)
def test_an_id_that_ran_already_is_recognised_in_every_form(
    name: str, endpoint: Endpoint, chosen: str
) -> None:
    found = recording(name)
    assert submitted(name, endpoint, chosen) == Answer(found.status, None, found.body, exists=True)


@pytest.mark.parametrize("chosen", ["", "nightly", "another"])
def test_an_id_that_is_not_ours_does_not_exist_for_us(chosen: str) -> None:
    assert submitted("33/n33-dup", "task", chosen) == Answer(
        400, None, recording("33/n33-dup").body
    )


@pytest.mark.parametrize(
    ("name", "endpoint"),
    [
        ("37/native-with-parser", "task"),
        ("37/empty-object", "task"),
        ("37/list", "task"),
        ("37/string", "task"),
        ("37/unknown-type", "task"),
        ("37/s3-not-loaded-s07", "task"),
        ("37/bad-field-type", "task"),
        ("37/missing-inputSource", "task"),
        ("37/emoji-datasource", "task"),
        ("37/slash-id", "task"),
        ("37/nan", "task"),
        ("37/hadoop-min", "task"),
        ("33/ct33", "task"),
        ("27/n27-kafka", "supervisor"),
        ("37/f-validate", "supervisor"),
        ("33/u-no-bootstrap", "supervisor"),
        ("20/kin-nostream", "supervisor"),
        ("27/sql-bad-syntax", "sql"),
        ("27/sql-no-partitioned", "sql"),
        ("27/sql-unknown-table", "sql"),
        ("27/sql-maxtasks1", "sql"),
        ("27/sql-empty", "sql"),
        ("27/sql-malformed", "sql"),
        ("27/sql-emptybody", "sql"),
    ],
)
def test_a_refusal_is_shown_as_it_came(name: str, endpoint: Endpoint) -> None:
    found = recording(name)
    assert submitted(name, endpoint) == Answer(found.status, None, found.body)


PAGES: dict[tuple[str, Endpoint], str] = {
    ("33/mal33", "task"): (
        "javax.servlet.ServletException: com.fasterxml.jackson.core.io.JsonEOFException: "
        "Unexpected end-of-input in field name\n at [Source: "
        "(org.eclipse.jetty.server.HttpInputOverHTTP); line: 1, column: 4]"
    ),
    ("37/malformed-s10", "task"): (
        "javax.servlet.ServletException: com.fasterxml.jackson.core.JsonParseException: "
        "Unexpected character ('/' (code 47)): maybe a (non-standard) comment? (not recognized "
        "as one since Feature 'ALLOW_COMMENTS' not enabled for parser)\n at [Source: REDACTED "
        "(`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 2, column: 3]"
    ),
    ("37/empty-body", "task"): (
        "java.lang.NullPointerException: Cannot invoke "
        '"org.apache.druid.indexing.common.task.Task.getDestinationResource()" because "task" '
        "is null"
    ),
    ("33/k-type-change", "supervisor"): (
        "java.lang.IllegalArgumentException: No dataSources found to perform authorization checks"
    ),
    ("37/f-topic-change", "supervisor"): (
        "org.apache.druid.error.DruidException: Update of the input source stream from [a] to "
        "[b] is not supported for a running supervisor."
    ),
    ("37/f-create-throws", "supervisor"): (
        "java.lang.RuntimeException: java.lang.IllegalArgumentException: createSupervisor refused"
    ),
}


@pytest.mark.parametrize(("name", "endpoint"), PAGES)
def test_of_an_error_page_the_message_is_shown(name: str, endpoint: Endpoint) -> None:
    assert submitted(name, endpoint) == Answer(500, None, PAGES[name, endpoint])


def test_of_a_refusal_with_a_stack_trace_the_message_is_shown() -> None:
    frames = r"\n\tat a.B.c(B.java:1)\n\t... 3 more"
    body = rf'{{"error":"A: no{frames}\nCaused by: D: \"why\"{frames}"}}'
    shown = r'{"error":"A: no\nCaused by: D: \"why\""}'
    refusal = Recording("POST", "/druid/indexer/v1/task", 400, {}, body)
    with Replay(refusal) as replay:
        assert replay.cluster.submit("task", b"{}") == Answer(400, None, shown)


@pytest.mark.parametrize(
    ("name", "endpoint", "expected"),
    [
        ("37/down-post", "task", NO_LEADER),
        ("37/down-sup", "supervisor", NO_LEADER),
        ("33/sql33-task", "sql", NO_SQL),
        (
            "37auth/post-nohdr",
            "task",
            Unauthorized(SYSTEM, "it wants a user name and a password", code="401"),
        ),
        (
            "27/sql-nohdr",
            "sql",
            Unauthorized(SYSTEM, "it wants a user name and a password", code="401"),
        ),
        (
            "37auth/post-nobody",
            "task",
            Forbidden(SYSTEM, "the user lacks a permission: DATASOURCE WRITE", code="403"),
        ),
        (
            "27/n27-403",
            "task",
            Forbidden(SYSTEM, "the user lacks a permission: DATASOURCE WRITE", code="403"),
        ),
        (
            "37auth/sup-post-nobody",
            "supervisor",
            Forbidden(SYSTEM, "the user lacks a permission: DATASOURCE WRITE", code="403"),
        ),
        (
            "27/sql-w-noext",
            "sql",
            Forbidden(
                SYSTEM,
                "the user lacks a permission: DATASOURCE WRITE, and EXTERNAL READ for EXTERN",
                code="403",
            ),
        ),
    ],
)
def test_what_is_not_about_the_content_is_no_answer_to_it(
    name: str, endpoint: Endpoint, expected: EffectError
) -> None:
    assert submitted(name, endpoint) == expected


@pytest.mark.parametrize("name", ["37/long-id", "33/longid33", "27/longid27"])
def test_what_the_metadata_store_throws_is_no_refusal(name: str) -> None:
    """An id that is too long is told so, and a store that is down in the same words."""
    expected = DruidUnavailable(SYSTEM, "it failed inside", code="500")
    assert submitted(name, "task") == expected


def test_who_has_no_rights_is_still_told_that_the_json_is_broken() -> None:
    found = submitted("37auth/malformed-nobody", "task")
    assert isinstance(found, Answer)
    assert (found.code, found.accepted) == (500, False)
