"""Login roles: made once, changed by name, dropped by OID."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import psycopg
import pytest

from hooks.core.errors import Blocked, Denied, Refused, Taken
from hooks.effects.ports import Admin, Login, Role, Row
from tests.effects.postgres.conftest import (
    World,
    ended,
    known,
    planned,
    provide,
    race,
    tenant,
)

NAME_TAKEN = Taken("PostgreSQL", "cannot create the role: somebody else has the name", code="42710")


def role_oid(world: World, name: str) -> int | None:
    found = world.query("SELECT oid FROM pg_roles WHERE rolname = %s", name)
    return int(str(found[0][0])) if found else None


def repeated(action: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(20):
            action()

    return run


def shape(world: World, name: str) -> list[tuple[object, ...]]:
    return world.query("SELECT a.*, a.xmin::text FROM pg_authid a WHERE rolname = %s", name)


@pytest.mark.parametrize(
    "name", ["user", "all", "select", "replication", "current_user", "a" * 63, 'a"b; --', "Ä{}%s"]
)
def test_a_role_may_have_any_name(world: World, admin: Admin, name: str) -> None:
    row = planned(f"db_{secrets.token_hex(4)}", name)
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    role = known(admin.role(name))
    assert role == Role(
        oid=role.oid,
        can_login=True,
        expired=False,
        connection_limit=-1,
        elevated=False,
        administered=True,
    )
    assert admin.row(row.uid) == replace(row, state="managed", role_oid=role.oid)
    assert world.bind().log_in(world.endpoint, tenant(row)).role == name
    admin.drop_role(name, oid=role.oid)
    assert admin.role(name) is None


def test_a_role_that_is_not_there_reads_as_none(admin: Admin) -> None:
    assert admin.role("nonesuch") is None


def test_the_server_gets_a_verifier_and_its_log_neither_that_nor_the_password(
    world: World, admin: Admin, row: Row
) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    changed = Login(row.role, f"changed-{secrets.token_hex(8)}")
    admin.set_password(changed)
    ended(lambda: admin.set_password(replace(changed, username="nonesuch")))
    ended(lambda: admin.create_role(row.uid, changed))
    [[stored]] = world.query("SELECT rolpassword FROM pg_authid WHERE rolname = %s", row.role)
    assert str(stored).startswith("SCRAM-SHA-256$4096:")
    log = world.server.log_text()
    assert "ALTER ROLE %I PASSWORD" in log
    assert str(stored) not in log
    assert "SCRAM-SHA-256$" not in log
    assert changed.password not in log
    assert tenant(row).password not in log


def test_a_strangers_role_is_taken_and_unchanged(world: World, admin: Admin, row: Row) -> None:
    world.sql("CREATE ROLE {} LOGIN PASSWORD 'theirs'", row.role)
    before = shape(world, row.role)
    admin.insert_row(row)
    assert ended(lambda: admin.create_role(row.uid, tenant(row))) == NAME_TAKEN
    assert shape(world, row.role) == before
    assert admin.row(row.uid) == row


def test_a_role_is_not_made_for_a_row_that_does_not_want_it(
    world: World, admin: Admin, row: Row
) -> None:
    lost = Taken("PostgreSQL", "the tenant's row in the registry is gone or in another state")
    assert ended(lambda: admin.create_role(row.uid, tenant(row))) == lost
    admin.insert_row(replace(row, state="deleting"))
    assert ended(lambda: admin.create_role(row.uid, tenant(row))) == lost
    assert role_oid(world, row.role) is None


def test_repeating_the_creation_changes_nothing(world: World, admin: Admin, row: Row) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    before = shape(world, row.role)
    again = replace(tenant(row), password="another")
    assert ended(lambda: admin.create_role(row.uid, again)) == NAME_TAKEN
    assert shape(world, row.role) == before


def test_of_racers_for_one_role_one_wins(
    world: World, admin: Admin, row: Row, sessions: ExitStack
) -> None:
    admin.insert_row(row)
    rivals = [
        sessions.enter_context(world.bind().administer(world.endpoint, world.login))
        for _ in range(3)
    ]
    outcomes = race(*(partial(rival.create_role, row.uid, tenant(row)) for rival in rivals))
    assert sorted(map(str, outcomes)) == sorted(["None", str(NAME_TAKEN), str(NAME_TAKEN)])
    assert known(admin.row(row.uid)).role_oid == role_oid(world, row.role)


def test_changes_of_one_role_at_once_all_succeed(
    world: World, admin: Admin, row: Row, sessions: ExitStack
) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    rivals = [
        sessions.enter_context(world.bind().administer(world.endpoint, world.login))
        for _ in range(4)
    ]
    outcomes = race(
        repeated(partial(rivals[0].set_password, tenant(row))),
        repeated(partial(rivals[1].forbid_login, row.role)),
        repeated(partial(rivals[2].administer_role, row.role)),
        repeated(partial(rivals[3].set_password, tenant(row))),
    )
    assert outcomes == [None] * 4


def test_a_change_by_somebody_else_is_met_by_trying_again(
    world: World, admin: Admin, row: Row
) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    parameters = world.server.parameters(world.server.superuser)
    with psycopg.connect("", **parameters) as stranger, ThreadPoolExecutor(1) as pool:  # type: ignore[arg-type]  # all are text
        stranger.execute(f'ALTER ROLE "{row.role}" CONNECTION LIMIT 5')
        ours = pool.submit(admin.set_password, Login(row.role, "ours"))
        while not world.query(
            "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
        ):
            assert not ours.done()
        stranger.commit()  # without another attempt: tuple concurrently updated
        ours.result()
    assert known(admin.role(row.role)).connection_limit == 5
    assert world.bind().log_in(world.endpoint, Login(row.role, "ours")).role == row.role


def test_a_membership_without_inherit_is_seen_and_repaired(
    world: World, admin: Admin, row: Row
) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    world.server.sql(
        f'GRANT "{row.role}" TO CURRENT_USER WITH INHERIT FALSE, SET FALSE',
        login=world.server.admin,
    )
    assert known(admin.role(row.role)).administered is False
    admin.administer_role(row.role)
    admin.administer_role(row.role)
    assert known(admin.role(row.role)).administered is True


def test_a_strangers_role_cannot_be_administered(world: World, admin: Admin, row: Row) -> None:
    world.sql("CREATE ROLE {} LOGIN", row.role)
    assert ended(lambda: admin.administer_role(row.role)) == Denied(
        "PostgreSQL",
        "cannot give the admin role its rights on the tenant's role:"
        " the role lacks the right to do so",
        code="42501",
    )


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ("NOLOGIN", {"can_login": False}),
        ("VALID UNTIL '2001-01-01'", {"expired": True}),
        ("VALID UNTIL 'infinity'", {}),
        ("CONNECTION LIMIT 0", {"connection_limit": 0}),
        ("CREATEDB", {"elevated": True}),
        ("CREATEROLE", {"elevated": True}),
        ("REPLICATION", {"elevated": True}),
        ("BYPASSRLS", {"elevated": True}),
        ("SUPERUSER", {"elevated": True}),
    ],
)
def test_what_an_operator_has_set_is_seen(
    world: World, admin: Admin, row: Row, options: str, change: dict[str, object]
) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    before = known(admin.role(row.role))
    world.sql(f"ALTER ROLE {{}} {options}", row.role)
    assert admin.role(row.role) == replace(before, **change)  # type: ignore[arg-type]  # mypy does not know the keys


def test_a_password_is_set_again_and_only_that(world: World, admin: Admin, row: Row) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    world.sql("ALTER ROLE {} PASSWORD 'by hand'", row.role)
    assert isinstance(ended(lambda: world.bind().log_in(world.endpoint, tenant(row))), Refused)
    admin.set_password(tenant(row))
    admin.set_password(tenant(row))
    assert world.bind().log_in(world.endpoint, tenant(row)).role == row.role


def test_a_password_for_no_role_is_reported(admin: Admin) -> None:
    assert ended(lambda: admin.set_password(Login("nonesuch", "x"))) == Blocked(
        "PostgreSQL",
        "cannot set the role's password: an object that it needs does not exist",
        code="42704",
    )


def test_forbidding_login_is_repeatable_and_needs_no_role(admin: Admin, row: Row) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    admin.forbid_login(row.role)
    admin.forbid_login(row.role)
    admin.forbid_login("nonesuch")
    assert known(admin.role(row.role)).can_login is False


def test_a_role_is_dropped_by_its_oid_only(world: World, admin: Admin, row: Row) -> None:
    admin.insert_row(row)
    admin.create_role(row.uid, tenant(row))
    before = shape(world, row.role)
    oid = known(admin.role(row.role)).oid
    assert ended(lambda: admin.drop_role(row.role, oid=oid + 1)) == Taken(
        "PostgreSQL", "a role of this name exists that is not the recorded one"
    )
    assert shape(world, row.role) == before
    admin.drop_role(row.role, oid=oid)
    admin.drop_role(row.role, oid=oid)
    assert role_oid(world, row.role) is None


def test_a_role_with_objects_in_another_database_stays(
    world: World, admin: Admin, row: Row
) -> None:
    row = provide(admin, row)
    with world.bind().administer(replace(world.endpoint, database=row.database), tenant(row)):
        pass
    world.server.sql("CREATE TABLE public.kept ()", database=row.database)
    world.sql("ALTER TABLE public.kept OWNER TO {}", row.role, database=row.database)
    assert ended(lambda: admin.drop_role(row.role, oid=known(row.role_oid))) == Blocked(
        "PostgreSQL",
        "cannot drop the role: other objects, maybe in another database, still depend on it",
        code="2BP01",
    )
    assert role_oid(world, row.role) == row.role_oid
