"""Whoever follows the ways out, command by command, comes out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg import sql

from hooks.core import manifests
from hooks.effects.ports import Credential
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import Kind
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from tests.builders import merged
from tests.docs.manual import Manual
from tests.docs.pages import commands, sql_blocks
from tests.docs.shell import Shell
from tests.tenant.world import INSTANCES, NAMESPACE, TENANTS, TenantWorld

GIVE, REMOVE = "Give a retained database to a new Tenant", "Remove what was retained"
RESTORED, LOST = "A restored database", "A credential that was lost"


@pytest.fixture
def world(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[TenantWorld]:
    with TenantWorld(postgres, openbao, authority, tmp_path, sweep_seconds=0) as made:
        made.make_instance()
        made.make_tenant()
        made.settle()
        yield made


@pytest.fixture
def manual(world: TenantWorld, tmp_path: Path) -> Manual:
    """Log an administrator in to OpenBao, as `bao login` does."""
    (tmp_path / ".vault-token").write_text(world.openbao.root_token)
    return Manual(world, tmp_path)


def credential(world: TenantWorld) -> Credential | None:
    return world.services().credentials.read(f"postgresql/{NAMESPACE}/{world.name}")


def password(world: TenantWorld) -> str:
    found = credential(world)
    assert found is not None
    assert found.login is not None
    return found.login.password


def message(world: TenantWorld, reason: str = "Conflict") -> str:
    """Sync until nothing moves, and return why the Tenant is not Ready."""
    world.settle()
    ready = world.ready()
    assert (ready["status"], ready["reason"]) == ("False", reason)
    return str(ready["message"])


def create_again(world: TenantWorld, manual: Manual) -> None:
    """Retain the Tenant's database, and create it once more under its name."""
    old = manifests.uid(world.tenant())
    world.delete()
    world.settle()
    world.project()
    world.make_tenant()
    manual.places = {"OLD_UID": old, "NEW_UID": manifests.uid(world.tenant())}


def left(world: TenantWorld) -> list[object]:
    """Return what the server and the registry have under the Tenant's name."""
    query = (
        "SELECT 'database' FROM pg_database WHERE datname = %s"
        " UNION ALL SELECT 'role' FROM pg_roles WHERE rolname = %s"
        " UNION ALL SELECT 'row' FROM tenant_registry.tenant WHERE name = %s"
    )
    return [kind for (kind,) in world.postgres.sql(query, [world.name] * 3)]


def test_a_retained_database_goes_to_the_new_tenant(world: TenantWorld, manual: Manual) -> None:
    before = password(world)
    create_again(world, manual)
    assert "was retained by an earlier Tenant of this name" in message(world)
    manual.follow(*commands(GIVE))
    assert password(world) == before


def test_what_is_handed_over_to_many_is_read_from_their_messages(
    world: TenantWorld, manual: Manual, tmp_path: Path
) -> None:
    create_again(world, manual)
    (hand_over,) = commands("Restore Tenants")
    shell = Shell(tmp_path)
    other = "11111111-0000-4000-8000-000000000001=11111111-0000-4000-8000-000000000002"
    shell.types(hand_over, listed=f"it is Ready\n{message(world)}\nhand-over: {other}\n")
    pair = f"{manual.places['OLD_UID']}={manual.places['NEW_UID']}"
    assert shell.annotations() == {"database.ddupan.top/hand-over": f"{pair},{other}"}


def test_what_was_retained_is_removed_by_a_tenant_that_gets_it(
    world: TenantWorld, manual: Manual
) -> None:
    create_again(world, manual)
    manual.follow(*commands(GIVE), *commands(REMOVE))
    assert (left(world), credential(world)) == ([], None)


def test_a_restored_database_is_accepted(world: TenantWorld, manual: Manual) -> None:
    name = sql.Identifier(world.name)
    for statement in ("DROP DATABASE {}", "DROP ROLE {}"):
        world.postgres.sql(sql.SQL(statement).format(name))
    (restore,) = sql_blocks(RESTORED)
    manual.type_sql(restore)
    assert "is not the one that was created for this Tenant" in message(world)
    show, do, _for_all = commands(RESTORED)
    manual.follow(show)
    assert [line.split(":")[0] for line in manual.said] == ["role OID", "database OID"]
    message(world)
    manual.follow(do)
    assert [line.endswith("(done)") for line in manual.said] == [True, True]


def take_away(world: TenantWorld, kind: Kind, name: str, namespace: str | None = None) -> str:
    """Let an object go as an administrator does: without the program. Return its UID."""
    found = world.get(kind, name, namespace)
    world.cluster.replace(merged(found, {"metadata": {"finalizers": []}}))
    world.cluster.delete(kind, namespace, name)
    return manifests.uid(found)


def test_a_re_created_instance_is_accepted(world: TenantWorld, manual: Manual) -> None:
    take_away(world, INSTANCES, "shared")
    world.make_instance()
    assert "belongs to an earlier PostgreSQLInstance" in message(world)
    _show, do, _for_all = commands(RESTORED)
    manual.follow(do)


def test_objects_that_are_all_new_get_the_databases_back(
    world: TenantWorld, manual: Manual
) -> None:
    before = password(world)
    old = take_away(world, TENANTS, world.name, NAMESPACE)
    old_instance = take_away(world, INSTANCES, "shared")
    instance = manifests.uid(world.make_instance())
    world.project()
    world.make_tenant()
    manual.places = {
        "OLD_INSTANCE_UID": old_instance,
        "INSTANCE_UID": instance,
        "OLD_UID": old,
        "NEW_UID": manifests.uid(world.tenant()),
    }
    manual.type_sql(*sql_blocks("Rows of an earlier Instance"))
    assert "is registered for an earlier Tenant of this name" in message(world)
    world.sync_instance()
    assert "was retained by an earlier Tenant of this name" in message(world)
    manual.follow(*commands(GIVE))
    assert password(world) == before


def test_a_deleted_version_comes_back(world: TenantWorld, manual: Manual) -> None:
    before = password(world)
    manual.follow("bao kv delete -mount=secret postgresql/team-a/orders\n")
    assert "was deleted or destroyed" in message(world)
    look, undelete, _rollback, _approve = commands(LOST)
    manual.follow(look, undelete)
    world.settle()
    assert (world.ready()["status"], password(world)) == ("True", before)


def test_an_overwritten_credential_is_rolled_back(world: TenantWorld, manual: Manual) -> None:
    before = password(world)
    manual.follow("bao kv put -mount=secret postgresql/team-a/orders something=else\n")
    assert "was overwritten" in message(world)
    look, _undelete, rollback, _approve = commands(LOST)
    manual.follow(look, rollback)
    world.settle()
    assert (world.ready()["status"], password(world)) == ("True", before)


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param("destroy -versions=1", id="the value"),
        pytest.param("metadata delete", id="the path"),
    ],
)
def test_a_lost_credential_is_made_anew(world: TenantWorld, manual: Manual, loss: str) -> None:
    before = password(world)
    manual.follow(f"bao kv {loss} -mount=secret postgresql/team-a/orders\n")
    message(world)
    *_, approve = commands(LOST)
    manual.follow(approve)
    assert password(world) != before


def test_a_password_is_changed(world: TenantWorld, manual: Manual) -> None:
    before = password(world)
    manual.follow(*commands("Change a password"))
    world.settle()
    assert (world.ready()["status"], password(world) != before) == ("True", True)


def test_the_marks_of_a_credential_are_written_again(world: TenantWorld, manual: Manual) -> None:
    before = credential(world)
    manual.follow(
        "bao kv metadata patch -mount=secret -remove-custom-metadata=tenant-uid"
        " postgresql/team-a/orders\n"
    )
    assert "belongs to somebody else" in message(world)
    manual.places = {
        "TENANT_UID": manifests.uid(world.tenant()),
        "INSTANCE_UID": manifests.uid(world.get(INSTANCES, "shared")),
    }
    manual.follow(*commands("The marks of a credential"))
    assert credential(world) == before
