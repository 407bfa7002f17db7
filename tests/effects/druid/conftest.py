"""The double for what a Druid does, and a bare socket for what no Druid would do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest

from hooks.core.deadline import Deadline
from hooks.effects.druid import DruidClusters
from hooks.effects.ports.druid import Cluster, Router
from hooks.effects.ports.server import Login
from hooks.sandbox.certificates import Authority
from hooks.sandbox.druid import DruidServer, User
from tests.effects.druid.contract import ADMIN, LOGINS, World

pytest.register_assert_rewrite(
    "tests.effects.druid.contract_login",
    "tests.effects.druid.contract_sql",
    "tests.effects.druid.contract_supervisors",
    "tests.effects.druid.contract_tasks",
)


class Raw:
    """A server that answers every connection with these bytes, one by one when it drips."""

    def __init__(self, answer: bytes, *, drips: bool = False) -> None:
        self._answer = answer
        self._closed = threading.Event()
        self._drips = drips
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(65536)
            if not self._drips:
                client.sendall(self._answer)
                return
            for byte in self._answer:
                client.sendall(bytes([byte]))
                self._closed.wait(0.02)


class Double(World):
    """The double under the contract: it goes on when somebody waits for it."""

    version = "33.0.0"

    def __init__(self, server: DruidServer) -> None:
        self._server = server

    def cluster(self, login: Login | None = ADMIN) -> Cluster:
        return DruidClusters().bind(Deadline()).cluster(Router(self._server.url), login)

    def until(self, good: Callable[[], bool]) -> None:
        if good():
            return
        for task in list(self._server.tasks.values()):
            if task.state == "RUNNING":
                self._server.tasks.succeed(task.id)
        self._server.supervisors.settle()
        assert good()

    def spoil(self, task_id: str, error: str, row: str) -> None:
        self._server.tasks.fail(task_id, error, parse_errors=[row], processed=1)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def server() -> Iterator[DruidServer]:
    with DruidServer() as server:
        yield server


@pytest.fixture
def cluster(server: DruidServer) -> Cluster:
    """The double without a login, as it comes."""
    return DruidClusters().bind(Deadline()).cluster(Router(server.url), None)


@pytest.fixture
def druid(server: DruidServer) -> World:
    """The double under the contract, with the contract's users."""
    server.conduct.users = {
        login.username: User(
            login.password,
            read=".*" if "reader" in kinds else "",
            write=".*" if "writer" in kinds else "",
            external="external" in kinds,
            config="admin" in kinds,
            state="admin" in kinds,
        )
        for login, kinds in LOGINS.items()
    }
    return Double(server)


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    """Somebody whose certificates nobody trusts."""
    return Authority(tmp_path / "stranger")
