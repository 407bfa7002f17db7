"""Real Druids, one after the other, each from its first test to its last.

A module says in RELEASES which ones its tests are for; all, if it says nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hooks.core.deadline import Deadline
from hooks.effects.druid import DruidClusters
from hooks.effects.ports import Login
from hooks.effects.ports.druid import Cluster, Router
from hooks.sandbox.certificates import Authority
from tests.e2e.druid import users
from tests.e2e.druid.kafka import KafkaBroker
from tests.e2e.druid.releases import SQL, STREAMING, Release
from tests.e2e.druid.server import DruidServer
from tests.e2e.druid.source import HeldSource
from tests.e2e.druid.specs import ROWS
from tests.e2e.druid.waiting import until
from tests.e2e.druid.world import IngestionWorld
from tests.effects.druid.contract import ADMIN, LOGINS, World

pytest.register_assert_rewrite(
    "tests.effects.druid.contract_login",
    "tests.effects.druid.contract_sql",
    "tests.effects.druid.contract_supervisors",
    "tests.effects.druid.contract_tasks",
)

_RIGHTS = {"reader": users.READS, "writer": users.WRITES, "external": users.READS_EXTERNAL}


class Real(World):
    """A real server under the contract."""

    def __init__(self, server: DruidServer) -> None:
        self.version = server.release.version
        self._url = server.url

    def cluster(self, login: Login | None = ADMIN) -> Cluster:
        return DruidClusters().bind(Deadline(600)).cluster(Router(self._url), login)

    def until(self, good: Callable[[], bool]) -> None:
        until(good)

    def spoil(self, task_id: str, error: str, row: str) -> None:
        """Do nothing: it finds out by itself."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        releases = getattr(metafunc.module, "RELEASES", (STREAMING, SQL))
        metafunc.parametrize(
            "server", releases, indirect=True, scope="session", ids=lambda one: one.version
        )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a Druid together, so that each is started once."""
    places = [place for place, item in enumerate(items) if _release(item) is not None]
    ours = sorted((items[place] for place in places), key=lambda item: str(_release(item)))
    for place, item in zip(places, ours, strict=True):
        items[place] = item


def _release(item: pytest.Item) -> str | None:
    """Return the version that a test is for; None for a test of another directory."""
    callspec = getattr(item, "callspec", None)
    release = callspec.params.get("server") if callspec else None
    return release.version if isinstance(release, Release) else None


@pytest.fixture(scope="session")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DruidServer]:
    release: Release = request.param
    directory = tmp_path_factory.mktemp(f"druid-{release.version}")
    with DruidServer.start(release, directory) as server:
        yield server


@pytest.fixture(scope="session")
def kafka(
    server: DruidServer,  # noqa: ARG001  it goes with its Druid
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def ingestions(
    server: DruidServer, authority: Authority, tmp_path: Path
) -> Iterator[IngestionWorld]:
    with IngestionWorld(server, authority, tmp_path) as world:
        yield world


@pytest.fixture
def datasource() -> str:
    """Name one that nobody has used."""
    return f"docks_{secrets.token_hex(4)}"


@pytest.fixture
def held() -> Iterator[HeldSource]:
    """Rows that are handed out when a test says so."""
    with HeldSource(ROWS) as source:
        yield source


@pytest.fixture(scope="session")
def druid(server: DruidServer) -> World:
    """A server under the contract, with the contract's users."""
    if server.release.authenticated:
        for login, kinds in LOGINS.items():
            users.add(server, login, *(_RIGHTS[kind] for kind in kinds & _RIGHTS.keys()))
    return Real(server)
