"""What is left of a Tenant that is being deleted, read live.

Nothing here reads spec, but for the Instance's name while OpenBao does not know a better one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hooks.core.errors import EffectError, attempt
from hooks.core.manifests import Manifest
from hooks.effects.ports import EXTERNAL_SECRETS, Credential, Database, Role, Row
from hooks.tenant.approvals import former_uids
from hooks.tenant.facts import Instance
from hooks.tenant.model import PHASES, Config, Identity
from hooks.tenant.world import World

DELETING = "Deleting"


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the server holds of the Tenant, by the names in its row.

    Attributes:
        renamed_role, renamed_database: the name that a recorded OID has, if it is another one.
    """

    row: Row | None
    role: Role | None = None
    database: Database | None = None
    renamed_role: str | None = None
    renamed_database: str | None = None


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left of a Tenant.

    Attributes:
        recorded: Delete was written down before: status.phase is Deleting.
        provisioned: the previous status claims that a database was made.
        kv_path: where the credential is, by the row, or derived while there is none.
        instance_name: by the credential's metadata, else by spec.instanceRef.
    """

    identity: Identity
    recorded: bool
    provisioned: bool
    kv_path: str
    instance_name: str
    credential: Credential | EffectError | None = None
    instance: Instance | EffectError | None = None
    server: Holdings | EffectError | None = None
    external_secret: Manifest | EffectError | None = None


def gather(remains: Remains, world: World) -> Remains:
    """Look at what is left, live."""
    services = world.services
    credential = attempt(lambda: services.credentials.read(remains.kv_path))
    remains = replace(remains, credential=credential)
    if isinstance(credential, Credential) and is_ours(remains, credential):
        remains = replace(
            remains, instance_name=credential.owner.get("instance") or remains.instance_name
        )
    instance = attempt(lambda: _instance(remains.instance_name, world))
    remains = replace(remains, instance=instance)
    if not isinstance(instance, Instance):
        return remains
    server = attempt(lambda: _holdings(remains.identity.uid, world))
    remains = replace(remains, server=server)
    row = server.row if isinstance(server, Holdings) else None
    if row is None:
        return remains
    if row.kv_path != remains.kv_path:
        credential = attempt(lambda: services.credentials.read(row.kv_path))
        remains = replace(remains, kv_path=row.kv_path, credential=credential)
    name = f"{row.instance_name}-{row.name}-postgresql"
    return replace(
        remains,
        external_secret=attempt(
            lambda: services.kubernetes.get(EXTERNAL_SECRETS, name, row.namespace)
        ),
    )


def _instance(name: str, world: World) -> Instance | None:
    manifest = world.instance(name) if name else None
    return None if manifest is None else Instance.of(manifest)


def _holdings(uid: str, world: World) -> Holdings:
    admin = world.admin()
    row = admin.row(uid)
    if row is None:
        return Holdings(None)
    role_name, database_name = admin.names_of(
        role_oid=row.role_oid or 0, database_oid=row.database_oid or 0
    )
    return Holdings(
        row,
        role=admin.role(row.role),
        database=admin.database(row.database),
        renamed_role=None if role_name == row.role else role_name,
        renamed_database=None if database_name == row.database else database_name,
    )


def is_ours(remains: Remains, credential: Credential) -> bool:
    """Say whether the credential carries this Tenant's UID, or one that was handed over to it."""
    row = remains.server.row if isinstance(remains.server, Holdings) else None
    ours = {remains.identity.uid} | (former_uids(row) if row else set())
    return credential.owner.get("tenant-uid") in ours


def begin(parent: Manifest, config: Config) -> Remains:
    """Return what the parent itself says, before anything was asked."""
    identity = Identity.of(parent)
    status = parent.get("status") or {}
    spec = parent.get("spec")
    named = spec.get("instanceRef") if isinstance(spec, dict) else None
    return Remains(
        identity=identity,
        recorded=status.get("phase") == DELETING,
        provisioned=status.get("databaseOID") is not None or status.get("phase") in PHASES[2:],
        kv_path=identity.kv_path(config),
        instance_name=named if isinstance(named, str) else "",
    )
