"""What the reader makes of API servers that fail, how it logs in, and that it tells no secret."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError, Misconfigured, OutOfTime, Refused, Unavailable
from hooks.effects.kubernetes import connect
from hooks.effects.ports.kubernetes import TENANTS, Kubernetes
from tests.effects.kubernetes.conftest import TOKEN, Bare, Reply, Server, kubeconfig, status

SYSTEM = "Kubernetes"
GET = "get postgresqltenants.database.ddupan.top in namespace shop"
NOT_SERVED = Misconfigured(
    SYSTEM, "the kind postgresqltenants.database.ddupan.top is not installed", code="404"
)
BUSY = "it cannot answer now"
NO_CONNECTION = Unavailable(SYSTEM, "no connection")


def failure(kubernetes: Kubernetes) -> EffectError:
    with pytest.raises(EffectError) as raised:
        kubernetes.get(TENANTS, "orders", "shop")
    return raised.value


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(Reply(404, body="404 page not found\n"), NOT_SERVED, id="no-such-path"),
        pytest.param(status(404, "NotFound"), NOT_SERVED, id="no-details"),
        pytest.param(
            status(404, "NotFound", name="another", kind="postgresqltenants"),
            NOT_SERVED,
            id="another-name",
        ),
        pytest.param(Reply(500), Unavailable(SYSTEM, BUSY, code="500"), id="internal-error"),
        pytest.param(
            Reply(503, body="no endpoints"), Unavailable(SYSTEM, BUSY, code="503"), id="no-backend"
        ),
        pytest.param(Reply(504), Unavailable(SYSTEM, BUSY, code="504"), id="gateway-time-out"),
        pytest.param(
            status(401, "Unauthorized"),
            Refused(SYSTEM, "the token of the hooks is not accepted", code="401"),
            id="unknown-token",
        ),
        pytest.param(
            Reply(200, body="<html>"),
            Misconfigured(SYSTEM, f"no usable answer to {GET}", code="200"),
            id="no-api-server",
        ),
        pytest.param(
            status(400, "BadRequest"),
            Misconfigured(SYSTEM, f"no usable answer to {GET}", code="400"),
            id="bad-request",
        ),
    ],
)
def test_a_fault_is_told_in_our_words(
    beside: Kubernetes, bare: Bare, reply: Reply, expected: EffectError
) -> None:
    bare.replies = [reply]
    assert failure(beside) == expected


@pytest.mark.parametrize(
    ("header", "expected"), [("7", 7.0), ("0", None), ("soon", None), ("²", None)]
)
def test_a_server_may_say_how_long_to_wait(
    beside: Kubernetes, bare: Bare, header: str, expected: float | None
) -> None:
    bare.replies = [Reply(429, {"Retry-After": header.encode().decode("latin-1")})]
    error = failure(beside)
    assert (error, error.retry_after) == (Unavailable(SYSTEM, BUSY, code="429"), expected)


def test_a_redirect_is_not_followed(beside: Kubernetes, bare: Bare) -> None:
    elsewhere = Bare()
    elsewhere.replies = [Reply()]
    bare.replies = [Reply(307, {"Location": f"{elsewhere.address}/any"})]
    error = failure(beside)
    elsewhere.close()
    expected = Misconfigured(SYSTEM, f"no usable answer to {GET}", code="307")
    assert (error, elsewhere.seen) == (expected, [])


def test_a_server_that_never_answers_costs_the_time_that_is_left(
    bare: Bare, tmp_path: Path
) -> None:
    bare.replies = [Reply(None)]
    api = connect(kubeconfig(tmp_path / "bare", bare.address, {"token": TOKEN}))
    began = time.monotonic()
    assert failure(api.bind(Deadline(1.2))) == Unavailable(SYSTEM, "no answer in time")
    assert 1.0 < time.monotonic() - began < 2.0


def test_nothing_is_asked_without_time(server: Server, tmp_path: Path) -> None:
    api = connect(server.kubeconfig(tmp_path / "kubeconfig", TOKEN))
    expected = OutOfTime(SYSTEM, "not asked, the time of this call was spent")
    assert failure(api.bind(Deadline(0.5))) == expected


def test_a_list_without_its_last_page_is_no_result(beside: Kubernetes, bare: Bare) -> None:
    page = {"kind": "List", "metadata": {"continue": "more"}, "items": [{"metadata": {}}]}
    bare.replies = [Reply(body=json.dumps(page)), Reply(500)]
    with pytest.raises(EffectError) as raised:
        beside.list(TENANTS)
    assert raised.value == Unavailable(SYSTEM, BUSY, code="500")


def test_a_server_that_knows_only_whole_objects_gives_the_same_list(
    beside: Kubernetes, bare: Bare
) -> None:
    item = {"kind": "PostgreSQLTenant", "metadata": {"name": "orders"}, "spec": {"size": 1}}
    bare.replies = [Reply(body=json.dumps({"kind": "List", "items": [item]}))]
    assert beside.list(TENANTS) == [{"metadata": {"name": "orders"}}]


def test_what_is_no_list_is_no_empty_list(beside: Kubernetes, bare: Bare) -> None:
    bare.replies = [Reply(body='{"kind": "Status"}')]
    with pytest.raises(EffectError) as raised:
        beside.list(TENANTS)
    assert raised.value == Misconfigured(
        SYSTEM, "no list came back from list postgresqltenants.database.ddupan.top"
    )


def test_lists_ask_for_no_version(beside: Kubernetes, bare: Bare) -> None:
    bare.replies = [Reply(body='{"items": []}')]
    beside.list(TENANTS, fields={"spec.instanceRef": "main"})
    path = "/apis/database.ddupan.top/v1alpha1/postgresqltenants"
    assert bare.seen == [f"{path}?limit=500&fieldSelector=spec.instanceRef%3Dmain"]


@pytest.mark.parametrize("code", [200, 307, 400, 401, 403, 404, 410, 429, 500])
@pytest.mark.parametrize("read", ["get", "secret", "list"])
def test_no_text_holds_a_secret(
    bare: Bare, tmp_path: Path, caplog: pytest.LogCaptureFixture, code: int, read: str
) -> None:
    caplog.set_level("DEBUG")
    api = connect(kubeconfig(tmp_path / "bare", bare.address, {"token": TOKEN}))
    kubernetes = api.bind(Deadline())
    body = {"message": TOKEN, "metadata": {"name": "login"}, "data": {"password": 7, "x": TOKEN}}
    bare.replies = [Reply(code, {"X-Echo": TOKEN}, json.dumps(body))]
    reads: dict[str, Callable[[], object]] = {
        "get": lambda: kubernetes.get(TENANTS, "orders", "shop"),
        "secret": lambda: kubernetes.secret("shop", "login"),
        "list": lambda: kubernetes.list(TENANTS),
    }
    with pytest.raises(EffectError) as raised:
        reads[read]()
    texts = [repr(raised.value), repr(api), repr(kubernetes), caplog.text]
    assert TOKEN not in "".join(texts + traceback.format_exception(raised.value))
