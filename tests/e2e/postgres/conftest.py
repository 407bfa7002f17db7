"""The same tests on every version of PostgreSQL, and with both kinds of admin roles.

The servers run one after the other, each from its first test to its last; `only` says which tests
do not suit all of them. A test that drives the hooks asks for `server` and `version` alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from secrets import token_hex
from typing import cast

import pytest

from hooks.effects.ports import Login
from hooks.sandbox.certificates import Authority
from hooks.sandbox.postgres_server import PostgresServer
from tests.e2e.postgres.programs import programs, releases
from tests.e2e.postgres.suits import AdminKind, suits
from tests.effects.postgres.conftest import World, admin, row, sessions

__all__ = ["admin", "row", "sessions"]

pytest.register_assert_rewrite("tests.e2e.postgres.life")

# The contract names a role after how it gets in. The regular expressions for that need 16, so
# here these are groups, and `WorldOfVersion` makes the role a member.
_GROUPS = {"trusted": "trust", "clear": "password", "rejected": "reject", "hashed": "md5"}

HBA = (
    *(f"host all +{group} 127.0.0.1/32 {method}" for group, method in _GROUPS.items()),
    "host all all 127.0.0.1/32 scram-sha-256",
)


@dataclass(frozen=True)
class WorldOfVersion(World):
    """A registry that only this test uses, in a server of this version, with such an admin."""

    version: int
    admin_kind: AdminKind

    @property
    def login(self) -> Login:
        return self.superuser if self.admin_kind == "superuser" else super().login

    def sql(self, statement: str, *names: str, database: str = "postgres") -> list[object]:
        rows = super().sql(statement, *names, database=database)
        if statement.startswith("CREATE ROLE"):
            for group in _GROUPS:
                if names[0].startswith(f"{group}_"):
                    super().sql("GRANT {} TO {}", group, names[0])
        return rows


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wanted = suits(metafunc.function, metafunc.module)
    if "version" in metafunc.fixturenames:
        versions = [version for version in releases() if wanted.version(version)]
        metafunc.parametrize("version", versions, indirect=True, scope="session")
    if "admin_kind" in metafunc.fixturenames:
        metafunc.parametrize("admin_kind", wanted.kinds, indirect=True)


@pytest.fixture(scope="session")
def version(request: pytest.FixtureRequest) -> int:
    return cast("int", request.param)


@pytest.fixture
def admin_kind(request: pytest.FixtureRequest) -> AdminKind:
    return cast("AdminKind", request.param)


@pytest.fixture(scope="session")
def server(
    version: int, tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[PostgresServer]:
    with PostgresServer.start(
        tmp_path_factory.mktemp(f"postgres-{version}"),
        authority,
        settings={"log_statement": "all"},
        hba=HBA,
        programs=programs(version),
    ) as server:
        for group in _GROUPS:
            server.sql(f"CREATE ROLE {group}")
        yield server


@pytest.fixture
def world(server: PostgresServer, version: int, admin_kind: AdminKind) -> WorldOfVersion:
    return WorldOfVersion(server, f"registry_{token_hex(4)}", version, admin_kind)
