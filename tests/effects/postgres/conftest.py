"""A real PostgreSQL with TLS for all tests; every test has a registry and names of its own."""

from __future__ import annotations

import secrets
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TypeVar

import pytest
from psycopg import sql

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError
from hooks.effects.ports import Admin, Endpoint, Login, Postgres, Row
from hooks.effects.postgres import PostgresServers
from hooks.sandbox.certificates import Authority
from hooks.sandbox.postgres_server import PostgresServer

# The first part of a role's name says how it gets in; regular expressions need PostgreSQL 16.
HBA = (
    "host all /^trusted_ 127.0.0.1/32 trust",
    "host all /^clear_ 127.0.0.1/32 password",
    "host all /^rejected_ 127.0.0.1/32 reject",
    "host all all 127.0.0.1/32 scram-sha-256",
)


T = TypeVar("T")


class Clock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class World:
    """A server, and a registry in it that only this test uses."""

    server: PostgresServer
    schema: str

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(
            host=self.server.host,
            hostaddr=self.server.hostaddr,
            port=self.server.port,
            database="postgres",
            ssl_mode="verify-full",
        )

    @property
    def login(self) -> Login:
        return Login(self.server.admin.name, self.server.admin.password)

    @property
    def superuser(self) -> Login:
        return Login(self.server.superuser.name, self.server.superuser.password)

    def servers(self, *, keepers: frozenset[str] = frozenset()) -> PostgresServers:
        return PostgresServers(ca_file=self.server.ca_file, schema=self.schema, keepers=keepers)

    def bind(self, deadline: Deadline | None = None) -> Postgres:
        return self.servers().bind(deadline or Deadline())

    def sql(self, statement: str, *names: str, database: str = "postgres") -> list[object]:
        """Run a statement as the superuser; its names are quoted, its one column returned."""
        composed = sql.SQL(statement).format(*map(sql.Identifier, names))
        return [row[0] for row in self.server.sql(composed, database=database)]

    def query(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        return self.server.sql(sql.SQL(statement), values)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[PostgresServer]:
    with PostgresServer.start(
        tmp_path_factory.mktemp("postgres"),
        authority,
        settings={"log_statement": "all"},
        hba=HBA,
    ) as server:
        yield server


@pytest.fixture
def world(server: PostgresServer) -> World:
    return World(server, f"registry_{secrets.token_hex(4)}")


@pytest.fixture
def sessions() -> Iterator[ExitStack]:
    """Closes what a test has opened."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def admin(world: World, sessions: ExitStack) -> Admin:
    """An admin session with an empty registry."""
    session = sessions.enter_context(world.bind().administer(world.endpoint, world.login))
    session.migrate()
    return session


@pytest.fixture
def row() -> Row:
    """A planned tenant whose names nobody else has."""
    return planned(f"shop_{secrets.token_hex(4)}")


def planned(database: str, role: str | None = None) -> Row:
    """A row with new identities; the role is named as the database if not said otherwise."""
    return Row(
        uid=str(uuid.uuid4()),
        instance_uid=str(uuid.uuid4()),
        instance_name="main",
        namespace="shop",
        name="orders",
        database=database,
        role=role or database,
        kv_path=f"postgres/shop/{database}",
        secret_name="orders-db",
    )


def tenant(row: Row) -> Login:
    return Login(row.role, f"password-of-{row.uid}")


def provide(admin: Admin, row: Row) -> Row:
    """Make the tenant's row, role and database, and return the row as it is then."""
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    admin.create_database(row.database, owner=row.role)
    admin.secure_database(row.uid, row.database)
    return known(admin.row(row.uid))


def inside(world: World, row: Row) -> Endpoint:
    return replace(world.endpoint, database=row.database)


def known(value: T | None) -> T:
    assert value is not None
    return value


def race(*actions: Callable[[], object]) -> list[EffectError | None]:
    """Begin all at the same moment and return how each ended."""
    start = threading.Barrier(len(actions))

    def run(action: Callable[[], object]) -> EffectError | None:
        start.wait(10)
        try:
            action()
        except EffectError as error:
            return error
        return None

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))


def ended(action: Callable[[], object]) -> EffectError | None:
    """Return how it ended."""
    return race(action)[0]
