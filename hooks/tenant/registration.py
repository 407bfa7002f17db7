"""Is the Tenant's registry row there, ours, and as the spec says?

The row is the baseline of everything that may not change. It is written before anything else is
made, and only over no doubt.
"""

from __future__ import annotations

from hooks.core.decision import Act, Met, Stuck, Verdict, Wait
from hooks.core.errors import EffectError
from hooks.effects.ports import Credential, Row
from hooks.tenant import approvals
from hooks.tenant.actions import InsertRow, Provision, ReviveRow, RewriteRow, TakeOverRow
from hooks.tenant.facts import Facts, Instance, Server
from hooks.tenant.model import PHASES
from hooks.tenant.ownership import (
    catalog_stranger,
    foreign_credential,
    gone,
    is_ours,
    object_stranger,
    rival,
)
from hooks.tenant.reasons import (
    CONFLICT,
    DEPENDENCY_UNAVAILABLE,
    IMMUTABLE_FIELD,
    PROVISIONING_FAILED,
    RECONCILING,
)


def registered(facts: Facts) -> Verdict[Provision]:
    """The registry row is ours, and says what the spec says."""
    instance, server = facts.the_instance, facts.the_server
    if server.row is None:
        return _unregistered(facts, instance, server)
    return _own_row(facts, instance, server, server.row) or Met()


def _unregistered(facts: Facts, instance: Instance, server: Server) -> Verdict[Provision]:
    """Judge a Tenant of which the registry knows nothing."""
    credential, past = facts.credential, facts.past
    if isinstance(credential, Credential) and is_ours(facts, credential):
        before = credential.owner.get("instance", "")
        if before != instance.name:
            return _another_instance(before)
    retained = approvals.retained_row(facts, instance, server)
    if retained is not None:
        return _hand_over(facts, retained)
    provisioned = past.phase in PHASES[2:] or past.database_oid is not None
    if provisioned:
        # Unread: were the phase to fall, the next look would take this for a new Tenant.
        return Wait(
            CONFLICT,
            "status says that a database was provisioned, but the registry of"
            f" PostgreSQLInstance {instance.name} has no row of this Tenant: the endpoint was"
            " moved or the server restored; nothing was created",
            unread=True,
        )
    obstacle = (
        rival(facts, server)
        or _credential_obstacle(facts)
        or catalog_stranger(server)
        or object_stranger(facts)
        or gone(facts)
    )
    return obstacle or Act(
        InsertRow(intent(facts, instance)),
        PROVISIONING_FAILED,
        "recording the names in the registry",
    )


def _another_instance(before: str) -> Stuck:
    return Stuck(
        IMMUTABLE_FIELD,
        f"spec.instanceRef was {before!r} when the names were recorded and cannot change: set it"
        " back",
    )


def _hand_over(facts: Facts, retained: Row) -> Verdict[Provision]:
    """Take the retained row: its database, role and credential prove themselves afterwards."""
    credential = facts.credential
    if isinstance(credential, EffectError):
        return Wait.on(credential, reason=DEPENDENCY_UNAVAILABLE)
    if credential is None or credential.owner.get("tenant-uid") != retained.uid:
        return Stuck(
            CONFLICT,
            f"the hand-over is approved, but OpenBao path {retained.kv_path} does not hold the"
            " credential of the Tenant that retained the database: restore it first",
        )
    return (
        object_stranger(facts)
        or gone(facts)
        or Act(
            TakeOverRow(retained.uid, facts.spec.identity.uid),
            PROVISIONING_FAILED,
            "taking over the retained database",
        )
    )


def _credential_obstacle(facts: Facts) -> Stuck | Wait | None:
    credential = facts.credential
    if isinstance(credential, EffectError):
        return Wait.on(credential, reason=DEPENDENCY_UNAVAILABLE)
    if credential is None:
        return None
    if not is_ours(facts, credential):
        return foreign_credential(facts)
    return Stuck(
        CONFLICT,
        f"OpenBao holds a credential of this Tenant at {facts.spec.kv_path}, but the registry has"
        " no row of it: the Instance was re-created or the server restored; nothing was created",
    )


def _own_row(
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
        return gone(facts) or Act(
            ReviveRow(row.uid), PROVISIONING_FAILED, "taking the registry row back under management"
        )
    return None


def _row_fault(facts: Facts, instance: Instance, row: Row) -> Stuck | Wait | None:
    if row.instance_name != instance.name:
        return _another_instance(row.instance_name)
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
            rival(facts, server)
            or object_stranger(facts)
            or Act(
                RewriteRow(intent(facts, instance)),
                PROVISIONING_FAILED,
                "recording the changed names",
            )
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
