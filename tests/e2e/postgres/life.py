"""A tenant's life in steps that assert what they see, and the admin roles that may lead it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from secrets import token_hex

import psycopg

from hooks.core.errors import Denied, Refused
from hooks.effects.ports import Admin, Database, Login, Presence, RegistryInfo, Role, Row
from hooks.effects.postgres import MIN_CODE, SCHEMA_VERSION
from hooks.sandbox.postgres_server import Login as ServerLogin
from tests.effects.postgres.conftest import World, ended, inside, known, planned, tenant

NOT_LET_IN = Refused(
    "PostgreSQL",
    "cannot log in: the server does not let this role in: see pg_hba.conf, or it has NOLOGIN",
    code="28000",
)
NO_CONNECT = Denied(
    "PostgreSQL", "cannot log in: the role may not connect to the database", code="42501"
)
UNTRUSTED = Denied(
    "PostgreSQL",
    "cannot install extension pg_stat_statements: it is not trusted, or needs one that is"
    " not; an administrator can install it",
    code="42501",
)


def make_role(world: World, kind: str, options: str = "") -> Login:
    """Make a login role; `conftest` says how the kinds get in."""
    login = Login(f"{kind}_{token_hex(4)}", token_hex(12))
    world.sql(f"CREATE ROLE {{}} LOGIN PASSWORD '{login.password}' {options}", login.username)
    return login


def make_admin(world: World, options: str) -> Login:
    """Make an admin as a managed service would."""
    login = make_role(world, "admin", options)
    world.sql("GRANT CREATE ON DATABASE postgres TO {}", login.username)
    return login


def session(world: World, database: str, login: Login) -> closing[psycopg.Connection]:
    """Open a session with no startup options of ours."""
    parameters = world.server.parameters(
        ServerLogin(login.username, login.password), database=database
    )
    return closing(psycopg.connect("", **parameters))  # type: ignore[arg-type]  # all are text


def live(world: World, login: Login) -> None:
    """Make a tenant, use its database and drop all of it, as this admin."""
    row = planned(f"shop-{token_hex(4)}")
    with world.bind().administer(world.endpoint, login) as admin:
        admin.migrate()
        assert admin.registry() == RegistryInfo(SCHEMA_VERSION, MIN_CODE, None, writable=True)
        row = make(admin, row)
        use(world, row)
        admin.record_extensions(row.uid, frozenset({"hstore"}))
        admin.mark(row.uid, state="deleting", was=frozenset({"managed"}))
        drop(world, admin, row)
        assert admin.row(row.uid) is None
    assert remains(world, row) == []


def make(admin: Admin, row: Row) -> Row:
    """Make role and database; what is read of them agrees with the row."""
    assert admin.try_lock(row.uid)
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    admin.create_database(row.database, owner=row.role)
    role, database = known(admin.role(row.role)), known(admin.database(row.database))
    assert role == Role(
        oid=role.oid,
        can_login=True,
        expired=False,
        connection_limit=-1,
        elevated=False,
        administered=True,
    )
    made = Database(
        oid=database.oid,
        owner_oid=role.oid,
        allows_connections=True,
        connection_limit=-1,
        is_template=False,
        public_privileges=frozenset({"CONNECT", "TEMPORARY"}),  # datacl is NULL
    )
    assert database == made
    admin.secure_database(row.uid, row.database)
    assert admin.database(row.database) == replace(made, public_privileges=frozenset())
    recorded = replace(row, state="managed", role_oid=role.oid, database_oid=database.oid)
    assert admin.row(row.uid) == recorded
    return recorded


def use(world: World, row: Row) -> None:
    """Nobody but the tenant gets in, and it may do what an owner may."""
    endpoint, login, servers = inside(world, row), tenant(row), world.bind()
    assert ended(lambda: servers.log_in(endpoint, make_role(world, "stranger"))) == NO_CONNECT
    with session(world, row.database, login) as connection:
        connection.execute("CREATE SCHEMA things")
        connection.execute("CREATE TABLE things.sold AS SELECT 1 AS one")
        connection.commit()
    servers.create_extension(endpoint, login, "hstore")
    extensions = frozenset({"plpgsql", "hstore"})
    assert servers.log_in(endpoint, login) == Presence(row.role, row.database, extensions)
    assert ended(lambda: servers.create_extension(endpoint, login, "pg_stat_statements")) == (
        UNTRUSTED
    )


def drop(world: World, admin: Admin, row: Row) -> None:
    """Drop everything below a session that is open."""
    endpoint, login = inside(world, row), tenant(row)
    with session(world, row.database, login):
        admin.forbid_login(row.role)
        assert ended(lambda: world.bind().log_in(endpoint, login)) == NOT_LET_IN
        admin.drop_database(row.database, oid=known(row.database_oid))
    admin.drop_role(row.role, oid=known(row.role_oid))
    admin.delete_row(row.uid)


def remains(world: World, row: Row) -> list[object]:
    """Return what the server still has of a tenant."""
    rows = world.query(
        """
        SELECT datname FROM pg_database WHERE datname = %s
        UNION ALL SELECT rolname FROM pg_roles WHERE rolname = %s
        UNION ALL SELECT description FROM pg_shdescription WHERE description LIKE %s
        UNION ALL SELECT roleid::text FROM pg_auth_members
            WHERE NOT EXISTS (SELECT FROM pg_roles WHERE oid = roleid)
        """,
        row.database,
        row.role,
        f"%{row.uid}%",
    )
    return [column for [column] in rows]
