"""Whatever write is cut off, lost, refused or doubled, the world ends the same.

The list of writes is not written here: a run without faults counts them, and each is then made to
fail in each way.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.effects.ports import Admin, CredentialStore, Login, Postgres
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import EXTERNAL_SECRET, SECRET
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from tests.tenant.faults import FAULTS, READS, Fault, Fuse, Killed
from tests.tenant.world import NAMESPACE, TENANTS, TenantWorld

EXTENSIONS = ["pg_trgm", "hstore"]
PROVISIONING = (
    "insert_row",
    "reserve",
    "store",
    "create_role",
    "create_database",
    "secure_database",
    "create_extension",
    "create_extension",
    "record_extensions",
)
REMOVING = ("mark", "forbid_login", "drop_database", "drop_role", "destroy", "delete_row")


@pytest.fixture
def world(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[TenantWorld]:
    with TenantWorld(postgres, openbao, authority, tmp_path) as made:
        made.make_instance()
        yield made


def test_every_port_method_is_a_read_by_name_or_a_write() -> None:
    methods = {
        name
        for port in (Admin, Postgres, CredentialStore)
        for name, _ in inspect.getmembers(port, inspect.isfunction)
        if not name.startswith("_")
    }
    assert methods >= READS
    assert methods - READS == {
        *PROVISIONING,
        *REMOVING,
        "administer_role",
        "hand_over",
        "migrate",
        "reassign",
        "rebind",
        "record_approval",
        "record_sweep",
        "rewrite_row",
        "set_password",
    }


def test_the_writes_of_a_life_are_those_that_get_faults(world: TenantWorld) -> None:
    world.make_tenant(extensions=EXTENSIONS, deletionPolicy="Delete")
    fuse = Fuse()
    world.sync(wrap=fuse.services)
    assert tuple(fuse.writes) == PROVISIONING
    world.settle()
    world.delete()
    fuse = Fuse()
    for _ in range(3):
        world.sync(wrap=fuse.services)
        world.project()
    assert tuple(fuse.writes) == REMOVING


def catalog(world: TenantWorld) -> dict[str, Any]:
    """Return what the server holds under the Tenant's name, without OIDs and times."""
    sql, name = world.postgres.sql, world.name
    row = sql(
        "SELECT state, namespace, name, database_name, role_name, kv_path, secret_name, extensions,"
        " role_oid = (SELECT oid FROM pg_roles WHERE rolname = role_name),"
        " database_oid = (SELECT oid FROM pg_database WHERE datname = database_name)"
        " FROM tenant_registry.tenant WHERE name = %s",
        [name],
    )
    role = sql(
        "SELECT rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolconnlimit FROM pg_roles"
        " WHERE rolname = %s",
        [name],
    )
    database = sql(
        "SELECT pg_get_userbyid(datdba), datallowconn, datconnlimit, datistemplate, datacl::text"
        " FROM pg_database WHERE datname = %s",
        [name],
    )
    extensions = (
        sql("SELECT extname::text FROM pg_extension ORDER BY 1", database=name) if database else []
    )
    return {"row": row, "role": role, "database": database, "extensions": extensions}


def stored(world: TenantWorld) -> dict[str, Any]:
    """Return what KV holds: version and owner; the password is compared where it is used."""
    credential = world.services().credentials.read(f"postgresql/{NAMESPACE}/{world.name}")
    if credential is None:
        return {}
    owner = {key: value for key, value in credential.owner.items() if not key.endswith("-uid")}
    return {"version": credential.version, "owner": owner, "lost": credential.lost}


def objects(world: TenantWorld) -> dict[str, Any]:
    """Return the ExternalSecret, the Secret's keys and the Tenant's status."""
    there = world.cluster.get(TENANTS, NAMESPACE, world.name)
    if there is None:
        return {"tenant": None, "children": len(world.cluster.list(EXTERNAL_SECRET))}
    status: Manifest = there["status"]
    return {
        "phase": status["phase"],
        "ready": world.ready()["status"],
        "children": [
            child["spec"]["target"]["name"] for child in world.cluster.list(EXTERNAL_SECRET)
        ],
        "secret": [sorted(secret["data"]) for secret in own_secrets(world)],
    }


def own_secrets(world: TenantWorld) -> list[Manifest]:
    return [
        secret
        for secret in world.cluster.list(SECRET, NAMESPACE)
        if manifests.name(secret).endswith(f"{world.name}-postgresql")
    ]


def end(world: TenantWorld) -> dict[str, Any]:
    return {"server": catalog(world), "kv": stored(world), "objects": objects(world)}


def normal(world: TenantWorld, seen: dict[str, Any]) -> str:
    """Return a world's end as text in which the Tenant's own name is a word."""
    return repr(seen).replace(world.name, "NAME")


def ready_end(world: TenantWorld) -> dict[str, Any]:
    world.settle()
    return end(world)


@pytest.fixture(scope="module")
def reference(
    postgres: PostgresServer,
    openbao: OpenBaoServer,
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, str]:
    """How the world ends when nothing goes wrong: Ready, and gone."""
    directory = tmp_path_factory.mktemp("reference")
    with TenantWorld(postgres, openbao, authority, directory) as world:
        world.make_instance()
        world.make_tenant(extensions=EXTENSIONS, deletionPolicy="Delete")
        ready = normal(world, ready_end(world))
        world.delete()
        return {"ready": ready, "gone": normal(world, ready_end(world))}


def test_nothing_is_left_of_a_deleted_tenant(reference: dict[str, str]) -> None:
    assert reference["gone"] == repr(
        {
            "server": {"row": [], "role": [], "database": [], "extensions": []},
            "kv": {},
            "objects": {"tenant": None, "children": 0},
        }
    )


def once(world: TenantWorld, fuse: Fuse) -> None:
    """Sync with a fault; a call that was killed leaves no answer."""
    try:
        world.sync(wrap=fuse.services)
    except Killed:
        world.project()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("at", range(len(PROVISIONING)), ids=lambda at: f"{at}-{PROVISIONING[at]}")
def test_provisioning_ends_the_same(
    world: TenantWorld, reference: dict[str, str], at: int, fault: Fault
) -> None:
    world.make_tenant(extensions=EXTENSIONS, deletionPolicy="Delete")
    fuse = Fuse(at, fault)
    once(world, fuse)
    assert fuse.writes[at] == PROVISIONING[at]
    world.settle()
    assert normal(world, end(world)) == reference["ready"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("at", range(len(REMOVING)), ids=lambda at: f"{at}-{REMOVING[at]}")
def test_removing_ends_the_same(
    world: TenantWorld, reference: dict[str, str], at: int, fault: Fault
) -> None:
    world.make_tenant(extensions=EXTENSIONS, deletionPolicy="Delete")
    world.settle()
    world.delete()
    fuse = Fuse(at, fault)
    for _ in range(3):
        if len(fuse.writes) <= at:
            once(world, fuse)
            world.project()
    assert fuse.writes[at] == REMOVING[at]
    world.settle()
    assert normal(world, end(world)) == reference["gone"]


def test_the_password_stays_the_same_through_every_crash(world: TenantWorld) -> None:
    world.make_tenant(extensions=EXTENSIONS)
    path = f"postgresql/{NAMESPACE}/{world.name}"
    seen: set[Login] = set()
    for at in range(len(PROVISIONING)):
        once(world, Fuse(at, "killed after"))
        credential = world.services().credentials.read(path)
        if credential is not None and credential.login is not None:
            seen.add(credential.login)
    world.settle()
    assert world.ready()["status"] == "True"
    assert len(seen) == 1
