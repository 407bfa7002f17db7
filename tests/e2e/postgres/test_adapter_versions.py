"""What differs between versions and admin roles, and a tenant's life on each of them."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from hooks.core.deadline import Deadline
from hooks.core.errors import Blocked, Denied, Refused
from hooks.effects.ports import Admin, Available, Row, ServerInfo
from tests.e2e.postgres.conftest import WorldOfVersion
from tests.e2e.postgres.life import UNTRUSTED, live, make_admin, make_role, session
from tests.e2e.postgres.programs import releases
from tests.e2e.postgres.suits import CREATEROLE, Suits, only
from tests.effects.postgres.conftest import World, ended, inside, known, provide, tenant

V15 = 15
V16 = 16

MAY_NOT_DROP = Denied(
    "PostgreSQL",
    "cannot drop the database: the admin role may not drop it, or may not end a session"
    " that is open in it",
    code="42501",
)


def test_the_server_tells_its_release_and_who_we_are(world: WorldOfVersion) -> None:
    release = releases()[world.version]
    minor = int(release.partition(".")[2])
    with world.bind().administer(world.endpoint, world.login) as admin:
        assert admin.server() == ServerInfo(
            version=release,
            version_num=world.version * 10000 + minor,
            standby=False,
            read_only=False,
            superuser=world.admin_kind == "superuser",
            createdb=True,
            createrole=True,
            inherit=True,
            registry_creatable=True,
        )


def test_a_tenant_is_made_used_and_dropped(world: World) -> None:
    live(world, world.login)


@only(Suits(kinds=CREATEROLE))
def test_an_admin_whose_passwords_are_md5_by_default_makes_tenants_that_get_in(
    world: World,
) -> None:
    login = make_admin(world, "CREATEDB CREATEROLE")
    world.sql("ALTER ROLE {} SET password_encryption = 'md5'", login.username)
    live(world, login)


@only(Suits(since=V16, kinds=CREATEROLE))
def test_since_16_an_admin_need_not_inherit(world: World) -> None:
    live(world, make_admin(world, "CREATEDB CREATEROLE NOINHERIT"))


@only(Suits(since=V16, kinds=CREATEROLE))
def test_an_admin_may_grant_itself_the_roles_that_it_makes(world: World) -> None:
    for granted in ("set", "inherit", "set, inherit"):
        login = make_admin(world, "CREATEDB CREATEROLE")
        world.sql(f"ALTER ROLE {{}} SET createrole_self_grant = '{granted}'", login.username)
        live(replace(world, schema=f"{world.schema}_{granted}"), login)


@only(Suits(before=V16, kinds=CREATEROLE))
def test_before_16_an_admin_that_does_not_inherit_is_told_apart(world: World, row: Row) -> None:
    login = make_admin(world, "CREATEDB CREATEROLE NOINHERIT")
    with world.bind().administer(world.endpoint, login) as admin:
        assert admin.server().inherit is False
        admin.migrate()
        admin.insert_row(row)
        admin.create_role(row.uid, tenant(row))
        assert known(admin.role(row.role)).administered is False
        admin.create_database(row.database, owner=row.role)
        assert ended(lambda: admin.secure_database(row.uid, row.database)) == Denied(
            "PostgreSQL", "the admin role does not inherit the rights of the owner"
        )
        oid = known(admin.database(row.database)).oid
        assert ended(lambda: admin.drop_database(row.database, oid=oid)) == MAY_NOT_DROP
        assert admin.row(row.uid) == replace(
            row, state="managed", role_oid=known(admin.role(row.role)).oid
        )


@only(Suits(before=V16, kinds=CREATEROLE))
def test_before_16_nothing_but_the_registry_protects_a_strangers_role(
    world: World, admin: Admin, row: Row
) -> None:
    world.sql("CREATE ROLE {} LOGIN", row.role)
    admin.administer_role(row.role)
    assert known(admin.role(row.role)).administered is True


def test_a_new_admin_can_take_over_only_where_createrole_is_enough(
    world: WorldOfVersion, admin: Admin, row: Row
) -> None:
    row = provide(admin, row)
    successor = make_admin(world, "CREATEDB CREATEROLE")
    with world.bind().administer(world.endpoint, successor) as later:
        assert known(later.role(row.role)).administered is False
        refused = ended(lambda: later.administer_role(row.role))
        assert known(later.role(row.role)).administered is (world.version < V16)
    expected = Denied(
        "PostgreSQL",
        "cannot give the admin role its rights on the tenant's role:"
        " the role lacks the right to do so",
        code="42501",
    )
    assert refused == (None if world.version < V16 else expected)


@only(Suits(kinds=CREATEROLE))
def test_a_keepers_session_keeps_a_database_until_the_admin_may_end_it(
    world: World, row: Row
) -> None:
    login = make_admin(world, "CREATEDB CREATEROLE")
    exporter = make_role(world, "exporter")
    servers = world.servers(keepers=frozenset({exporter.username})).bind(Deadline())
    with servers.administer(world.endpoint, login) as admin:
        admin.migrate()
        oid = known(provide(admin, row).database_oid)
        with session(world, row.database, exporter):
            drop = ended(lambda: admin.drop_database(row.database, oid=oid))
            assert drop == MAY_NOT_DROP
            world.sql("GRANT pg_signal_backend TO {}", login.username)
            admin.drop_database(row.database, oid=oid)
        assert admin.database(row.database) is None


def test_extensions_are_trusted_or_not(admin: Admin) -> None:
    names = {"pgcrypto": True, "uuid-ossp": True, "earthdistance": False, "dblink": False}
    assert admin.available(frozenset({*names, "nonesuch"})) == [
        Available(name, trusted=names[name]) for name in sorted(names)
    ]


def test_an_extension_that_the_server_lacks_is_told_by_either_code(
    world: WorldOfVersion, admin: Admin, row: Row
) -> None:
    row = provide(admin, row)
    make_extension = world.bind().create_extension
    assert ended(lambda: make_extension(inside(world, row), tenant(row), "nonesuch")) == Blocked(
        "PostgreSQL",
        "cannot install extension nonesuch: the server does not have it, or not in a usable form",
        code="0A000" if world.version >= V15 else "58P01",
    )


def test_an_untrusted_extension_is_the_administrators_to_install(
    world: WorldOfVersion, admin: Admin, row: Row
) -> None:
    row = provide(admin, row)
    servers, endpoint, name = world.bind(), inside(world, row), "pg_stat_statements"
    by_admin = ended(lambda: servers.create_extension(endpoint, world.login, name))
    assert by_admin == (None if world.admin_kind == "superuser" else UNTRUSTED)
    servers.create_extension(endpoint, world.superuser, name)
    assert servers.log_in(endpoint, tenant(row)).extensions == {"plpgsql", name}


@only(Suits(kinds=CREATEROLE))
def test_an_admin_whose_stored_password_is_md5_gets_in_and_a_tenant_does_not(
    world: World,
) -> None:
    login = make_role(world, "hashed")
    salted = f"{login.password}{login.username}".encode()
    digest = hashlib.md5(salted, usedforsecurity=False).hexdigest()
    world.sql(f"ALTER ROLE {{}} PASSWORD 'md5{digest}'", login.username)
    with world.bind().administer(world.endpoint, login) as admin:
        assert known(admin.role(login.username)).can_login is True
    assert ended(lambda: world.bind().log_in(world.endpoint, login)) == Refused(
        "PostgreSQL",
        "cannot log in: the server asks for no password, or not for one in the form of SCRAM:"
        " see pg_hba.conf",
    )
