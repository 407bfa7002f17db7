"""Whose is it? Judge names that somebody else may hold, and what may not change any more.

A name is not a proof. The proofs are: the registry row of our UID and Instance, the OIDs it
recorded, the UID in the credential's custom metadata, and the controlling owner of the
ExternalSecret.
"""

from __future__ import annotations

from hooks.core import manifests
from hooks.core.decision import Act, Stuck, Verdict, Wait
from hooks.core.errors import EffectError
from hooks.effects.ports import Credential, Row, Secret
from hooks.tenant.actions import InsertRow, Provision, ReviveRow, RewriteRow
from hooks.tenant.facts import Facts, Instance, Server
from hooks.tenant.model import PHASES
from hooks.tenant.reasons import (
    CONFLICT,
    DEPENDENCY_UNAVAILABLE,
    IMMUTABLE_FIELD,
    RECONCILING,
)


def unregistered(facts: Facts, instance: Instance, server: Server) -> Verdict[Provision]:
    """Judge a Tenant of which the registry knows nothing."""
    past = facts.past
    provisioned = past.phase in PHASES[2:] or past.database_oid is not None
    if provisioned:
        return Stuck(
            CONFLICT,
            "status says that a database was provisioned, but the registry of"
            f" PostgreSQLInstance {instance.name} has no row of this Tenant: the endpoint was"
            " moved or the server restored; nothing was created",
        )
    obstacle = (
        _rival(facts, server)
        or _credential_obstacle(facts, instance)
        or _catalog_stranger(server)
        or object_stranger(facts)
        or _gone(facts)
    )
    return obstacle or Act(
        InsertRow(intent(facts, instance)), CONFLICT, "recording the names in the registry"
    )


def _credential_obstacle(facts: Facts, instance: Instance) -> Stuck | Wait | None:
    credential = facts.credential
    if isinstance(credential, EffectError):
        return Wait.on(credential, reason=DEPENDENCY_UNAVAILABLE)
    if credential is None:
        return None
    if not is_ours(facts, credential):
        return foreign_credential(facts)
    before = credential.owner.get("instance", "")
    if before != instance.name:
        return Stuck(
            IMMUTABLE_FIELD,
            f"spec.instanceRef was {before!r} when the credential was created: set it back",
        )
    return Stuck(
        CONFLICT,
        f"OpenBao holds a credential of this Tenant at {facts.spec.kv_path}, but the registry has"
        " no row of it: the Instance was re-created or the server restored; nothing was created",
    )


def is_ours(facts: Facts, credential: Credential) -> bool:
    """Say whether the credential carries this Tenant's UID."""
    return credential.owner.get("tenant-uid") == facts.spec.identity.uid


def foreign_credential(facts: Facts) -> Stuck:
    """Report a credential that carries another UID, or none."""
    return Stuck(
        CONFLICT,
        f"OpenBao path {facts.spec.kv_path} belongs to somebody else (its custom metadata does not"
        " name this Tenant): choose another Tenant name, or find out whose credential it is",
    )


def _rival(facts: Facts, server: Server) -> Stuck | None:
    for row in server.rivals:
        same = (row.namespace, row.name) == (
            facts.spec.identity.namespace,
            facts.spec.identity.name,
        )
        what = (
            f"database {row.database!r}"
            if row.database == facts.spec.database
            else f"role {row.role!r}"
        )
        who = "an earlier Tenant of this name" if same else f"Tenant {row.namespace}/{row.name}"
        state = " (unmanaged: it was retained)" if row.state == "unmanaged" else ""
        return Stuck(CONFLICT, f"{what} is registered for {who}{state}: choose another name")
    return None


def _catalog_stranger(server: Server) -> Stuck | None:
    for kind, there in (("database", server.database), ("role", server.role)):
        if there is not None:
            return Stuck(
                CONFLICT,
                f"a {kind} of this name exists on the server and was not created for this Tenant:"
                f" choose another name, or have the {kind} removed",
            )
    return None


def object_stranger(facts: Facts) -> Stuck | Wait | None:
    """Judge the names of the ExternalSecret and, until there is one, of the Secret."""
    spec, observed, secret = facts.spec, facts.external_secret, facts.secret
    if isinstance(observed, EffectError):
        return Wait.on(observed, reason=DEPENDENCY_UNAVAILABLE)
    if observed is not None:
        if manifests.controller_uid(observed) == spec.identity.uid:
            return None
        return Stuck(
            CONFLICT,
            f"ExternalSecret {spec.external_secret_name} exists and is not controlled by this"
            " Tenant: remove it",
        )
    if isinstance(secret, EffectError):
        return Wait.on(secret, reason=DEPENDENCY_UNAVAILABLE)
    if isinstance(secret, Secret):
        return Stuck(
            CONFLICT,
            f"Secret {spec.secret_name} exists and was not projected for this Tenant: remove it,"
            " or set spec.credential.secretName",
        )
    return None


def _gone(facts: Facts) -> Wait | None:
    if isinstance(facts.live, EffectError):
        return Wait.on(facts.live, reason=DEPENDENCY_UNAVAILABLE)
    if facts.live is False:
        return Wait(RECONCILING, "this Tenant is gone or being deleted", unread=True)
    return None


def intent(facts: Facts, instance: Instance) -> Row:
    """Return the row that a Tenant's spec asks for."""
    spec = facts.spec
    return Row(
        uid=spec.identity.uid,
        instance_uid=instance.uid,
        instance_name=instance.name,
        namespace=spec.identity.namespace,
        name=spec.identity.name,
        database=spec.database,
        role=spec.role,
        kv_path=spec.kv_path,
        secret_name=spec.secret_name,
    )


def registered(
    facts: Facts, instance: Instance, server: Server, row: Row
) -> Verdict[Provision] | None:
    """Judge the Tenant's own row; None when nothing speaks against it."""
    fault = _row_fault(facts, instance, row)
    if fault is not None:
        return fault
    changed = _changed(facts, row)
    if changed:
        return _edited(facts, instance, server, row, changed)
    if row.state == "unmanaged":
        return _gone(facts) or Act(
            ReviveRow(row.uid), CONFLICT, "taking the registry row back under management"
        )
    return None


def _row_fault(facts: Facts, instance: Instance, row: Row) -> Stuck | Wait | None:
    if row.instance_uid != instance.uid:
        return Stuck(
            CONFLICT,
            f"the registry row belongs to an earlier PostgreSQLInstance {instance.name} (another"
            " UID): a re-created Instance inherits nothing",
        )
    if row.state == "deleting":
        return Wait(RECONCILING, "this Tenant is being deleted", unread=True)
    if row.kv_path != facts.spec.kv_path:
        return Stuck(
            CONFLICT,
            f"the credential was stored at {row.kv_path} and would now be at"
            f" {facts.spec.kv_path}: set the base path of the deployment back",
        )
    return None


def _edited(
    facts: Facts, instance: Instance, server: Server, row: Row, changed: list[str]
) -> Verdict[Provision]:
    if _nothing_made(facts, server, row):
        return (
            _rival(facts, server)
            or object_stranger(facts)
            or Act(RewriteRow(intent(facts, instance)), CONFLICT, "recording the changed names")
        )
    if isinstance(facts.credential, EffectError) and row.role_oid is None:
        return Wait.on(facts.credential, reason=DEPENDENCY_UNAVAILABLE)
    return Stuck(IMMUTABLE_FIELD, "; ".join(changed))


def _changed(facts: Facts, row: Row) -> list[str]:
    spec = facts.spec
    changed = [
        f"{path} was {before!r} when the database was provisioned and cannot change: set it back"
        for path, before, now in (
            ("spec.database", row.database, spec.database),
            ("spec.loginRole", row.role, spec.role),
            ("spec.credential.secretName", row.secret_name, spec.secret_name),
            ("spec.instanceRef", row.instance_name, spec.instance),
        )
        if before != now
    ]
    removed = ", ".join(sorted(row.extensions - spec.extensions))
    if removed:
        changed.append(
            f"spec.extensions: {removed} was installed and can only be added to, nothing was"
            " dropped: list it again"
        )
    return changed


def _nothing_made(facts: Facts, server: Server, row: Row) -> bool:
    return (
        row.state == "planned"
        and row.role_oid is None
        and facts.credential is None
        and server.role is None
        and facts.external_secret is None
    )
