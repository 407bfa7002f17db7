"""The real server process: limits, stopping, memory, TLS."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hooks.sandbox.certificates import Authority
from tests.app.running import Server, request, running, until
from tests.app.stubs import SECRET, TOKEN, bearer, call

OK = (200, '{"children":[],"status":{"read":""}}')


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path) as started:
        yield started


def test_24_calls_in_flight_are_served_and_the_25th_is_sent_away_at_once(server: Server) -> None:
    with ThreadPoolExecutor(24) as pool:
        pipe, blocked = server.blocked(pool, 24)
        with server.connected() as connection:
            connection.request("POST", "/stub/sync", call(filler="x" * 10_000_000), bearer())
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Retry-After"]) == (429, "2")
            answer.read()
            assert request(connection, "GET", "/healthz")[0] == 200
        assert [server.get(path)[0] for path in ("/healthz", "/readyz", "/metrics")] == [200] * 3
        assert server.post("customize", call())[0] == 200
        pipe.write_text("")
        assert [each.result(30) for each in blocked] == [OK] * 24
    assert server.post("sync", call())[0] == 200


def test_what_is_in_flight_when_the_server_is_stopped_is_still_answered(server: Server) -> None:
    with ThreadPoolExecutor(1) as pool, server.connected() as kept:
        assert request(kept, "GET", "/readyz")[0] == 200
        pipe, blocked = server.blocked(pool, 1)
        server.process.terminate()
        until(lambda: refused(server))
        # On a connection that is open already, a stopping server says that it is one.
        assert request(kept, "GET", "/readyz")[0] == 503
        pipe.write_text("")
        assert blocked[0].result(30) == OK
    assert server.process.wait(30) == 0


def refused(server: Server) -> bool:
    try:
        server.get("/healthz")
    except OSError:
        return True
    return False


def test_a_connection_is_kept_and_used_again(server: Server) -> None:
    bodies = (call(), b"not JSON", call("raise"), call())
    answers, ports = [], set()
    with server.connected() as connection:
        for body in bodies:
            answers.append(request(connection, "POST", "/stub/sync", body)[0])
            ports.add(connection.sock.getsockname()[1])
    assert (answers, len(ports)) == ([200, 400, 500, 200], 1)


def test_a_10_mb_request_is_answered(server: Server) -> None:
    body = call(items=[{"name": f"item-{number}", "text": "x" * 80} for number in range(90_000)])
    assert len(body) > 10_000_000
    assert server.post("sync", body)[0] == 200


def test_the_log_is_json_alone_and_holds_no_token_and_no_body(server: Server) -> None:
    server.post("sync", call())
    server.post("sync", call("raise"))
    server.post("sync", b"{" + SECRET.encode())
    hooks = [line["result"] for line in server.lines() if line["event"] == "hook"]
    assert hooks == ["OK", "InternalError", "BadRequest"]
    assert "gunicorn.error" in {line["logger"] for line in server.lines()}
    text = server.log.read_text()
    assert TOKEN not in text
    # The one place where it may be is the traceback of a bug that quotes it.
    assert [line for line in text.splitlines() if SECRET in line and "exception" not in line] == []


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("Content-Length: 1000", "the body is not JSON"),
        ("Transfer-Encoding: chunked", "the body did not arrive"),
    ],
)
def test_a_body_that_ends_early_is_no_bug_of_ours(
    server: Server, header: str, problem: str
) -> None:
    head = (
        f"POST /stub/sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"{header}\r\n\r\n{{"
    )
    with socket.create_connection(("127.0.0.1", server.port), 30) as half:
        half.sendall(head.encode())
        half.shutdown(socket.SHUT_WR)
        assert b" 400 " in half.recv(1000)
    assert server.lines()[-1]["problem"] == problem


def test_the_worker_stays_small(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    def many(_index: int) -> set[int]:
        with server.connected() as connection:
            return {request(connection, "POST", "/stub/sync", call())[0] for _ in range(250)}

    with ThreadPoolExecutor(8) as pool:
        assert set.union(*pool.map(many, range(8))) == {200}
    resident = server.resident_kib() / 1024
    with capsys.disabled():
        print(f"\nresident after 2,000 requests: {resident:.0f} MiB")  # noqa: T201  a figure to see
    assert resident < 120


def test_https_is_served_when_there_is_a_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    files = authority.issue("server", ips=["127.0.0.1"])
    trust = ssl.create_default_context(cafile=str(authority.ca_file))
    with running(
        tmp_path, tls=trust, TLS_CERT_FILE=str(files.cert), TLS_KEY_FILE=str(files.key)
    ) as server:
        with server.connected() as connection:
            answers = [request(connection, "POST", "/stub/sync", call())[0] for _ in range(2)]
        assert answers == [200, 200]
        with (
            pytest.raises((http.client.HTTPException, OSError)),
            replace(server, tls=None).connected() as plain,
        ):
            request(plain, "GET", "/healthz")


@pytest.mark.parametrize("tls", [False, True])
def test_a_peer_that_stops_in_the_middle_is_dropped(tmp_path: Path, *, tls: bool) -> None:
    files = Authority(tmp_path / "ca").issue("server", ips=["127.0.0.1"])
    settings = {"TLS_CERT_FILE": str(files.cert), "TLS_KEY_FILE": str(files.key)} if tls else {}
    trust = ssl.create_default_context(cafile=str(tmp_path / "ca" / "ca.pem")) if tls else None
    with running(tmp_path, "tests.app.stub_server 0.3", tls=trust, **settings) as server:
        # The beginning of a request, or of a handshake.
        beginning = b"\x16\x03" if tls else b"POST /stub/sync HTTP/1.1\r\nHost:"
        with socket.create_connection(("127.0.0.1", server.port), 20) as stalled:
            stalled.sendall(beginning)
            assert stalled.recv(1000) == b""
        with server.connected() as connection:
            body = call()
            connection.putrequest("POST", "/stub/sync")
            for name, value in {**bearer(), "Content-Length": str(len(body) + 1)}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            assert connection.getresponse().status == 400
        assert server.post("sync", call())[0] == 200
