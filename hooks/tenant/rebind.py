"""Accept what a restore changed: other OIDs, another Instance UID. For an administrator only.

After a dump and restore the database and its role are the Tenant's own by every sign but the
OIDs, and an Instance that was created again has another UID. The gates call that a Conflict, for
a name is not a proof. Here an administrator, who knows where the dump came from, gives the proof.
What can be checked still is: the old OIDs are gone, names and owner fit, the credential is ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from hooks.core import manifests
from hooks.core.errors import Misconfigured, Taken, Unavailable
from hooks.core.manifests import Manifest
from hooks.effects.ports import (
    INSTANCES,
    TENANTS,
    Credential,
    Database,
    Role,
    Row,
    Services,
)
from hooks.tenant.facts import Instance
from hooks.tenant.model import Config, Identity
from hooks.tenant.world import World


@dataclass(frozen=True, slots=True)
class Restored:
    """What was found under the Tenant's names.

    Attributes:
        old_role, old_database: names that the recorded OIDs have now, None when they are gone.
        old_instance_lives: an Instance with the recorded UID is still there.
    """

    identity: Identity
    row: Row
    instance: Instance
    role: Role | None
    database: Database | None
    old_role: str | None
    old_database: str | None
    old_instance_lives: bool
    credential: Credential | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rebind would write, or why it will not.

    Attributes:
        problems: each keeps the rebind from happening.
        row: the row as it would be.
        changes: in words, one for each difference; empty when there is nothing to do.
        owner: the credential's new custom metadata, None when it stays.
    """

    problems: tuple[str, ...]
    row: Row
    changes: tuple[str, ...] = ()
    owner: dict[str, str] | None = None


def plan(seen: Restored) -> Plan:
    """Decide; pure."""
    problems = tuple(_problems(seen))
    if problems or seen.role is None or seen.database is None:
        return Plan(problems, seen.row)
    row = replace(
        seen.row,
        instance_uid=seen.instance.uid,
        role_oid=seen.role.oid,
        database_oid=seen.database.oid,
    )
    changes = [
        f"{what}: {before} becomes {now}"
        for what, before, now in (
            ("Instance UID", seen.row.instance_uid, row.instance_uid),
            ("role OID", seen.row.role_oid, row.role_oid),
            ("database OID", seen.row.database_oid, row.database_oid),
        )
        if before != now
    ]
    owner = seen.identity.owner(row.instance_name, row.instance_uid)
    stays = seen.credential is not None and dict(seen.credential.owner) == owner
    if not stays:
        changes.append("the credential's custom metadata names the new Instance UID")
    return Plan((), row, tuple(changes), None if stays else owner)


def _problems(seen: Restored) -> Iterator[str]:
    row = seen.row
    if row.state != "managed":
        yield f"the registry row is {row.state}, only a managed one is rebound"
    if row.instance_uid != seen.instance.uid and seen.old_instance_lives:
        yield "the PostgreSQLInstance that the row names is still there: it is not its successor"
    if seen.credential is None or seen.credential.owner.get("tenant-uid") != row.uid:
        yield f"OpenBao path {row.kv_path} does not hold this Tenant's credential: restore it first"
    yield from _catalog_problems(seen)


def _catalog_problems(seen: Restored) -> Iterator[str]:
    row, role, database = seen.row, seen.role, seen.database
    if role is None:
        yield f"role {row.role!r} is not there: restore it first"
    elif role.oid != row.role_oid and seen.old_role is not None:
        yield f"the recorded role is still there, as {seen.old_role!r}: {row.role!r} is another one"
    elif role.elevated:
        yield f"role {row.role!r} has more rights than a tenant may have"
    if database is None:
        yield f"database {row.database!r} is not there: restore it first"
        return
    if database.oid != row.database_oid and seen.old_database is not None:
        yield (
            f"the recorded database is still there, as {seen.old_database!r}:"
            f" {row.database!r} is another one"
        )
    if role is not None and database.owner_oid != role.oid:
        yield f"database {row.database!r} is not owned by role {row.role!r}: run ALTER DATABASE"


def rebind(services: Services, config: Config, *, namespace: str, name: str, apply: bool) -> Plan:
    """Look, and with `apply` write, under the Tenant's lock.

    Raises:
        EffectError: something cannot be read or written, or another call holds the lock.
    """
    tenant = services.kubernetes.get(TENANTS, name, namespace)
    if tenant is None:
        raise Misconfigured("Kubernetes", f"PostgreSQLTenant {namespace}/{name} is not there")
    with ExitStack() as stack:
        world = World(services, config, stack)
        instance = world.instance(str((tenant.get("spec") or {}).get("instanceRef") or ""))
        if instance is None:
            raise Misconfigured("Kubernetes", "the PostgreSQLInstance of the Tenant is not there")
        with world.lock(manifests.uid(tenant)) as held:
            if not held:
                raise Unavailable("PostgreSQL", "a sync of this Tenant is running: try again")
            decided = plan(_look(tenant, instance, world))
            if apply and not decided.problems:
                _write(decided, world)
            return decided


def _look(tenant: Manifest, instance: Manifest, world: World) -> Restored:
    identity, admin = Identity.of(tenant), world.admin()
    row = admin.row(identity.uid)
    if row is None:
        raise Taken("PostgreSQL", "the registry has no row of this Tenant")
    old_role, old_database = admin.names_of(
        role_oid=row.role_oid or 0, database_oid=row.database_oid or 0
    )
    instances = world.services.kubernetes.list(INSTANCES)
    return Restored(
        identity=identity,
        row=row,
        instance=Instance.of(instance),
        role=admin.role(row.role),
        database=admin.database(row.database),
        old_role=old_role,
        old_database=old_database,
        old_instance_lives=row.instance_uid in {manifests.uid(other) for other in instances},
        credential=world.services.credentials.read(row.kv_path),
    )


def _write(decided: Plan, world: World) -> None:
    """Write KV first: a row that is rebound must find its credential."""
    if decided.owner is not None:
        world.services.credentials.reassign(decided.row.kv_path, decided.owner, was=decided.row.uid)
    if decided.changes:
        world.admin().rebind(decided.row)
