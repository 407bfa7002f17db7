"""What goes in over HTTP, and what may come out."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import structlog
from flask.testing import FlaskClient
from structlog.testing import capture_logs

from hooks.app import Limits, create_app
from hooks.core.deadline import Deadline
from hooks.effects.ports import Services
from hooks.telemetry import Metrics
from tests.app.stubs import (
    CONFIG_MAP,
    OTHER_TOKEN,
    TOKEN,
    Stub,
    bearer,
    call,
    make,
    services,
)

LOG_CONTEXT = [structlog.contextvars.merge_contextvars]


@pytest.fixture
def client() -> FlaskClient:
    return make().test_client()


def no_world(_deadline: Deadline) -> Services:
    raise AssertionError("nobody may ask for the world here")


def test_sync_answers_what_the_resource_said(client: FlaskClient) -> None:
    answer = client.post("/stub/sync", data=call(), headers=bearer())
    assert (answer.status_code, answer.content_type) == (200, "application/json")
    assert answer.json == {
        "status": {"secondsLeft": 20},
        "children": [CONFIG_MAP],
        "resyncAfterSeconds": 30.0,
    }


def test_finalize_says_whether_it_is_done(client: FlaskClient) -> None:
    answer = client.post("/stub/finalize", data=call(finalizing=True), headers=bearer())
    assert answer.json == {
        "status": {"at": "2026-01-02T03:04:05+00:00"},
        "children": [],
        "finalized": True,
    }


def test_customize_answers_its_rules_without_asking_for_the_world() -> None:
    client = make(world=no_world).test_client()
    answer = client.post("/stub/customize", data=call(), headers=bearer())
    assert answer.json == {
        "relatedResources": [
            {"apiVersion": "v1", "resource": "configmaps", "namespace": "a", "names": ["in"]}
        ]
    }


def test_the_same_call_is_answered_with_the_same_bytes(client: FlaskClient) -> None:
    answers = {client.post("/stub/sync", data=call(), headers=bearer()).data for _ in range(3)}
    assert len(answers) == 1


@pytest.mark.parametrize("token", [TOKEN, OTHER_TOKEN])
def test_each_of_several_tokens_is_good(client: FlaskClient, token: str) -> None:
    assert client.post("/stub/sync", data=call(), headers=bearer(token)).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(None, id="none"),
        pytest.param("Bearer wrong", id="wrong"),
        pytest.param(f"Basic {TOKEN}", id="other-scheme"),
        pytest.param("Bearer", id="no-token"),
        pytest.param("Bearer ", id="empty-token"),
        pytest.param(f"Bearer {TOKEN[:-1]}", id="prefix"),
        pytest.param(f"Bearer {TOKEN}x", id="longer"),
        pytest.param("Bearer \u00fc\u00fc", id="no-ascii"),
    ],
)
@pytest.mark.parametrize("hook", ["sync", "finalize", "customize"])
def test_without_a_good_token_nothing_is_even_parsed(
    client: FlaskClient, header: str | None, hook: str
) -> None:
    headers = {"Authorization": header} if header is not None else {}
    answer = client.post(f"/stub/{hook}", data=b"not JSON", headers=headers)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.json is not None
    assert answer.json["code"] == "Unauthorized"


def test_an_empty_token_file_lets_nobody_in() -> None:
    app = create_app([Stub()], services, tokens=lambda: [b""], ready=bool, metrics=Metrics())
    answer = app.test_client().post("/stub/sync", data=call(), headers=bearer(""))
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/", 404, "NotFound"),
        ("POST", "/other/sync", 404, "NotFound"),
        ("POST", "/stub", 404, "NotFound"),
        ("POST", "/stub/sync/", 404, "NotFound"),
        ("POST", "//stub/sync", 404, "NotFound"),
        ("POST", "/stub//sync", 404, "NotFound"),
        ("POST", "/stub/replay", 404, "NotFound"),
        ("GET", "/static/x", 404, "NotFound"),
        ("GET", "/stub/sync", 405, "MethodNotAllowed"),
        ("PUT", "/stub/finalize", 405, "MethodNotAllowed"),
        ("OPTIONS", "/stub/customize", 405, "MethodNotAllowed"),
        ("POST", "/healthz", 405, "MethodNotAllowed"),
    ],
)
def test_only_the_exact_paths_and_methods_are_served(
    client: FlaskClient, method: str, path: str, status: int, code: str
) -> None:
    answer = client.open(path, method=method, data=call(), headers=bearer())
    assert (answer.status_code, "Location" in answer.headers) == (status, False)
    assert answer.json is not None
    assert (set(answer.json), answer.json["code"]) == ({"code", "requestId"}, code)


def test_a_wrong_method_is_told_the_right_one(client: FlaskClient) -> None:
    assert client.get("/stub/sync").headers["Allow"] == "POST"


@pytest.mark.parametrize(
    ("hook", "body"),
    [
        pytest.param("sync", b"", id="empty"),
        pytest.param("sync", b"\xff\xfe{", id="no-text"),
        pytest.param("sync", b"[" * 100_000, id="too-deep"),
        pytest.param("sync", b"[]", id="list"),
        pytest.param("sync", b"{}", id="no-parent"),
        pytest.param("sync", b'{"parent": {"metadata": {}}}', id="no-name"),
        pytest.param("customize", b'{"parent": 1}', id="customize-parent-number"),
        pytest.param("sync", call(finalizing=True), id="finalizing-in-sync"),
        pytest.param("finalize", call(), id="live-object-in-finalize"),
        pytest.param("customize", call(finalizing=True), id="finalizing-in-customize"),
    ],
)
def test_a_body_of_another_shape_is_400_and_nothing_happens(hook: str, body: bytes) -> None:
    client = make(world=no_world).test_client()
    answer = client.post(f"/stub/{hook}", data=body, headers=bearer())
    assert answer.status_code == 400
    assert answer.json is not None
    assert (set(answer.json), answer.json["code"]) == ({"code", "requestId"}, "BadRequest")


@pytest.mark.parametrize(
    ("hook", "do"),
    [
        ("sync", "raise"),
        ("sync", "effect-error"),
        ("sync", "null-child"),
        ("sync", "secret-child"),
        ("sync", "twice"),
        ("customize", "null-rule"),
    ],
)
def test_a_bug_is_a_500_of_a_code_and_a_request_id(hook: str, do: str) -> None:
    client = make().test_client()
    with capture_logs(LOG_CONTEXT) as logs:
        answer = client.post(f"/stub/{hook}", data=call(do), headers=bearer())
    assert answer.status_code == 500
    assert answer.json == {"code": "InternalError", "requestId": logs[-1]["request_id"]}
    (line,) = logs
    assert (line["log_level"], isinstance(line["exc_info"], Exception)) == ("error", True)


def test_a_bug_gives_its_place_back() -> None:
    client = make(limits=Limits(in_flight=1)).test_client()
    tried = [
        client.post("/stub/sync", data=call(do), headers=bearer()).status_code
        for do in ("raise", "null-child", "", "effect-error", "")
    ]
    assert tried == [500, 500, 200, 500, 200]


def test_one_call_too_many_is_sent_away_while_the_rest_is_served() -> None:
    entered, release = threading.Semaphore(0), threading.Event()

    def wait() -> None:
        entered.release()
        assert release.wait(30)

    app = make(wait, limits=Limits(in_flight=3))

    def post(hook: str, do: str = "", *, finalizing: bool = False) -> tuple[int, str | None]:
        body = call(do, finalizing=finalizing)
        answer = app.test_client().post(f"/stub/{hook}", data=body, headers=bearer())
        return answer.status_code, answer.headers.get("Retry-After")

    with ThreadPoolExecutor(3) as pool:
        blocked = [pool.submit(post, "sync", "wait") for _ in range(3)]
        assert all(entered.acquire(timeout=30) for _ in blocked)
        assert post("sync") == (429, "2")
        assert post("finalize", finalizing=True) == (429, "2")
        assert post("customize") == (200, None)
        probes = [app.test_client().get(path).status_code for path in ("/healthz", "/readyz")]
        assert probes == [200, 200]
        page = app.test_client().get("/metrics").text
        release.set()
        assert [each.result(30) for each in blocked] == [(200, None)] * 3
    assert "hooks_in_flight 3.0" in page
    assert 'hooks_rejected_total{hook="sync",resource="stub"} 1.0' in page
    assert post("sync") == (200, None)


def test_a_large_request_is_answered(client: FlaskClient) -> None:
    answer = client.post("/stub/sync", data=call(filler="x" * 10_000_000), headers=bearer())
    assert answer.status_code == 200


@pytest.mark.parametrize(("ready", "status"), [(True, 200), (False, 503)])
def test_readiness_is_what_the_server_says(ready: bool, status: int) -> None:  # noqa: FBT001  a table
    client = make(ready=ready).test_client()
    assert [client.get(path).status_code for path in ("/healthz", "/readyz")] == [200, status]


def test_calls_are_counted_by_resource_hook_and_result(client: FlaskClient) -> None:
    client.post("/stub/sync", data=call(), headers=bearer())
    client.post("/stub/sync", data=call("raise"), headers=bearer())
    page = client.get("/metrics")
    assert page.content_type.startswith("text/plain")
    for result in ("OK", "InternalError"):
        labels = f'hook="sync",resource="stub",result="{result}"'
        assert f"hooks_duration_seconds_count{{{labels}}} 1.0" in page.text
