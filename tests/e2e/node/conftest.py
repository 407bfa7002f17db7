"""One node with everything installed on it, which the tests share.

On the node: the hooks, from an image made of the Dockerfile. Beside it: PostgreSQL and OpenBao.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from tests.e2e.node import images, traces
from tests.e2e.node.deployment import Deployed, deployed
from tests.e2e.node.node import Node
from tests.e2e.node.places import ADDRESS, PODS

_POSTGRES = "postgresql.example.internal"
_HBA = ("host all all 127.0.0.1/32 scram-sha-256", f"host all all {PODS} scram-sha-256")


@pytest.fixture(scope="session")
def archives() -> list[Path]:
    return images.build_all()


@pytest.fixture(scope="session")
def node(archives: list[Path]) -> Iterator[Node]:
    before = traces.seen()
    with Node.start(archives) as started:
        yield started
    assert traces.seen() == before


@pytest.fixture(scope="session")
def postgres(
    node: Node, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PostgresServer]:
    """A server that pods reach."""
    certificate = authority.issue("postgres-node", dns=[_POSTGRES], ips=["127.0.0.1", ADDRESS])
    directory = tmp_path_factory.mktemp("postgres")
    with PostgresServer.start(directory, authority, certificate=certificate, hba=_HBA) as server:
        node.expose(server.port)
        server.host, server.hostaddr = _POSTGRES, ADDRESS
        yield server


@pytest.fixture(scope="session")
def openbao(
    node: Node, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenBaoServer]:
    """A server that pods reach."""
    addresses = ["127.0.0.1", ADDRESS]
    certificate = authority.issue("openbao-node", dns=["localhost"], ips=addresses)
    directory = tmp_path_factory.mktemp("openbao")
    with OpenBaoServer.start(directory, authority, certificate=certificate) as server:
        node.expose(server.port)
        server.address = f"https://{ADDRESS}:{server.port}"
        yield server


@pytest.fixture(scope="session")
def hooks(
    node: Node,
    authority: Authority,
    postgres: PostgresServer,
    openbao: OpenBaoServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployed]:
    directory = tmp_path_factory.mktemp("installation")
    with deployed(directory, node, authority, postgres, openbao) as installation:
        yield installation
