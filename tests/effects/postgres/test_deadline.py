"""Time: a call ends with its request, whatever the server does."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace

import psycopg

from hooks.core.deadline import Deadline
from hooks.core.errors import Blocked, OutOfTime, Unavailable
from hooks.effects.ports import Row
from tests.effects.postgres.conftest import Clock, World, ended, known, tenant
from tests.effects.postgres.relay import Relay

SILENT = Unavailable("PostgreSQL", "no answer in time while logging in")
STATEMENT = Unavailable(
    "PostgreSQL", "no answer in time; what was asked may still be done by the server"
)
NOT_ASKED = OutOfTime("PostgreSQL", "not asked, the time of this call was spent")


def test_a_server_that_accepts_and_never_answers_does_not_hold_us(world: World) -> None:
    with Relay(None) as relay:
        endpoint = replace(world.endpoint, port=relay.port)
        begun = time.monotonic()
        assert ended(lambda: world.bind(Deadline(3.2)).log_in(endpoint, world.login)) == SILENT
        assert time.monotonic() - begun < 4
        begun = time.monotonic()
        assert ended(lambda: world.bind(Deadline(1.2)).certificate(endpoint)) == Unavailable(
            "PostgreSQL", "no answer in time while connecting"
        )
        assert time.monotonic() - begun < 2


def test_a_server_that_goes_silent_in_a_session_does_not_hold_us(world: World) -> None:
    clock = Clock()
    with Relay(world.server.port) as relay:
        endpoint = replace(world.endpoint, port=relay.port)
        servers = world.bind(Deadline(20, clock=clock))
        with servers.administer(endpoint, world.login) as admin:
            relay.go_silent()
            clock.now = 18.8
            begun = time.monotonic()
            assert ended(lambda: admin.role("postgres")) == STATEMENT
            assert time.monotonic() - begun < 2
            assert isinstance(ended(lambda: admin.role("postgres")), Unavailable)


def test_nothing_is_begun_with_too_little_time_left(world: World) -> None:
    clock = Clock()
    servers = world.bind(Deadline(20, clock=clock))
    with servers.administer(world.endpoint, world.login) as admin:
        clock.now = 17.5
        assert ended(lambda: servers.log_in(world.endpoint, world.login)) == NOT_ASKED
        assert known(admin.role("postgres")).elevated is True
        clock.now = 19.5
        assert ended(lambda: admin.role("postgres")) == NOT_ASKED
        assert ended(lambda: servers.certificate(world.endpoint)) == NOT_ASKED


def test_a_transaction_that_runs_out_of_time_leaves_nothing(
    world: World, row: Row, sessions: ExitStack
) -> None:
    clock = Clock()
    servers = world.bind(Deadline(20, clock=clock))
    admin = sessions.enter_context(servers.administer(world.endpoint, world.login))
    admin.migrate()
    admin.insert_row(row)
    blocker = _blocker(world, sessions)
    blocker.execute("LOCK TABLE pg_authid IN SHARE MODE")
    clock.now = 18.8
    assert ended(lambda: admin.create_role(row.uid, tenant(row))) == STATEMENT
    blocker.execute("ROLLBACK")
    with world.bind().administer(world.endpoint, world.login) as second:
        assert second.role(row.role) is None
        assert second.row(row.uid) == row


def test_a_lock_that_stays_taken_ends_a_statement(
    world: World, row: Row, sessions: ExitStack
) -> None:
    admin = sessions.enter_context(world.bind().administer(world.endpoint, world.login))
    admin.migrate()
    admin.insert_row(row)
    blocker = _blocker(world, sessions)
    blocker.execute("LOCK TABLE pg_authid IN SHARE MODE")
    assert ended(lambda: admin.create_role(row.uid, tenant(row))) == Blocked(
        "PostgreSQL", "cannot create the role: another session holds a lock", code="55P03"
    )
    blocker.execute("ROLLBACK")
    assert ended(lambda: admin.create_role(row.uid, tenant(row))) is None


def test_a_database_that_was_cut_off_is_finished_under_the_lock(
    world: World, row: Row, sessions: ExitStack
) -> None:
    clock = Clock()
    servers = world.bind(Deadline(20, clock=clock))
    admin = sessions.enter_context(servers.administer(world.endpoint, world.login))
    watcher = sessions.enter_context(world.bind().administer(world.endpoint, world.login))
    admin.migrate()
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    assert admin.try_lock(row.uid)
    blocker = _blocker(world, sessions)
    blocker.execute("LOCK TABLE pg_database IN SHARE MODE")
    clock.now = 18.8
    assert ended(lambda: admin.create_database(row.database, owner=row.role)) == STATEMENT
    assert watcher.try_lock(row.uid) is False
    assert watcher.database(row.database) is None
    blocker.execute("ROLLBACK")
    while not watcher.try_lock(row.uid):
        assert watcher.database("nonesuch") is None  # ends with the watcher's deadline
    made = known(watcher.database(row.database))
    assert made.owner_oid == known(watcher.role(row.role)).oid


def test_no_limit_of_the_server_cuts_a_database_off(
    world: World, row: Row, sessions: ExitStack
) -> None:
    world.sql("ALTER ROLE {} SET transaction_timeout = 1500", world.login.username)
    try:
        admin = sessions.enter_context(world.bind().administer(world.endpoint, world.login))
    finally:
        world.sql("ALTER ROLE {} RESET transaction_timeout", world.login.username)
    admin.migrate()
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    world.sql("ALTER DATABASE template0 ALLOW_CONNECTIONS true")
    try:
        _blocker(world, sessions, database="template0")
        # PostgreSQL waits five seconds for the template, more than a plain statement may take.
        assert ended(lambda: admin.create_database(row.database, owner=row.role)) == Blocked(
            "PostgreSQL", "cannot create the database: it is in use", code="55006"
        )
    finally:
        world.sql("ALTER DATABASE template0 ALLOW_CONNECTIONS false")


def _blocker(
    world: World, sessions: ExitStack, *, database: str = "postgres"
) -> psycopg.Connection:
    """A superuser's session inside a transaction."""
    parameters = world.server.parameters(world.server.superuser, database=database)
    connection = psycopg.connect("", **parameters)  # type: ignore[arg-type]  # all are text
    sessions.callback(connection.close)
    return connection
