"""Databases and extensions: made once, closed to strangers, dropped by OID."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import psycopg
import pytest

from hooks.core.deadline import Deadline
from hooks.core.errors import Blocked, Denied, Taken
from hooks.effects.ports import Admin, Available, Database, Row
from hooks.sandbox.postgres_server import Login as ServerLogin
from tests.effects.postgres.conftest import (
    World,
    ended,
    inside,
    known,
    planned,
    provide,
    race,
    tenant,
)

NAME_TAKEN = Taken(
    "PostgreSQL", "cannot create the database: somebody else has the name", code="42P04"
)


def shape(world: World, name: str) -> list[tuple[object, ...]]:
    return world.query("SELECT d.*, d.xmin::text FROM pg_database d WHERE datname = %s", name)


@contextmanager
def session(world: World, row: Row, login: ServerLogin | None = None) -> Iterator[None]:
    """Keep a session open in the tenant's database; the tenant's own if not said otherwise."""
    who = login or ServerLogin(row.role, tenant(row).password)
    parameters = world.server.parameters(who, database=row.database)
    connection = psycopg.connect("", **parameters)  # type: ignore[arg-type]  # all are text
    try:
        yield
    finally:
        connection.close()


@pytest.mark.parametrize("name", ["user", "all", "select", "b" * 63, 'a"b; --', "Ö{}%s"])
def test_a_database_may_have_any_name(world: World, admin: Admin, name: str) -> None:
    row = provide(admin, planned(name, f"role_{secrets.token_hex(4)}"))
    database = known(admin.database(name))
    assert database == Database(
        oid=known(row.database_oid),
        owner_oid=known(row.role_oid),
        allows_connections=True,
        connection_limit=-1,
        is_template=False,
        public_privileges=frozenset(),
        keepers_missing=frozenset(),
    )
    assert world.bind().log_in(inside(world, row), tenant(row)).database == name
    admin.drop_database(name, oid=database.oid)
    assert admin.database(name) is None


def test_a_strangers_database_is_taken_and_unchanged(world: World, admin: Admin, row: Row) -> None:
    world.sql("CREATE DATABASE {}", row.database)
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    before = shape(world, row.database)
    assert ended(lambda: admin.create_database(row.database, owner=row.role)) == NAME_TAKEN
    secure = ended(lambda: admin.secure_database(row.uid, row.database))
    assert isinstance(secure, Denied)
    assert shape(world, row.database) == before
    assert known(admin.row(row.uid)).database_oid is None


def test_of_racers_for_one_database_one_wins(
    world: World, admin: Admin, row: Row, sessions: ExitStack
) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    rival = sessions.enter_context(world.bind().administer(world.endpoint, world.login))
    outcomes = race(
        lambda: admin.create_database(row.database, owner=row.role),
        lambda: rival.create_database(row.database, owner=row.role),
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "Taken"]
    assert known(admin.database(row.database)).owner_oid == known(admin.row(row.uid)).role_oid


def test_a_new_database_is_open_to_all_until_it_is_secured(admin: Admin, row: Row) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    admin.create_database(row.database, owner=row.role)
    assert known(admin.database(row.database)).public_privileges == {"CONNECT", "TEMPORARY"}
    admin.secure_database(row.uid, row.database)
    admin.secure_database(row.uid, row.database)
    database = known(admin.database(row.database))
    assert database.public_privileges == frozenset()
    assert known(admin.row(row.uid)).database_oid == database.oid


def test_roles_that_keep_connect_by_setting_keep_it(world: World, admin: Admin, row: Row) -> None:
    keeper = f"exporter_{secrets.token_hex(4)}"
    world.sql("CREATE ROLE {} LOGIN", keeper)
    row = provide(admin, row)
    keeping = world.servers(keepers=frozenset({keeper, "nonesuch"}))
    with keeping.bind(Deadline()).administer(world.endpoint, world.login) as second:
        assert known(second.database(row.database)).keepers_missing == {keeper}
        second.secure_database(row.uid, row.database)
        assert known(second.database(row.database)).keepers_missing == frozenset()
        assert known(second.database(row.database)).public_privileges == frozenset()


def test_a_revoke_that_does_nothing_is_an_error(world: World, admin: Admin, row: Row) -> None:
    row = provide(admin, row)
    world.sql("GRANT CONNECT ON DATABASE {} TO PUBLIC", row.database)
    world.server.sql(
        f'GRANT "{row.role}" TO CURRENT_USER WITH INHERIT FALSE', login=world.server.admin
    )
    assert ended(lambda: admin.secure_database(row.uid, row.database)) == Denied(
        "PostgreSQL", "the admin role does not inherit the rights of the owner"
    )
    admin.administer_role(row.role)
    admin.secure_database(row.uid, row.database)
    assert known(admin.database(row.database)).public_privileges == frozenset()


def test_a_database_of_another_owner_is_not_recorded(world: World, admin: Admin, row: Row) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    other = planned(f"other_{secrets.token_hex(4)}")
    admin.insert_row(other)
    admin.create_role(other.uid, tenant(other))
    admin.create_database(row.database, owner=other.role)
    before = shape(world, row.database)
    assert isinstance(ended(lambda: admin.secure_database(row.uid, row.database)), Taken)
    assert shape(world, row.database) == before
    assert known(admin.row(row.uid)).database_oid is None


def test_open_sessions_do_not_keep_a_database(world: World, admin: Admin, row: Row) -> None:
    row = provide(admin, row)
    with ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(session(world, row))
        admin.drop_database(row.database, oid=known(row.database_oid))
    assert shape(world, row.database) == []


def test_a_superusers_session_keeps_it(world: World, admin: Admin, row: Row) -> None:
    row = provide(admin, row)
    drop = partial(admin.drop_database, row.database, oid=known(row.database_oid))
    with session(world, row, world.server.superuser):
        assert ended(drop) == Denied(
            "PostgreSQL",
            "cannot drop the database: the admin role may not drop it,"
            " or may not end a session that is open in it",
            code="42501",
        )
    assert ended(drop) is None


def test_a_prepared_transaction_keeps_it(world: World, admin: Admin, row: Row) -> None:
    row = provide(admin, row)
    drop = partial(admin.drop_database, row.database, oid=known(row.database_oid))
    parameters = world.server.parameters(world.server.superuser, database=row.database)
    with psycopg.connect("", autocommit=True, **parameters) as connection:  # type: ignore[arg-type]  # all are text
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE held ()")
        connection.execute("PREPARE TRANSACTION 'held'")
    try:
        assert ended(drop) == Blocked(
            "PostgreSQL",
            "cannot drop the database: it is in use:"
            " a session, a prepared transaction, a replication slot or a subscription",
            code="55006",
        )
    finally:
        world.sql("ROLLBACK PREPARED 'held'", database=row.database)
    assert ended(drop) is None


def test_a_template_is_dropped_too(world: World, admin: Admin, row: Row) -> None:
    row = provide(admin, row)
    world.sql("ALTER DATABASE {} IS_TEMPLATE true", row.database)
    assert known(admin.database(row.database)).is_template is True
    admin.drop_database(row.database, oid=known(row.database_oid))
    assert shape(world, row.database) == []


def test_an_interrupted_drop_is_seen_and_done_again(world: World, admin: Admin, row: Row) -> None:
    row = provide(admin, row)
    world.query("UPDATE pg_database SET datconnlimit = -2 WHERE datname = %s", row.database)
    assert known(admin.database(row.database)).connection_limit == -2
    admin.drop_database(row.database, oid=known(row.database_oid))
    assert shape(world, row.database) == []


def test_a_database_is_dropped_by_its_oid_only(world: World, admin: Admin, row: Row) -> None:
    row = provide(admin, row)
    world.sql("ALTER DATABASE {} IS_TEMPLATE true", row.database)
    before = shape(world, row.database)
    oid = known(row.database_oid)
    assert ended(lambda: admin.drop_database(row.database, oid=oid + 1)) == Taken(
        "PostgreSQL", "a database of this name exists that is not the recorded one"
    )
    assert shape(world, row.database) == before
    admin.drop_database(row.database, oid=oid)
    admin.drop_database(row.database, oid=oid)
    assert shape(world, row.database) == []


def test_the_server_says_what_it_can_install(admin: Admin) -> None:
    asked = frozenset({"hstore", "pg_stat_statements", "nonesuch"})
    assert admin.available(asked) == [
        Available("hstore", trusted=True),
        Available("pg_stat_statements", trusted=False),
    ]
    assert admin.available(frozenset()) == []


def test_a_trusted_extension_is_installed_by_the_tenant(
    world: World, admin: Admin, row: Row
) -> None:
    row = provide(admin, row)
    for _ in range(2):
        world.bind().create_extension(inside(world, row), tenant(row), "hstore")
    assert world.bind().log_in(inside(world, row), tenant(row)).extensions == {
        "plpgsql",
        "hstore",
    }
    assert world.sql(
        "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'hstore'",
        database=row.database,
    ) == ["public"]


def test_what_an_extension_needs_comes_along(world: World, admin: Admin, row: Row) -> None:
    row = provide(admin, row)
    world.bind().create_extension(inside(world, row), world.superuser, "earthdistance")
    assert world.bind().log_in(inside(world, row), tenant(row)).extensions == {
        "plpgsql",
        "cube",
        "earthdistance",
    }


def test_an_extension_made_by_two_at_once_is_there(world: World, admin: Admin, row: Row) -> None:
    row = provide(admin, row)
    make = partial(world.bind().create_extension, inside(world, row), tenant(row), "citext")
    assert race(make, make) == [None, None]


def test_an_untrusted_or_unknown_extension_is_named(world: World, admin: Admin, row: Row) -> None:
    row = provide(admin, row)
    make = world.bind().create_extension
    assert ended(lambda: make(inside(world, row), tenant(row), "pg_stat_statements")) == Denied(
        "PostgreSQL",
        "cannot install extension pg_stat_statements: it is not trusted, or needs one that is"
        " not; an administrator can install it",
        code="42501",
    )
    assert ended(lambda: make(inside(world, row), tenant(row), "nonesuch")) == Blocked(
        "PostgreSQL",
        "cannot install extension nonesuch: the server does not have it, or not in a usable form",
        code="0A000",
    )


def test_what_a_tenant_has_planted_is_not_run_as_superuser(
    world: World, admin: Admin, row: Row
) -> None:
    row = provide(admin, row)
    for statement in (
        "CREATE TABLE public.trapped (who text)",
        "GRANT INSERT ON public.trapped TO PUBLIC",
        """CREATE FUNCTION public.trap(name, text) RETURNS boolean LANGUAGE sql AS
        $$INSERT INTO public.trapped VALUES (current_user); SELECT true$$""",
        "CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, FUNCTION = public.trap)",
    ):
        world.server.sql(
            statement,
            database=row.database,
            login=ServerLogin(row.role, tenant(row).password),
        )
    world.sql("ALTER DATABASE {} SET search_path = public, pg_catalog", row.database)
    endpoint = inside(world, row)
    with world.bind().administer(endpoint, world.superuser) as session_inside:
        session_inside.server()
        session_inside.role(row.role)
        session_inside.database(row.database)
    world.bind().create_extension(endpoint, world.superuser, "hstore")
    assert world.sql("SELECT count(*) FROM public.trapped", database=row.database) == [0]


def test_a_cluster_whose_template_has_another_collation_says_what_to_do(
    world: World, admin: Admin, row: Row
) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    [[before]] = world.query("SELECT datcollversion FROM pg_database WHERE datname = 'template0'")
    world.query("UPDATE pg_database SET datcollversion = '0' WHERE datname = 'template0'")
    try:
        failed = ended(lambda: admin.create_database(row.database, owner=row.role))
    finally:
        world.query(
            "UPDATE pg_database SET datcollversion = %s WHERE datname = 'template0'", before
        )
    assert failed == Blocked(
        "PostgreSQL",
        "cannot create the database: the collation version of template0 is not the one of the"
        " operating system; the database administrator must refresh it",
        code="XX000",
    )


def test_a_database_made_anew_is_not_the_recorded_one(world: World, admin: Admin, row: Row) -> None:
    row = provide(admin, row)
    world.sql("DROP DATABASE {}", row.database)
    admin.create_database(row.database, owner=row.role)
    assert isinstance(ended(lambda: admin.secure_database(row.uid, row.database)), Taken)
    assert admin.row(row.uid) == row
