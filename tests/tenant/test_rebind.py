"""After a dump and restore: what the gates call Conflict, an administrator may rebind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from hooks.core import manifests
from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from hooks.tenant.model import Identity
from hooks.tenant.rebind import Plan, Restored, plan, rebind
from tests.builders import CREDENTIAL, DATABASE, OWNER, ROLE, ROW, SEEN_INSTANCE
from tests.tenant.world import INSTANCES, NAMESPACE, TenantWorld

IDENTITY = Identity(uid="tenant-1", namespace="team-a", name="orders", generation=1)

RESTORED = Restored(
    identity=IDENTITY,
    row=ROW,
    instance=SEEN_INSTANCE,
    role=replace(ROLE, oid=30000),
    database=replace(DATABASE, oid=30001, owner_oid=30000),
    old_role=None,
    old_database=None,
    old_instance_lives=True,
    credential=CREDENTIAL,
)


def seen(**changes: Any) -> Restored:  # noqa: ANN401  a table's cells
    return replace(RESTORED, **changes)


def test_new_oids_are_accepted_when_the_old_ones_are_gone() -> None:
    assert plan(RESTORED) == Plan(
        (),
        replace(ROW, role_oid=30000, database_oid=30001),
        ("role OID: 20000 becomes 30000", "database OID: 20001 becomes 30001"),
    )


def test_a_re_created_instance_is_accepted_when_the_old_one_is_gone() -> None:
    successor = replace(SEEN_INSTANCE, uid="instance-2")
    decided = plan(seen(instance=successor, old_instance_lives=False))
    assert decided.row.instance_uid == "instance-2"
    assert decided.owner == OWNER | {"instance-uid": "instance-2"}


def test_nothing_differs() -> None:
    assert plan(seen(role=ROLE, database=DATABASE)) == Plan((), ROW, ())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"role": None}, "role 'orders' is not there", id="no-role"),
        pytest.param({"database": None}, "database 'orders' is not there", id="no-database"),
        pytest.param({"old_role": "orders_old"}, "still there, as 'orders_old'", id="old-role"),
        pytest.param({"old_database": "before"}, "still there, as 'before'", id="old-database"),
        pytest.param({"database": DATABASE}, "is not owned by role", id="other-owner"),
        pytest.param(
            {"role": replace(ROLE, oid=30000, elevated=True)}, "has more rights", id="elevated"
        ),
        pytest.param({"row": replace(ROW, state="unmanaged")}, "is unmanaged", id="unmanaged"),
        pytest.param(
            {"instance": replace(SEEN_INSTANCE, uid="instance-2")},
            "is still there: it is not its successor",
            id="old-instance-lives",
        ),
        pytest.param({"credential": None}, "does not hold this Tenant's credential", id="no-kv"),
        pytest.param(
            {"credential": replace(CREDENTIAL, owner={})},
            "does not hold this Tenant's credential",
            id="foreign-kv",
        ),
    ],
)
def test_what_can_still_be_checked_is_checked(changes: dict[str, Any], problem: str) -> None:
    decided = plan(seen(**changes))
    assert [text for text in decided.problems if problem in text] != []
    assert (decided.row, decided.changes) == (seen(**changes).row, ())


@pytest.fixture
def world(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[TenantWorld]:
    with TenantWorld(postgres, openbao, authority, tmp_path) as made:
        made.make_instance()
        yield made


def run(world: TenantWorld, *, apply: bool) -> Plan:
    return rebind(world.services(), world.config, namespace=NAMESPACE, name=world.name, apply=apply)


def restore(world: TenantWorld) -> None:
    """Drop database and role and make them again, as a restore of a dump does."""
    name, admin = sql.Identifier(world.name), sql.Identifier(world.postgres.admin.name)
    for statement in (
        "DROP DATABASE {name}",
        "DROP ROLE {name}",
        "CREATE ROLE {name} LOGIN",
        "GRANT {name} TO {admin} WITH ADMIN TRUE, INHERIT TRUE, SET TRUE",
        "CREATE DATABASE {name} OWNER {name}",
    ):
        world.postgres.sql(sql.SQL(statement).format(name=name, admin=admin))


def test_a_restored_database_is_a_conflict_until_it_is_rebound(world: TenantWorld) -> None:
    world.make_tenant()
    world.settle()
    restore(world)
    world.settle()
    assert world.ready()["reason"] == "Conflict"
    # Without --apply nothing is written.
    assert len(run(world, apply=False).changes) == 2
    world.settle()
    assert world.ready()["reason"] == "Conflict"
    # With it the Tenant heals: its password, PUBLIC's rights, and all.
    assert run(world, apply=True).problems == ()
    world.settle()
    assert world.ready()["status"] == "True"


def test_a_re_created_instance_is_a_conflict_until_its_tenants_are_rebound(
    world: TenantWorld,
) -> None:
    world.make_tenant()
    world.settle()
    instance = world.get(INSTANCES, "shared")
    instance["metadata"]["finalizers"] = []
    world.cluster.replace(instance)
    world.cluster.delete(INSTANCES, None, "shared")
    made = world.make_instance()
    assert manifests.uid(made) != manifests.uid(instance)
    world.settle()
    assert world.ready()["reason"] == "Conflict"
    assert run(world, apply=True).problems == ()
    world.settle()
    assert world.ready()["status"] == "True"
