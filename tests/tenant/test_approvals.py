"""The explicit ways out: a new credential, and a retained database handed over; each once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hooks.core import manifests
from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from hooks.tenant.model import HAND_OVER, NEW_CREDENTIAL
from tests.builders import merged
from tests.tenant.faults import FAULTS, Fault, Fuse
from tests.tenant.test_faults import catalog, end, normal, once
from tests.tenant.world import INSTANCES, NAMESPACE, TenantWorld

HANDING_OVER = ("hand_over", "reassign")
RENEWING = ("reserve", "store", "record_approval", "set_password")


@pytest.fixture
def world(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[TenantWorld]:
    with TenantWorld(postgres, openbao, authority, tmp_path) as made:
        made.make_instance()
        yield made


def path(world: TenantWorld) -> str:
    return f"postgresql/{NAMESPACE}/{world.name}"


def password(world: TenantWorld) -> str:
    credential = world.services().credentials.read(path(world))
    assert credential is not None
    assert credential.login is not None
    return credential.login.password


def annotate(world: TenantWorld, value: str) -> None:
    tenant = world.tenant()
    world.cluster.replace(merged(tenant, {"metadata": {"annotations": {NEW_CREDENTIAL: value}}}))


def approve_hand_over(world: TenantWorld, old: str, new: str) -> None:
    instance = world.get(INSTANCES, "shared")
    pair = {"metadata": {"annotations": {HAND_OVER: f"{old}={new}"}}}
    world.cluster.replace(merged(instance, pair))


def retained(world: TenantWorld) -> tuple[str, str]:
    """Retain a Tenant and create it again; return the old and the new UID."""
    world.make_tenant(extensions=["pg_trgm"])
    world.settle()
    old = manifests.uid(world.tenant())
    world.delete()
    world.settle()
    world.project()
    world.make_tenant(extensions=["pg_trgm"])
    return old, manifests.uid(world.tenant())


def test_a_retained_database_is_not_taken_over_by_a_tenant_of_the_same_name(
    world: TenantWorld,
) -> None:
    old, new = retained(world)
    before = (catalog(world), password(world))
    world.settle()
    ready = world.ready()
    assert (ready["status"], ready["reason"]) == ("False", "Conflict")
    assert f"{HAND_OVER}: {old}={new}" in ready["message"]
    assert (catalog(world), password(world)) == before


def test_an_approved_hand_over_gives_database_and_password_to_the_new_tenant(
    world: TenantWorld,
) -> None:
    old, new = retained(world)
    before = password(world)
    world.settle()
    approve_hand_over(world, old, new)
    fuse = Fuse()
    world.sync(wrap=fuse.services)
    assert tuple(fuse.writes) == HANDING_OVER
    world.settle()
    assert world.ready()["status"] == "True"
    assert password(world) == before
    # It is used once: the next Tenant of the name needs an approval of its own.
    world.delete()
    world.settle()
    world.make_tenant(extensions=["pg_trgm"])
    world.settle()
    assert world.ready()["reason"] == "Conflict"


def test_a_tenant_that_took_over_deletes_like_any_other(world: TenantWorld) -> None:
    old, new = retained(world)
    approve_hand_over(world, old, new)
    world.edit(deletionPolicy="Delete")
    world.sync(wrap=Fuse(1, "refused").services)  # the row is taken, the credential not yet
    world.delete()
    world.settle()
    assert catalog(world) == {"row": [], "role": [], "database": [], "extensions": []}
    assert world.services().credentials.read(path(world)) is None


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("at", range(len(HANDING_OVER)), ids=lambda at: HANDING_OVER[at])
def test_a_hand_over_ends_the_same_whatever_fails(
    world: TenantWorld, at: int, fault: Fault
) -> None:
    old, new = retained(world)
    before = password(world)
    approve_hand_over(world, old, new)
    fuse = Fuse(at, fault)
    once(world, fuse)
    assert fuse.writes[at] == HANDING_OVER[at]
    world.settle()
    assert world.ready()["status"] == "True"
    assert password(world) == before
    assert catalog(world)["row"][0][-2:] == (True, True)


def lose(world: TenantWorld) -> str:
    """Make a Ready Tenant and lose its credential; return the password that was."""
    world.make_tenant()
    world.settle()
    before = password(world)
    world.services().credentials.destroy(path(world))
    return before


def test_a_lost_credential_stays_lost_without_an_approval(world: TenantWorld) -> None:
    lose(world)
    world.settle()
    ready = world.ready()
    assert (ready["status"], ready["reason"]) == ("False", "Conflict")
    assert NEW_CREDENTIAL in ready["message"]
    assert world.services().credentials.read(path(world)) is None


def test_an_approval_makes_one_new_credential_that_reaches_role_and_secret(
    world: TenantWorld,
) -> None:
    before = lose(world)
    world.settle()
    annotate(world, "ticket-17")
    fuse = Fuse()
    world.sync(wrap=fuse.services)
    assert tuple(fuse.writes) == RENEWING
    world.settle()
    assert world.ready()["status"] == "True"
    assert password(world) != before
    # The same approval does not work twice; another one does.
    world.services().credentials.destroy(path(world))
    world.settle()
    assert world.ready()["reason"] == "Conflict"
    annotate(world, "ticket-18")
    world.settle()
    assert world.ready()["status"] == "True"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("at", range(len(RENEWING)), ids=lambda at: RENEWING[at])
def test_a_renewal_ends_the_same_whatever_fails(world: TenantWorld, at: int, fault: Fault) -> None:
    lose(world)
    annotate(world, "ticket-17")
    fuse = Fuse(at, fault)
    once(world, fuse)
    assert fuse.writes[at] == RENEWING[at]
    world.settle()
    assert world.ready()["status"] == "True"
    assert end(world)["kv"]["version"] == 1
    assert "'ready': 'True'" in normal(world, end(world))
