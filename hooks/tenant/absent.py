"""When is a Tenant with policy Delete gone, and what is the next step towards it?

Names come from the registry row by UID, never from the spec, so a broken spec deletes too.
Ownership (row, OIDs, the UID in KV) is proved before each step; what is already gone is success.
"""

from __future__ import annotations

from collections.abc import Callable

from hooks.core import manifests
from hooks.core.decision import Act, Decision, Gate, Met, Stuck, Verdict, Wait, decide
from hooks.core.errors import EffectError
from hooks.effects.ports import Credential, Role, Row
from hooks.tenant.actions import (
    DeleteRow,
    DestroyCredential,
    DropDatabase,
    DropRole,
    ForbidLogin,
    MarkDeleting,
    Removal,
)
from hooks.tenant.facts import Instance
from hooks.tenant.reasons import (
    CONFLICT,
    DEPENDENCY_UNAVAILABLE,
    INSTANCE_NOT_READY,
    PROVISIONING_FAILED,
    RECONCILING,
)
from hooks.tenant.remains import Holdings, Remains, is_ours


def known(remains: Remains) -> Verdict[Removal]:
    """It is known what there is to delete, or that there is nothing."""
    server = remains.server
    if isinstance(remains.instance, EffectError):
        return Wait.on(remains.instance, reason=DEPENDENCY_UNAVAILABLE)
    if isinstance(server, EffectError):
        subject = f"PostgreSQLInstance {instance_name(remains)}"
        return Wait.on(server, reason=INSTANCE_NOT_READY, subject=subject)
    if isinstance(remains.credential, EffectError):
        return Wait.on(remains.credential, reason=DEPENDENCY_UNAVAILABLE)
    if server is not None and server.row is not None:
        return Met()
    return _without_instance(remains) if server is None else _without_row(remains)


def instance_name(remains: Remains) -> str:
    """Return the Instance's name, or a word for none."""
    return remains.instance_name or "(none named)"


def _without_instance(remains: Remains) -> Verdict[Removal]:
    credential = remains.credential
    ours = isinstance(credential, Credential) and is_ours(remains, credential)
    if not ours and not remains.provisioned:
        return Met()
    return Wait(
        INSTANCE_NOT_READY,
        f"PostgreSQLInstance {instance_name(remains)} does not exist, so nothing can be dropped on"
        " its server: drop the database there by hand, or give it up, then remove this Tenant's"
        " finalizer",
    )


def _without_row(remains: Remains) -> Verdict[Removal]:
    credential = remains.credential
    if not isinstance(credential, Credential) or not is_ours(remains, credential):
        return Met()
    return Stuck(
        CONFLICT,
        f"OpenBao holds a credential of this Tenant at {remains.kv_path}, but the registry has no"
        " row of it, so nothing proves which database is its own: nothing was deleted",
    )


def marked(remains: Remains) -> Verdict[Removal]:
    """Delete is written down twice, in status and in the row, before anything is destroyed."""
    row = _row(remains)
    if row is None:
        return Met()
    instance = remains.instance
    if isinstance(instance, Instance) and row.instance_uid != instance.uid:
        return Stuck(
            CONFLICT, "the registry row belongs to an earlier Instance: nothing was deleted"
        )
    if isinstance(remains.credential, Credential) and not is_ours(remains, remains.credential):
        return Stuck(
            CONFLICT,
            f"the credential at {remains.kv_path} belongs to somebody else: nothing was deleted",
        )
    if row.state == "deleting":
        return _renamed(remains) or Met()
    if not remains.recorded:
        return Wait(RECONCILING, "deleting: the policy is Delete", recheck=1.0)
    return Act(MarkDeleting(row.uid), PROVISIONING_FAILED, "recording the deletion")


def _renamed(remains: Remains) -> Stuck | None:
    """Report what an operator renamed: gone by name, and still there."""
    server = remains.server
    assert isinstance(server, Holdings)  # noqa: S101  behind the gate known
    for kind, name in (("role", server.renamed_role), ("database", server.renamed_database)):
        if name is not None:
            return Stuck(
                PROVISIONING_FAILED,
                f"the {kind} of this Tenant was renamed to {name!r}: nothing more is deleted until"
                " it has its name again, or is dropped",
            )
    return None


def external_secret_gone(remains: Remains) -> Verdict[Removal]:
    """Applications lose the projected credential first."""
    observed = remains.external_secret
    if isinstance(observed, EffectError):
        return Wait.on(observed, reason=DEPENDENCY_UNAVAILABLE)
    if observed is None or manifests.controller_uid(observed) != remains.identity.uid:
        return Met()
    return Wait(
        RECONCILING,
        f"waiting for ExternalSecret {manifests.name(observed)} to go: if External Secrets does not"
        " run any more, remove the finalizer that it left there",
        recheck=2.0,
    )


def _ours_by_oid(kind: str, name: str, there: int, recorded: int | None) -> Stuck | None:
    if recorded == there:
        return None
    return Stuck(
        CONFLICT,
        f"{kind} {name!r} is not the one that was created for this Tenant: it was not touched;"
        " rename or remove it",
    )


def logins_forbidden(remains: Remains) -> Verdict[Removal]:
    """Nobody opens a new session as the owner."""
    row, role = _row(remains), _role(remains)
    if row is None or role is None or row.role_oid is None:
        return Met()
    foreign = _ours_by_oid("role", row.role, role.oid, row.role_oid)
    if foreign or not role.can_login:
        return foreign or Met()
    return Act(ForbidLogin(row.role), PROVISIONING_FAILED, f"forbidding logins of {row.role!r}")


def database_gone(remains: Remains) -> Verdict[Removal]:
    """The database is dropped; one that was created but not yet recorded, too."""
    row = _row(remains)
    database = remains.server.database if isinstance(remains.server, Holdings) else None
    if row is None or database is None:
        return Met()
    if row.database_oid is None and database.owner_oid != row.role_oid:
        return Met()
    recorded = database.oid if row.database_oid is None else row.database_oid
    return _ours_by_oid("database", row.database, database.oid, recorded) or Act(
        DropDatabase(row.database, database.oid),
        PROVISIONING_FAILED,
        f"dropping database {row.database!r}",
    )


def role_gone(remains: Remains) -> Verdict[Removal]:
    """The role is dropped; objects it owns elsewhere are reported, not dropped."""
    row, role = _row(remains), _role(remains)
    if row is None or role is None or row.role_oid is None:
        return Met()
    return _ours_by_oid("role", row.role, role.oid, row.role_oid) or Act(
        DropRole(row.role, role.oid), PROVISIONING_FAILED, f"dropping role {row.role!r}"
    )


def credential_gone(remains: Remains) -> Verdict[Removal]:
    """All versions of the password are deleted."""
    credential = remains.credential
    if not isinstance(credential, Credential) or not is_ours(remains, credential):
        return Met()
    return Act(DestroyCredential(remains.kv_path), PROVISIONING_FAILED, "deleting the credential")


def row_gone(remains: Remains) -> Verdict[Removal]:
    """The registry forgets the Tenant, last of all."""
    row = _row(remains)
    if row is None:
        return Met()
    return Act(DeleteRow(row.uid), PROVISIONING_FAILED, "deleting the registry row")


def _row(remains: Remains) -> Row | None:
    return remains.server.row if isinstance(remains.server, Holdings) else None


def _role(remains: Remains) -> Role | None:
    return remains.server.role if isinstance(remains.server, Holdings) else None


def retained(remains: Remains) -> bool:
    """Say whether Retain was observed first: the row is unmanaged already."""
    row = _row(remains)
    return row is not None and row.state == "unmanaged"


def _unless_retained(
    judge: Callable[[Remains], Verdict[Removal]],
) -> Callable[[Remains], Verdict[Removal]]:
    return lambda remains: Met() if retained(remains) else judge(remains)


_FAILURES = frozenset({CONFLICT, DEPENDENCY_UNAVAILABLE, INSTANCE_NOT_READY, PROVISIONING_FAILED})

ABSENT: tuple[Gate[Remains, Removal], ...] = tuple(
    Gate(name, _unless_retained(judge), "", _FAILURES)
    for name, judge in (
        ("RemainsKnown", known),
        ("DeletionRecorded", marked),
        ("ExternalSecretGone", external_secret_gone),
        ("LoginsForbidden", logins_forbidden),
        ("DatabaseGone", database_gone),
        ("RoleGone", role_gone),
        ("CredentialGone", credential_gone),
        ("RowGone", row_gone),
    )
)

DROPS_CHILDREN = frozenset(name for name in (gate.name for gate in ABSENT[2:]))
"""Once deletion is recorded, and only then, the ExternalSecret is no longer listed."""


def absent(remains: Remains) -> Decision[Removal]:
    """Judge what a Tenant with policy Delete still needs to be gone."""
    return decide(ABSENT, remains)
