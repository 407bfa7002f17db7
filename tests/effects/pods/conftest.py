"""A server that trusts who comes, as PostgreSQL does inside its own container."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hooks.core.deadline import Deadline
from hooks.effects.pods.psql import Psql
from hooks.sandbox.certificates import Authority
from hooks.sandbox.postgres_server import PostgresServer
from tests.effects.pods.local import LocalContainer

APPLICATION = "init-sql-11111111-2222-3333-4444-555555555555"


@contextmanager
def trusting_server(authority: Authority, directory: Path) -> Iterator[PostgresServer]:
    """Start a server with a socket to which everybody may come, below the system's /tmp."""
    with tempfile.TemporaryDirectory(prefix="socket-") as sockets:
        Path(sockets).chmod(0o777)
        settings = {"unix_socket_directories": sockets}
        with PostgresServer.start(
            directory, authority, settings=settings, hba=["local all all trust"]
        ) as server:
            yield server


@pytest.fixture(scope="session")
def trusting(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PostgresServer]:
    with trusting_server(authority, tmp_path_factory.mktemp("trusting")) as server:
        yield server


@pytest.fixture
def container(trusting: PostgresServer) -> LocalContainer:
    return LocalContainer(trusting)


@pytest.fixture
def psql(container: LocalContainer) -> Psql:
    return Psql(container, Deadline(90), application=APPLICATION)
