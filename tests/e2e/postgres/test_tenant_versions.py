"""A Tenant's life through the hooks, on every version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from tests.e2e.postgres.suits import Suits, only
from tests.tenant.world import INSTANCES, TenantWorld


@pytest.fixture
def tenants(
    server: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[TenantWorld]:
    with TenantWorld(server, openbao, authority, tmp_path) as world:
        world.make_instance()
        yield world


def extensions(tenants: TenantWorld) -> set[object]:
    rows = tenants.postgres.sql("SELECT extname::text FROM pg_extension", database=tenants.name)
    return {column for [column] in rows}


def names(tenants: TenantWorld) -> list[object]:
    """Return what the server has under the Tenant's name."""
    rows = tenants.postgres.sql(
        "SELECT 'database' FROM pg_database WHERE datname = %s"
        " UNION ALL SELECT 'role' FROM pg_roles WHERE rolname = %s"
        " UNION ALL SELECT 'row' FROM tenant_registry.tenant WHERE name = %s"
        " ORDER BY 1",
        [tenants.name] * 3,
    )
    return [column for [column] in rows]


def readiness(manifest: Manifest) -> tuple[str, str]:
    ready = manifests.condition(manifest, "Ready")
    return ready["status"], ready["reason"]


def repairs(tenants: TenantWorld) -> list[str]:
    """Sync, and return the writes by name."""
    tenants.effects.clear()
    tenants.sync()
    return [type(effect.action).__name__ for effect in tenants.effects]


@pytest.mark.parametrize("kind", ["createrole", "superuser"])
def test_a_tenant_is_provided_repaired_and_removed(tenants: TenantWorld, kind: str) -> None:
    if kind == "superuser":
        tenants.make_instance(login=tenants.postgres.superuser)
    tenants.make_tenant(extensions=["hstore", "uuid-ossp"], deletionPolicy="Delete")
    assert readiness(tenants.settle()) == ("True", "Ready")
    assert extensions(tenants) == {"plpgsql", "hstore", "uuid-ossp"}
    tenants.postgres.sql(f"ALTER ROLE {tenants.name} PASSWORD 'by hand'")
    tenants.postgres.sql(f"GRANT CONNECT ON DATABASE {tenants.name} TO PUBLIC")
    assert repairs(tenants) == ["SetPassword", "SecureDatabase"]
    assert readiness(tenants.tenant()) == ("True", "Ready")
    assert repairs(tenants) == []
    tenants.delete()
    tenants.settle()
    assert names(tenants) == []


@only(Suits(since=16))
def test_since_16_a_membership_without_inherit_is_repaired(tenants: TenantWorld) -> None:
    tenants.make_tenant()
    tenants.settle()
    tenants.postgres.sql(
        f"GRANT {tenants.name} TO CURRENT_USER WITH INHERIT FALSE", login=tenants.postgres.admin
    )
    assert repairs(tenants) == ["AdministerRole"]
    assert readiness(tenants.tenant()) == ("True", "Ready")


def test_an_admin_that_does_not_inherit_is_refused_before_16(
    tenants: TenantWorld, version: int
) -> None:
    tenants.postgres.sql(f"ALTER ROLE {tenants.postgres.admin.name} NOINHERIT")
    try:
        tenants.sync_instance()
    finally:
        tenants.postgres.sql(f"ALTER ROLE {tenants.postgres.admin.name} INHERIT")
    refused = version < 16
    assert readiness(tenants.get(INSTANCES, "shared")) == (
        ("False", "InsufficientPrivileges") if refused else ("True", "Ready")
    )
