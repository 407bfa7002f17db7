"""A server process, and a client for it."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hooks.sandbox.processes import free_port
from tests.app.stubs import TOKEN, bearer, call

ROOT = Path(__file__).parents[2]


def until(true: Callable[[], bool], *, seconds: float = 30.0) -> None:
    """Wait for something that another process does."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while not true():
        assert time.monotonic() < end, "it did not happen"
        pause.wait(0.01)


@dataclass(frozen=True)
class Server:
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    directory: Path
    tls: ssl.SSLContext | None = None

    @contextmanager
    def connected(self) -> Iterator[http.client.HTTPConnection]:
        where, port = "127.0.0.1", self.port
        connection = (
            http.client.HTTPSConnection(where, port, timeout=30, context=self.tls)
            if self.tls
            else http.client.HTTPConnection(where, port, timeout=30)
        )
        with closing(connection):
            yield connection

    def get(self, path: str) -> tuple[int, str]:
        with self.connected() as connection:
            return request(connection, "GET", path)

    def post(self, hook: str, body: bytes) -> tuple[int, str]:
        with self.connected() as connection:
            return request(connection, "POST", f"/stub/{hook}", body)

    def blocked(self, pool: ThreadPoolExecutor, count: int) -> tuple[Path, list[Future[Any]]]:
        """Begin calls that end when somebody opens and closes the returned pipe."""
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        body = call("fifo", path=str(pipe))
        calls = [pool.submit(self.post, "sync", body) for _ in range(count)]
        until(lambda: f"hooks_in_flight {count}.0" in self.get("/metrics")[1])
        return pipe, calls

    def worker(self) -> int:
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return int(children.split()[0])

    def resident_kib(self) -> int:
        status = Path(f"/proc/{self.worker()}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def request(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None
) -> tuple[int, str]:
    connection.request(method, path, body, bearer() if body is not None else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def environ(directory: Path) -> dict[str, str]:
    """Return settings that are good for a server on loopback."""
    token = directory / "hook-token"
    token.write_text(TOKEN)
    return {
        "HOOK_TOKEN_FILES": str(token),
        "CONTROLLER_NAMESPACE": "database-hooks",
        "OPENBAO_ADDRESS": "http://127.0.0.1:1",
        "OPENBAO_AUTH": "token",
        "OPENBAO_TOKEN_FILE": str(token),
        "SECRET_STORE_NAME": "openbao",
    }


@contextmanager
def running(
    directory: Path,
    module: str = "tests.app.stub_server",
    *,
    tls: ssl.SSLContext | None = None,
    **settings: str,
) -> Iterator[Server]:
    """Run a server until the block is left."""
    port = free_port()
    env: Mapping[str, str] = {
        **environ(directory),
        "LISTEN_ADDRESS": f"127.0.0.1:{port}",
        **settings,
    }
    log = directory / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *module.split()], cwd=ROOT, env=env, stdout=output, stderr=output
        )
    server = Server(process, port, log, directory, tls)
    try:
        until(lambda: _answers(server))
        yield server
    finally:
        process.terminate()
        process.wait(60)


def _answers(server: Server) -> bool:
    assert server.process.poll() is None, server.log.read_text()
    try:
        return server.get("/readyz")[0] == 200
    except OSError:
        return False
