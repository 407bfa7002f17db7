"""Does KV hold the Tenant's credential? One is made only while KV says that there never was any.

The exceptions need an administrator's approval, see `approvals`.
"""

from __future__ import annotations

from hooks.core.decision import Act, Met, Stuck, Verdict, Wait
from hooks.core.errors import EffectError, Misconfigured
from hooks.effects.ports import Credential, Row
from hooks.tenant import approvals, ownership, projection
from hooks.tenant.actions import (
    Provision,
    RecordApproval,
    ReserveCredential,
    StoreCredential,
    TakeOverCredential,
)
from hooks.tenant.facts import Facts
from hooks.tenant.model import NEW_CREDENTIAL
from hooks.tenant.reasons import CONFLICT, DEPENDENCY_UNAVAILABLE, PROVISIONING_FAILED


def stored(facts: Facts) -> Verdict[Provision]:
    """KV holds our credential, and it has not changed hands."""
    credential, row = facts.credential, facts.the_row
    if isinstance(credential, EffectError):
        serving = not isinstance(credential, Misconfigured) and projection.serving(facts)
        return Met() if serving else Wait.on(credential, reason=DEPENDENCY_UNAVAILABLE)
    if credential is None:
        return _absent(facts, row)
    if not ownership.is_ours(facts, credential):
        return _foreign(facts, credential, row)
    if credential.owner.get("instance-uid") != row.instance_uid:
        return Stuck(
            CONFLICT,
            f"the credential at {row.kv_path} was made for another PostgreSQLInstance (another"
            " UID)",
        )
    return _own(facts, credential, row)


def _absent(facts: Facts, row: Row) -> Verdict[Provision]:
    if row.role_oid is not None and approvals.new_credential(facts, row) is None:
        return _lost(row, "is gone")
    reserve = ReserveCredential(row.kv_path, row.instance_name, row.instance_uid)
    return Act(reserve, DEPENDENCY_UNAVAILABLE, "reserving the credential's path")


def _foreign(facts: Facts, credential: Credential, row: Row) -> Verdict[Provision]:
    before = credential.owner.get("tenant-uid", "")
    if before not in approvals.former_uids(row):
        return ownership.foreign_credential(facts)
    take = TakeOverCredential(row.kv_path, row.instance_name, row.instance_uid, before)
    return Act(take, DEPENDENCY_UNAVAILABLE, "taking over the credential")


def _own(facts: Facts, credential: Credential, row: Row) -> Verdict[Provision]:
    approval = approvals.new_credential(facts, row)
    fresh = credential.version == 0 and row.role_oid is None
    missing = credential.lost or credential.version == 0
    if missing and not fresh and approval is None:
        return _lost(row, "was deleted or destroyed")
    if missing:
        store = StoreCredential(row.kv_path, row.role, credential.version)
        return Act(store, DEPENDENCY_UNAVAILABLE, "storing the credential")
    if credential.login is None or credential.login.username != row.role:
        return Stuck(
            CONFLICT,
            f"the credential at {row.kv_path} was overwritten: it must hold username"
            f" {row.role!r} and a password; restore the earlier version",
        )
    if approval is not None:
        return Act(
            RecordApproval(row.uid, approval), PROVISIONING_FAILED, "recording the approval as used"
        )
    return Met()


def _lost(row: Row, what: str) -> Stuck:
    return Stuck(
        CONFLICT,
        f"the credential at {row.kv_path} {what}: restore it in OpenBao, or have a new one made"
        f" by annotating this Tenant with {NEW_CREDENTIAL} and a value not used before",
    )
