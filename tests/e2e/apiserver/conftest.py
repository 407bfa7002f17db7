"""One control plane and one installation, which the tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from tests.e2e.apiserver import control_plane as control_planes
from tests.e2e.apiserver.control_plane import ControlPlane
from tests.e2e.apiserver.installation import Installation, install, prepared
from tests.e2e.apiserver.operation import Operation, operating


@pytest.fixture(scope="session")
def control_plane(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[ControlPlane]:
    with control_planes.started(tmp_path_factory.mktemp("control-plane"), authority) as started:
        yield started


@pytest.fixture(scope="session")
def installation(
    tmp_path_factory: pytest.TempPathFactory,
    control_plane: ControlPlane,
    postgres: PostgresServer,
    openbao: OpenBaoServer,
) -> Installation:
    directory = tmp_path_factory.mktemp("installation")
    made = prepared(directory, control_plane, postgres, openbao)
    install(made)
    return made


@pytest.fixture(scope="session")
def operation(installation: Installation) -> Iterator[Operation]:
    with operating(installation) as at_work:
        yield at_work


@pytest.fixture(scope="session")
def shared(operation: Operation) -> Operation:
    """An installation at work, with the Instance `shared`."""
    operation.administrator.apply(*operation.installation.sample("postgresqlinstance-minimal"))
    operation.becomes_ready("pginstance", "shared")
    return operation
