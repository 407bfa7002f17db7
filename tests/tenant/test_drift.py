"""Whatever an operator does to a Tenant on the server is reported, not undone, and never lost.

And a Delete finishes, or says what is in its way and finishes once that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import pq, sql
from psycopg.conninfo import make_conninfo

from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from tests.tenant.test_hostile import READY, Watched, database_of, role_of, unmistakable_admin


@pytest.fixture(scope="module", autouse=True)
def _admin(postgres: PostgresServer) -> Iterator[None]:
    with unmistakable_admin(postgres):
        yield


@pytest.fixture
def world(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[Watched]:
    with Watched(postgres, openbao, authority, tmp_path) as made:
        made.make_instance()
        yield made
        assert made.leaks() == []


@pytest.fixture
def root(world: Watched) -> Watched:
    """The same with an Instance "root", whose admin is a superuser."""
    world.make_superuser_instance()
    return world


# Attributes that somebody may have meant


@pytest.mark.parametrize(
    ("deed", "undo", "message"),
    [
        (
            "ALTER ROLE {me} NOLOGIN",
            "ALTER ROLE {me} LOGIN",
            "role 'NAME' is set to NOLOGIN: run ALTER ROLE ... LOGIN if unwanted",
        ),
        (
            "ALTER ROLE {me} VALID UNTIL '2001-01-01'",
            "ALTER ROLE {me} VALID UNTIL 'infinity'",
            (
                "role 'NAME' has expired (VALID UNTIL): run ALTER ROLE ... VALID UNTIL 'infinity'"
                " if unwanted"
            ),
        ),
        (
            "ALTER ROLE {me} CONNECTION LIMIT 0",
            "ALTER ROLE {me} CONNECTION LIMIT -1",
            "role 'NAME' has CONNECTION LIMIT 0: raise it with ALTER ROLE if unwanted",
        ),
        (
            "ALTER ROLE {me} CREATEDB",
            "ALTER ROLE {me} NOCREATEDB",
            (
                "role 'NAME' has more rights than a tenant may have: revoke them with ALTER ROLE"
                " if unwanted"
            ),
        ),
        (
            "ALTER ROLE {me} SUPERUSER",
            "ALTER ROLE {me} NOSUPERUSER",
            (
                "role 'NAME' has more rights than a tenant may have: revoke them with ALTER ROLE"
                " if unwanted"
            ),
        ),
        (
            "ALTER DATABASE {me} CONNECTION LIMIT 0",
            "ALTER DATABASE {me} CONNECTION LIMIT -1",
            "database 'NAME' has CONNECTION LIMIT 0: raise it with ALTER DATABASE if unwanted",
        ),
        (
            "ALTER DATABASE {me} ALLOW_CONNECTIONS false",
            "ALTER DATABASE {me} ALLOW_CONNECTIONS true",
            "database 'NAME' has ALLOW_CONNECTIONS false: undo it with ALTER DATABASE if unwanted",
        ),
        (
            "ALTER DATABASE {me} IS_TEMPLATE true",
            "ALTER DATABASE {me} IS_TEMPLATE false",
            (
                "database 'NAME' has IS_TEMPLATE true, so others may copy it: undo it with"
                " ALTER DATABASE if unwanted"
            ),
        ),
    ],
)
def test_an_attribute_that_was_set_is_reported_and_not_undone(
    world: Watched, deed: str, undo: str, message: str
) -> None:
    world.ready_tenant()
    world.operator(deed)
    before = database_of(world), role_of(world), world.credential()
    assert world.after() == ("False", "ProvisioningFailed", message)
    assert (database_of(world), role_of(world), world.credential()) == before
    world.operator(undo)
    assert world.after() == READY


def test_a_membership_that_the_admin_lost_is_taken_back(world: Watched) -> None:
    world.ready_tenant()
    admin = world.postgres.admin.name
    world.operator(f"REVOKE {{me}} FROM {admin} GRANTED BY {admin}")
    assert world.after() == READY
    assert world.asked("SELECT pg_has_role(%s, %s, 'SET')", admin, world.name) == [True]


def test_an_admin_that_may_not_help_itself_says_so(world: Watched) -> None:
    world.ready_tenant()
    admin = world.postgres.admin.name
    world.operator(f"REVOKE {{me}} FROM {admin} CASCADE")
    assert world.after() == (
        "False",
        "ProvisioningFailed",
        (
            "the admin role may not act as role 'NAME': PostgreSQL: cannot give the admin role its"
            " rights on the tenant's role: the role lacks the right to do so (42501)"
        ),
    )
    world.operator(f"GRANT {{me}} TO {admin} WITH ADMIN OPTION")
    assert world.after() == READY


# Another identity


@pytest.mark.parametrize(
    ("deed", "undo", "message"),
    [
        (
            "ALTER ROLE {me} RENAME TO {aside}",
            "ALTER ROLE {aside} RENAME TO {me}",
            "role 'NAME' was dropped by somebody: restore it, or delete this Tenant",
        ),
        (
            "ALTER DATABASE {me} RENAME TO {aside}",
            "ALTER DATABASE {aside} RENAME TO {me}",
            (
                "database 'NAME' was dropped by somebody: it is not created again empty; restore"
                " it, or delete this Tenant"
            ),
        ),
        (
            "ALTER DATABASE {me} OWNER TO postgres",
            "ALTER DATABASE {me} OWNER TO {me}",
            "database 'NAME' is not the one that was created for this Tenant, or has another owner",
        ),
    ],
)
def test_what_is_not_ours_any_more_is_a_conflict_until_it_is_put_back(
    world: Watched, deed: str, undo: str, message: str
) -> None:
    world.ready_tenant()
    world.operator(deed)
    before = everything(world)
    assert world.after() == ("False", "Conflict", message)
    world.wait(3600)
    assert world.after() == ("False", "Conflict", message)
    assert everything(world) == before
    world.operator(undo)
    assert world.after() == READY


def everything(world: Watched) -> object:
    """Return all that the server holds of the Tenant, under its own name or the other one."""
    return [
        (database_of(world, name), role_of(world, name))
        for name in (world.name, f"aside_{world.name}")
    ], world.credential()


@pytest.mark.parametrize(
    ("again", "message"),
    [
        ((), "role 'NAME' was dropped by somebody: restore it, or delete this Tenant"),
        (
            ("CREATE ROLE {me} LOGIN PASSWORD 'another'",),
            "role 'NAME' is not the one that was created for this Tenant",
        ),
    ],
)
def test_a_role_that_was_dropped_is_not_made_again(
    world: Watched, again: tuple[str, ...], message: str
) -> None:
    world.ready_tenant()
    world.operator("ALTER DATABASE {me} OWNER TO postgres", "DROP ROLE {me}", *again)
    before = everything(world)
    assert world.after() == ("False", "Conflict", message)
    assert everything(world) == before


# Event triggers; only a superuser can make them


def plant(world: Watched, event: str, body: str) -> None:
    """Make an event trigger that does this to everybody but the superuser."""
    world.operator(
        "CREATE FUNCTION public.meddle() RETURNS event_trigger LANGUAGE plpgsql AS $$"
        f" BEGIN IF session_user <> 'postgres' THEN {body}; END IF; END $$",
        f"CREATE EVENT TRIGGER meddle ON {event} EXECUTE FUNCTION public.meddle()",
        *(["ALTER EVENT TRIGGER meddle ENABLE ALWAYS"] if event == "login" else []),
        database=world.name,
    )


def uproot(world: Watched) -> None:
    world.operator(
        "DROP EVENT TRIGGER meddle",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND usename <> 'postgres'",
        database=world.name,
    )


RAISE = "RAISE EXCEPTION 'not for you'"
SLEEP = "PERFORM pg_catalog.pg_sleep(60)"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (RAISE, "cannot log in: the server refused (P0001)"),
        (SLEEP, "no answer in time while logging in"),
    ],
)
def test_a_login_trigger_is_reported_in_time(world: Watched, body: str, fault: str) -> None:
    world.ready_tenant()
    plant(world, "login", body)
    world.sync()
    assert world.says() == (
        "False",
        "ProvisioningFailed",
        f"database 'NAME': PostgreSQL: {fault}",
    )
    uproot(world)
    assert world.after() == READY


@pytest.mark.parametrize(
    ("body", "reason", "fault"),
    [
        (
            RAISE,
            "ProvisioningFailed",
            "cannot install extension hstore: the server refused (P0001)",
        ),
        (
            SLEEP,
            "DependencyUnavailable",
            "no answer in time; what was asked may still be done by the server",
        ),
    ],
)
def test_a_trigger_on_ddl_is_reported_in_time(
    world: Watched, body: str, reason: str, fault: str
) -> None:
    world.ready_tenant()
    plant(world, "ddl_command_end", body)
    world.edit(extensions=["hstore"])
    world.sync(wrap=lambda _services: world.services(7))
    assert world.says() == (
        "False",
        reason,
        f"installing extension hstore: PostgreSQL: {fault}",
    )
    uproot(world)
    assert world.after() == READY


# Extensions that only an administrator can install


def test_an_untrusted_extension_waits_for_an_administrator(world: Watched) -> None:
    world.ready_tenant()
    before = database_of(world), role_of(world)
    world.edit(extensions=["dblink"])
    assert world.after() == (
        "False",
        "ProvisioningFailed",
        (
            "installing extension dblink: PostgreSQL: cannot install extension dblink: it is not"
            " trusted, or needs one that is not; an administrator can install it (42501)"
        ),
    )
    assert (database_of(world), role_of(world)) == before
    world.session(world.login()).close()
    world.operator("CREATE EXTENSION dblink", database=world.name)
    assert world.after() == READY


def test_an_extension_that_is_there_already_is_accepted(world: Watched) -> None:
    world.ready_tenant()
    world.operator("CREATE EXTENSION earthdistance CASCADE", database=world.name)
    world.edit(extensions=["earthdistance"])
    assert world.after() == READY


def test_an_extension_whose_dependency_is_not_there_is_named(root: Watched) -> None:
    root.ready_tenant(instanceRef="root")
    root.edit(extensions=["hstore_plpython3u"])
    assert root.after() == (
        "False",
        "ProvisioningFailed",
        (
            "installing extension hstore_plpython3u: PostgreSQL: cannot install extension"
            " hstore_plpython3u: the server does not have it, or not in a usable form (0A000)"
        ),
    )
    assert root.inside("SELECT extname FROM pg_extension") == ["plpgsql"]
    root.edit(extensions=[])
    assert root.after() == READY


# Deletion


def left(world: Watched) -> list[object]:
    """Return what is left of the Tenant anywhere."""
    row = "SELECT state FROM tenant_registry.tenant WHERE name = %s"
    found = [database_of(world), role_of(world), world.asked(row, world.name)]
    return [*filter(None, found), *filter(None, [world.credential()])]


def test_sessions_of_the_owner_do_not_hold_a_delete_up(world: Watched) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    with ExitStack() as stack:
        sessions = [stack.enter_context(world.session(world.login())) for _ in range(5)]
        sessions[0].execute("BEGIN")
        sessions[0].execute("CREATE TABLE half_done (x int)")
        world.delete()
        assert world.settle() == {}
        for session in sessions:
            with pytest.raises(psycopg.OperationalError):
                session.execute("SELECT 1")
            session.close()
    assert left(world) == []


@contextmanager
def superusers_session(world: Watched) -> Iterator[None]:
    with world.session(world.postgres.superuser):
        yield


@contextmanager
def strangers_session(world: Watched) -> Iterator[None]:
    stranger = world.stranger()
    world.operator(f"GRANT CONNECT ON DATABASE {{me}} TO {stranger.name}")
    with world.session(stranger):
        yield


@contextmanager
def prepared_transaction(world: Watched) -> Iterator[None]:
    with world.session(world.login()) as session:
        session.execute("BEGIN")
        session.execute("CREATE TABLE half_done (x int)")
        session.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(world.name)))
    yield
    world.operator(f"ROLLBACK PREPARED '{world.name}'", database=world.name)


@contextmanager
def active_slot(world: Watched) -> Iterator[None]:
    create = "SELECT pg_create_logical_replication_slot(%s, 'test_decoding')"
    world.asked(create, world.name, database=world.name)
    parameters = world.postgres.parameters(world.postgres.superuser, database=world.name)
    walsender = pq.PGconn.connect(make_conninfo(**parameters, replication="database").encode())
    try:
        start = f'START_REPLICATION SLOT "{world.name}" LOGICAL 0/0'
        assert walsender.exec_(start.encode()).status == pq.ExecStatus.COPY_BOTH
        yield
    finally:
        walsender.finish()
    with world.session(world.postgres.superuser, "postgres") as session:
        session.execute("SET statement_timeout = '10s'")
        session.execute(
            sql.SQL(
                "DO $$ BEGIN WHILE EXISTS (SELECT FROM pg_replication_slots WHERE active AND"
                " slot_name = {}) LOOP PERFORM pg_sleep(0.02); END LOOP; END $$"
            ).format(sql.Literal(world.name))
        )


@contextmanager
def subscription(world: Watched) -> Iterator[None]:
    world.operator(
        "CREATE SUBSCRIPTION {me} CONNECTION 'host=127.0.0.1 dbname=x' PUBLICATION p"
        " WITH (connect = false, slot_name = NONE)",
        database=world.name,
    )
    yield
    world.operator("DROP SUBSCRIPTION {me}", database=world.name)


IN_USE = "it is in use: a session, a prepared transaction, a replication slot or a subscription"
NOT_OURS_TO_END = "the admin role may not drop it, or may not end a session that is open in it"


@pytest.mark.parametrize(
    ("blocked", "cause"),
    [
        (superusers_session, f"{NOT_OURS_TO_END} (42501)"),
        (strangers_session, f"{NOT_OURS_TO_END} (42501)"),
        (prepared_transaction, f"{IN_USE} (55006)"),
        (active_slot, f"{IN_USE} (55006)"),
        (subscription, f"{IN_USE} (55006)"),
    ],
)
def test_a_delete_names_what_is_in_its_way_and_then_finishes(
    world: Watched, blocked: Callable[[Watched], AbstractContextManager[None]], cause: str
) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    kept = world.credential()
    with blocked(world):
        world.delete()
        says = (
            "False",
            "ProvisioningFailed",
            f"dropping database 'NAME': PostgreSQL: cannot drop the database: {cause}",
        )
        assert world.after() == says
        world.wait(600)
        assert world.after() == says
        assert world.tenant()["status"]["phase"] == "Deleting"
        assert world.credential() == kept
    assert world.settle() == {}
    assert left(world) == []


@pytest.mark.parametrize(
    "deed",
    [
        "ALTER DATABASE {me} CONNECTION LIMIT 0",
        "ALTER DATABASE {me} ALLOW_CONNECTIONS false",
        "ALTER DATABASE {me} IS_TEMPLATE true",
        "ALTER ROLE {me} NOLOGIN",
        "ALTER ROLE {me} VALID UNTIL '2001-01-01'",
        "ALTER ROLE {me} CREATEDB",
        "DROP DATABASE {me}",
    ],
)
def test_what_an_operator_changed_does_not_hold_a_delete_up(world: Watched, deed: str) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    world.operator(deed)
    world.delete()
    assert world.settle() == {}
    assert left(world) == []


def test_an_inactive_slot_goes_with_its_database(world: Watched) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    create = "SELECT pg_create_logical_replication_slot(%s, 'test_decoding')"
    world.asked(create, world.name, database=world.name)
    world.delete()
    assert world.settle() == {}
    slot = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
    assert (left(world), world.asked(slot, world.name)) == ([], [])


def test_an_interrupted_drop_is_finished_by_a_delete_only(world: Watched) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    interrupted = "UPDATE pg_database SET datconnlimit = -2 WHERE datname = %s RETURNING 1"
    assert world.asked(interrupted, world.name) == [1]
    assert world.after() == (
        "False",
        "Conflict",
        "database 'NAME' is invalid after an interrupted DROP DATABASE",
    )
    world.delete()
    assert world.settle() == {}
    assert left(world) == []


@pytest.mark.parametrize(
    "deeds",
    [
        ("ALTER DATABASE {me} OWNER TO postgres", "DROP DATABASE {me}", "DROP ROLE {me}"),
        ("DROP DATABASE {me}", "DROP ROLE {me}"),
    ],
)
def test_what_is_gone_already_is_deleted(world: Watched, deeds: tuple[str, ...]) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    world.operator(*deeds)
    world.delete()
    assert world.settle() == {}
    assert left(world) == []


def test_a_superuser_is_not_dropped_by_an_admin_who_may_not(world: Watched) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    world.operator("ALTER ROLE {me} SUPERUSER")
    before = database_of(world), role_of(world)
    world.delete()
    assert world.after() == (
        "False",
        "ProvisioningFailed",
        (
            "forbidding logins of 'NAME': PostgreSQL: cannot forbid the role to log in: the role"
            " lacks the right to do so (42501)"
        ),
    )
    assert (database_of(world), role_of(world)) == before
    world.operator("ALTER ROLE {me} NOSUPERUSER")
    assert world.settle() == {}
    assert left(world) == []


def test_a_database_that_an_operator_took_over_is_not_dropped(world: Watched) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    world.operator("ALTER DATABASE {me} OWNER TO postgres")
    before = database_of(world)
    world.delete()
    assert world.after() == (
        "False",
        "ProvisioningFailed",
        (
            f"dropping database 'NAME': PostgreSQL: cannot drop the database: {NOT_OURS_TO_END}"
            " (42501)"
        ),
    )
    assert database_of(world) == before
    world.operator("ALTER DATABASE {me} OWNER TO {me}")
    assert world.settle() == {}
    assert left(world) == []


@pytest.mark.parametrize("kind", ["ROLE", "DATABASE"])
def test_what_was_renamed_is_not_forgotten(world: Watched, kind: str) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    world.operator(f"ALTER {kind} {{me}} RENAME TO {{aside}}")
    world.delete()
    assert world.settle() != {}
    assert world.says()[:2] == ("False", "ProvisioningFailed")
    world.operator(f"ALTER {kind} {{aside}} RENAME TO {{me}}")
    assert world.settle() == {}
    assert left(world) == []


DEPENDED_ON = (
    "False",
    "ProvisioningFailed",
    (
        "dropping role 'NAME': PostgreSQL: cannot drop the role: other objects, maybe in another"
        " database, still depend on it (2BP01)"
    ),
)


def test_objects_in_another_database_are_reported_and_left_alone(world: Watched) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    other = f"other_{world.name}"
    world.operator(f"CREATE DATABASE {other}")
    world.operator(
        "CREATE SCHEMA theirs AUTHORIZATION {me}",
        "CREATE TABLE theirs.data AS SELECT 42 AS answer",
        "ALTER TABLE theirs.data OWNER TO {me}",
        database=other,
    )
    world.delete()
    assert world.after() == DEPENDED_ON
    assert world.asked("SELECT answer FROM theirs.data", database=other) == [42]
    assert (database_of(world), world.credential() is None) == ([], False)
    world.operator("DROP OWNED BY {me}", database=other)
    assert world.settle() == {}
    assert left(world) == []


@pytest.mark.parametrize(
    "deed",
    [
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
        "SELECT lo_create(0)",
    ],
)
def test_what_the_owner_left_in_the_admins_database_is_reported(world: Watched, deed: str) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    world.owner(deed, database="postgres")
    world.delete()
    assert world.after() == DEPENDED_ON
    world.operator("DROP OWNED BY {me}")
    assert world.settle() == {}
    assert left(world) == []


def test_default_privileges_in_its_own_database_go_with_it(world: Watched) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    world.owner("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC")
    world.delete()
    assert world.settle() == {}
    assert left(world) == []
