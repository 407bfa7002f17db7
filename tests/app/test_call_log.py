"""What a call leaves in the log."""

from __future__ import annotations

import json

import pytest
import structlog
from flask.testing import FlaskClient
from structlog.testing import capture_logs

from tests.app.stubs import SECRET, TOKEN, bearer, call, make

LOG_CONTEXT = [structlog.contextvars.merge_contextvars]


@pytest.fixture
def client() -> FlaskClient:
    return make().test_client()


def test_a_call_is_one_line_that_says_whose_it_was_and_never_a_body(client: FlaskClient) -> None:
    with capture_logs(LOG_CONTEXT) as logs:
        client.post("/stub/sync", data=call(), headers=bearer())
    (line,) = logs
    request_id, seconds = line.pop("request_id"), line.pop("seconds")
    assert (len(request_id), 0 <= seconds < 5) == (16, True)
    assert line == {
        "event": "hook",
        "log_level": "info",
        "resource": "stub",
        "hook": "sync",
        "kind": "Stub",
        "namespace": "a",
        "name": "one",
        "uid": "u-1",
        "generation": 3,
        "result": "OK",
        "children": 1,
        "resync": 30.0,
    }


def test_a_line_of_finalize_says_whether_it_is_done(client: FlaskClient) -> None:
    with capture_logs() as logs:
        client.post("/stub/finalize", data=call(finalizing=True), headers=bearer())
    assert logs[0]["finalized"] is True


@pytest.mark.parametrize(
    ("token", "body", "result"),
    [(TOKEN, b"{", "BadRequest"), ("wrong-token-of-somebody", call(), "Unauthorized")],
)
def test_a_refused_call_is_a_warning_without_token_or_body(
    client: FlaskClient, token: str, body: bytes, result: str
) -> None:
    with capture_logs(LOG_CONTEXT) as logs:
        client.post("/stub/sync", data=body, headers=bearer(token))
    (line,) = logs
    assert (line["log_level"], line["result"], "uid" in line) == ("warning", result, False)
    told = json.dumps(line)
    assert [word for word in (token, SECRET, TOKEN) if word in told] == []


def test_one_call_leaves_nothing_in_the_context_of_the_next(client: FlaskClient) -> None:
    client.post("/stub/sync", data=call(), headers=bearer())
    with capture_logs(LOG_CONTEXT) as logs:
        structlog.get_logger().info("later")
    assert logs == [{"event": "later", "log_level": "info"}]
