"""The SQL that administrators are told to run does what it says, on a real server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hooks.core.deadline import Deadline
from hooks.effects.ports import Admin, Endpoint, Login, Row, RowState, ServerInfo
from hooks.effects.postgres import PostgresServers
from hooks.instance.decide import rights_sufficient
from hooks.instance.facts import Facts
from hooks.instance.model import Spec
from hooks.sandbox.certificates import Authority
from hooks.sandbox.postgres_server import Login as Role
from hooks.sandbox.postgres_server import PostgresServer
from tests.docs.pages import sql_blocks

OLD, NEW, INSTANCE, OLD_INSTANCE = (str(uuid.uuid4()) for _ in range(4))
PLACES = {
    "OLD_UID": OLD,
    "TENANT_UID": NEW,
    "INSTANCE_UID": INSTANCE,
    "OLD_INSTANCE_UID": OLD_INSTANCE,
}
RETAINED = Row(
    uid=OLD,
    instance_uid=INSTANCE,
    instance_name="shared",
    namespace="team-a",
    name="orders",
    database="orders",
    role="orders",
    kv_path="postgresql/team-a/orders",
    secret_name="shared-orders-postgresql",
    state="unmanaged",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    directory = tmp_path_factory.mktemp("repairs")
    authority = Authority(directory / "ca")
    with PostgresServer.start(directory / "postgres", authority) as running:
        yield running


@pytest.fixture
def admin(server: PostgresServer) -> Iterator[Admin]:
    """Give an admin session and an empty registry; what a test leaves is removed."""
    endpoint, login = endpoint_of(server), server.admin
    servers = PostgresServers(ca_file=server.ca_file).bind(Deadline(60))
    with servers.administer(endpoint, Login(login.name, login.password)) as session:
        session.migrate()
        yield session
    server.sql("DROP SCHEMA tenant_registry CASCADE")
    for name in ("orders", "orders_2025"):
        server.sql(f"DROP DATABASE IF EXISTS {name}")
        server.sql(f"DROP ROLE IF EXISTS {name}")


def endpoint_of(server: PostgresServer) -> Endpoint:
    return Endpoint(server.host, server.hostaddr, server.port, "postgres", "verify-full")


def run(server: PostgresServer, block: str, *, places: Mapping[str, str] = PLACES) -> list[str]:
    """Run the statements of a block as the admin role, and return what psql would say."""
    for place in sorted(places, key=len, reverse=True):
        block = block.replace(f"'{place}'", f"'{places[place]}'")
    parameters = make_conninfo(**server.parameters(server.admin))
    with psycopg.connect(parameters, autocommit=True) as connection:
        statements = [statement for statement in block.split(";") if statement.strip()]
        return [str(connection.execute(each.encode()).statusmessage) for each in statements]


def provision(server: PostgresServer) -> None:
    """Make role and database, as after a restore."""
    (block,) = sql_blocks("A restored database")
    assert run(server, block) == ["CREATE ROLE", "GRANT ROLE", "CREATE DATABASE"]


def names(server: PostgresServer) -> set[object]:
    query = (
        "SELECT datname::text FROM pg_database UNION ALL SELECT rolname::text FROM pg_roles"
        " WHERE rolname LIKE 'orders%'"
    )
    return {name for (name,) in server.sql(query) if str(name).startswith("orders")}


def with_oids(row: Row, admin: Admin) -> Row:
    """Return the row with the OIDs that the server has now."""
    role, database = admin.role(row.role), admin.database(row.database)
    assert role is not None
    assert database is not None
    return replace(row, role_oid=role.oid, database_oid=database.oid)


@pytest.mark.parametrize("state", ["unmanaged", "deleting"])
def test_what_was_retained_is_removed(
    server: PostgresServer, admin: Admin, state: RowState
) -> None:
    provision(server)
    admin.insert_row(replace(RETAINED, state=state))
    _rename, remove = sql_blocks("Retained data without a Tenant")
    assert run(server, remove) == ["SELECT 1", "DROP DATABASE", "DROP ROLE", "DELETE 1"]
    assert (admin.row(OLD), names(server)) == (None, set())


def test_the_row_of_a_database_that_is_managed_stays(server: PostgresServer, admin: Admin) -> None:
    managed = replace(RETAINED, state="managed")
    admin.insert_row(managed)
    for block in sql_blocks("Retained data without a Tenant"):
        *_, delete = filter(str.strip, block.split(";"))
        assert run(server, delete) == ["DELETE 0"]
    assert admin.row(OLD) == managed


def test_what_was_retained_is_kept_under_other_names(server: PostgresServer, admin: Admin) -> None:
    provision(server)
    admin.insert_row(RETAINED)
    rename, _remove = sql_blocks("Retained data without a Tenant")
    assert run(server, rename) == ["ALTER DATABASE", "ALTER ROLE", "DELETE 1"]
    assert (admin.row(OLD), names(server)) == (None, {"orders_2025"})


def test_rows_follow_a_re_created_instance(server: PostgresServer, admin: Admin) -> None:
    admin.insert_row(replace(RETAINED, instance_uid=OLD_INSTANCE))
    (block,) = sql_blocks("Rows of an earlier Instance")
    assert run(server, block) == ["BEGIN", "SELECT 1", "UPDATE 1", "COMMIT"]
    assert admin.row(OLD) == RETAINED


def test_a_row_that_is_missing_is_written(server: PostgresServer, admin: Admin) -> None:
    provision(server)
    (block,) = sql_blocks("A row that is missing")
    assert run(server, block) == ["BEGIN", "SELECT 1", "INSERT 0 1", "COMMIT"]
    assert admin.row(NEW) == with_oids(replace(RETAINED, uid=NEW, state="managed"), admin)


def test_the_registry_can_be_looked_at(server: PostgresServer, admin: Admin) -> None:
    admin.insert_row(RETAINED)
    (look,) = (block for block in sql_blocks("Repairs by hand") if block.startswith("SELECT n"))
    assert run(server, look) == ["SELECT 1"]


@pytest.mark.parametrize("block", sql_blocks("The admin role"), ids=["16 and later", "13 to 15"])
def test_the_admin_role_of_the_manual_has_all_rights(server: PostgresServer, block: str) -> None:
    for statement in filter(str.strip, block.split(";")):
        server.sql(statement.encode())
    try:
        role = Role("hooks_admin", "a-password")
        server.sql(f"ALTER ROLE {role.name} PASSWORD '{role.password}'")
        info = look(server, Login(role.name, role.password))
    finally:
        server.sql("DROP OWNED BY hooks_admin")
        server.sql("DROP ROLE hooks_admin")
    spec = Spec(uid=INSTANCE, name="shared", generation=1, endpoint=endpoint_of(server))
    verdict = rights_sufficient(Facts(spec=spec, login=Login("", ""), server=info))
    assert (info.superuser, type(verdict).__name__) == (False, "Met")


def look(server: PostgresServer, login: Login) -> ServerInfo:
    servers = PostgresServers(ca_file=server.ca_file).bind(Deadline(20))
    with servers.administer(endpoint_of(server), login) as session:
        return session.server()
