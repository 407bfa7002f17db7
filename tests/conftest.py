"""The real servers that tests share: started once, on loopback, with TLS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer

# How long random sequences are looked for; --hypothesis-profile=e2e looks longer.
settings.register_profile("test", max_examples=50)
settings.register_profile("e2e", max_examples=200)
settings.load_profile("test")


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def postgres(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PostgresServer]:
    """A server that logs every statement, so that its log can be searched for passwords."""
    directory: Path = tmp_path_factory.mktemp("postgres")
    with PostgresServer.start(directory, authority, settings={"log_statement": "all"}) as server:
        yield server


@pytest.fixture(scope="session")
def openbao(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenBaoServer]:
    with OpenBaoServer.start(tmp_path_factory.mktemp("openbao"), authority) as server:
        yield server
