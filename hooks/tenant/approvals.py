"""What an administrator may allow beyond the rule that nothing is made or taken twice in silence.

An approval is an annotation. What was done on its strength is recorded in the registry row, so it
works once and is inert afterwards.
"""

from __future__ import annotations

from hooks.effects.ports import Row
from hooks.tenant.facts import Facts, Instance, Server

_HAND_OVER = "hand-over:"
_NEW_CREDENTIAL = "new-credential:"


def new_credential(facts: Facts, row: Row) -> str | None:
    """Return the approval to make a lost credential anew, unless it was used."""
    if not facts.spec.new_credential:
        return None
    approval = f"{_NEW_CREDENTIAL}{facts.spec.new_credential}"
    return None if approval in row.approvals else approval


def retained_row(facts: Facts, instance: Instance, server: Server) -> Row | None:
    """Return the row that an approved hand-over gives to this Tenant.

    It must be unmanaged, of this Instance and of a Tenant of the same namespace and name, and
    nobody else may have a claim on the database or the role.
    """
    if len(server.rivals) != 1:
        return None
    (row,) = server.rivals
    identity = facts.spec.identity
    fits = (
        row.state == "unmanaged"
        and row.instance_uid == instance.uid
        and (row.namespace, row.name) == (identity.namespace, identity.name)
    )
    return row if fits and (row.uid, identity.uid) in instance.hand_overs else None


def former_uids(row: Row) -> frozenset[str]:
    """Return the UIDs of the Tenants that handed their database over to this one."""
    return frozenset(
        approval.removeprefix(_HAND_OVER)
        for approval in row.approvals
        if approval.startswith(_HAND_OVER)
    )
