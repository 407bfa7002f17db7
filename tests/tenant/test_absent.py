"""Facts in, decision out: every gate of a Tenant that is being deleted with policy Delete."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hooks.core.decision import Act, Met, Stuck, Wait
from hooks.core.errors import Unavailable
from hooks.tenant import actions
from hooks.tenant.absent import ABSENT, DROPS_CHILDREN, absent
from hooks.tenant.model import Identity
from hooks.tenant.remains import Holdings, Remains
from tests.builders import (
    CREDENTIAL,
    DATABASE,
    ROLE,
    ROW,
    SEEN_INSTANCE,
    external_secret,
)

DOWN = Unavailable("PostgreSQL", "timed out")
DELETING = replace(ROW, state="deleting")

EVERYTHING = Remains(
    identity=Identity(uid="tenant-1", namespace="team-a", name="orders", generation=2),
    recorded=True,
    provisioned=True,
    kv_path=ROW.kv_path,
    instance_name="shared",
    credential=CREDENTIAL,
    instance=SEEN_INSTANCE,
    server=Holdings(DELETING, role=ROLE, database=DATABASE),
    external_secret=None,
)
"""Deletion is recorded, the ExternalSecret is gone, all else is still there."""

FOREIGN = replace(CREDENTIAL, owner={"tenant-uid": "other"})


def left(**changes: Any) -> Remains:  # noqa: ANN401  a table's cells
    return replace(EVERYTHING, **changes)


def held(**changes: Any) -> Remains:  # noqa: ANN401  a table's cells
    server = EVERYTHING.server
    assert isinstance(server, Holdings)
    return replace(EVERYTHING, server=replace(server, **changes))


def outcome(seen: Remains) -> tuple[str, object]:
    decision = absent(seen)
    match decision.verdict:
        case Act(action=action):
            return decision.gate, action
        case Wait(reason=reason) | Stuck(reason=reason):
            return decision.gate, reason
        case Met():
            return decision.gate, "gone"


def test_the_gates_stand_in_the_order_of_the_contract() -> None:
    assert [gate.name for gate in ABSENT] == [
        "RemainsKnown",
        "DeletionRecorded",
        "ExternalSecretGone",
        "LoginsForbidden",
        "DatabaseGone",
        "RoleGone",
        "CredentialGone",
        "RowGone",
    ]
    assert {gate.name for gate in ABSENT[2:]} == DROPS_CHILDREN


NOLOGIN = replace(ROLE, can_login=False)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(left(recorded=False, server=Holdings(ROW)), "Reconciling", id="first-call"),
        pytest.param(held(row=ROW), actions.MarkDeleting("tenant-1"), id="recorded-in-status-only"),
        pytest.param(left(external_secret=external_secret()), "Reconciling", id="es-there"),
        pytest.param(EVERYTHING, actions.ForbidLogin("orders"), id="es-gone"),
        pytest.param(
            held(role=NOLOGIN), actions.DropDatabase("orders", 20001), id="logins-forbidden"
        ),
        pytest.param(
            held(role=NOLOGIN, database=None),
            actions.DropRole("orders", 20000),
            id="database-gone",
        ),
        pytest.param(
            held(role=None, database=None),
            actions.DestroyCredential(ROW.kv_path),
            id="role-gone",
        ),
        pytest.param(
            left(server=Holdings(DELETING), credential=None),
            actions.DeleteRow("tenant-1"),
            id="credential-gone",
        ),
        pytest.param(left(server=Holdings(None), credential=None), "gone", id="row-gone"),
    ],
)
def test_each_step_follows_the_one_before(seen: Remains, expected: object) -> None:
    assert outcome(seen)[1] == expected


@pytest.mark.parametrize(
    ("seen", "gate", "expected"),
    [
        pytest.param(left(server=DOWN), "RemainsKnown", "InstanceNotReady", id="server-down"),
        pytest.param(
            left(instance=Unavailable("Kubernetes", "timed out"), server=None),
            "RemainsKnown",
            "DependencyUnavailable",
            id="api-down",
        ),
        pytest.param(
            left(instance=None, server=None, credential=DOWN),
            "RemainsKnown",
            "DependencyUnavailable",
            id="kv-down-and-no-instance",
        ),
        pytest.param(
            left(instance=None, server=None), "RemainsKnown", "InstanceNotReady", id="no-instance"
        ),
        pytest.param(
            left(instance=None, server=None, credential=None),
            "RemainsKnown",
            "InstanceNotReady",
            id="no-instance-but-status-claims-a-database",
        ),
        pytest.param(left(server=Holdings(None)), "RemainsKnown", "Conflict", id="kv-without-row"),
        pytest.param(
            left(server=Holdings(None), credential=DOWN),
            "RemainsKnown",
            "DependencyUnavailable",
            id="no-row-and-kv-down",
        ),
        pytest.param(
            held(row=replace(DELETING, instance_uid="instance-0")),
            "DeletionRecorded",
            "Conflict",
            id="row-of-an-earlier-instance",
        ),
        pytest.param(left(credential=FOREIGN), "DeletionRecorded", "Conflict", id="foreign-kv"),
        pytest.param(
            held(role=None, renamed_role="aside"),
            "DeletionRecorded",
            "ProvisioningFailed",
            id="role-renamed",
        ),
        pytest.param(
            held(database=None, renamed_database="aside"),
            "DeletionRecorded",
            "ProvisioningFailed",
            id="database-renamed",
        ),
        pytest.param(
            left(external_secret=DOWN),
            "ExternalSecretGone",
            "DependencyUnavailable",
            id="es-unreadable",
        ),
        pytest.param(
            held(role=replace(ROLE, oid=1)), "LoginsForbidden", "Conflict", id="other-role"
        ),
        pytest.param(
            held(role=NOLOGIN, database=replace(DATABASE, oid=1)),
            "DatabaseGone",
            "Conflict",
            id="other-database",
        ),
        pytest.param(
            left(credential=DOWN),
            "RemainsKnown",
            "DependencyUnavailable",
            id="kv-down-so-its-uid-is-not-proved",
        ),
    ],
)
def test_nothing_is_destroyed_over_a_doubt(seen: Remains, gate: str, expected: str) -> None:
    assert outcome(seen) == (gate, expected)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(
            left(provisioned=False, instance=None, server=None, credential=None), id="no-instance"
        ),
        pytest.param(left(server=Holdings(None), credential=None), id="nothing-recorded"),
        pytest.param(left(server=Holdings(None), credential=FOREIGN), id="the-loser-of-two"),
        pytest.param(held(row=replace(ROW, state="unmanaged")), id="retain-was-observed-first"),
    ],
)
def test_what_was_never_made_or_was_let_go_is_finalized_at_once(seen: Remains) -> None:
    assert outcome(seen) == ("", "gone")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(
            held(row=replace(DELETING, database_oid=None), role=NOLOGIN),
            actions.DropDatabase("orders", 20001),
            id="created-but-not-recorded",
        ),
        pytest.param(
            held(
                row=replace(DELETING, database_oid=None),
                role=NOLOGIN,
                database=replace(DATABASE, owner_oid=1),
            ),
            actions.DropRole("orders", 20000),
            id="somebody-elses-database-of-our-name",
        ),
        pytest.param(
            held(row=replace(DELETING, database_oid=None, role_oid=None), database=None),
            actions.DestroyCredential(ROW.kv_path),
            id="somebody-elses-role-of-our-name",
        ),
    ],
)
def test_only_what_we_made_is_dropped(seen: Remains, expected: object) -> None:
    assert outcome(seen)[1] == expected
