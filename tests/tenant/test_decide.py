"""Facts in, decision out: every gate of a Tenant, in the order of the gates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hooks.core.decision import Act, Decision, Met, Stuck, Wait
from hooks.core.errors import Denied, EffectError, Misconfigured, Refused, Unavailable
from hooks.effects.ports import Available, Credential, Login, Presence, Row
from hooks.tenant import actions
from hooks.tenant.decide import PRESENT, present
from hooks.tenant.facts import Facts, Past, Server
from hooks.tenant.registration import intent
from tests.builders import (
    CREDENTIAL,
    DATABASE,
    FRESH,
    NOW,
    OWNER,
    PG_TRGM,
    READY,
    ROLE,
    ROW,
    SECRET,
    SEEN_INSTANCE,
    SEEN_SERVER,
    external_secret,
    spec,
)

DOWN = Unavailable("PostgreSQL", "timed out")
KV_DOWN = Unavailable("OpenBao", "sealed")
API_DOWN = Unavailable("Kubernetes", "timed out")


def server(**changes: Any) -> Server:  # noqa: ANN401  a table's cells
    return replace(SEEN_SERVER, **changes)


def row(**changes: Any) -> Row:  # noqa: ANN401  a table's cells
    return replace(ROW, **changes)


PLANNED = row(state="planned", role_oid=None, database_oid=None)
INTENT = replace(PLANNED, extensions=frozenset())
MADE_ROLE = row(database_oid=None)


def facts(base: Facts = READY, **changes: Any) -> Facts:  # noqa: ANN401  a table's cells
    return replace(base, **changes)


def outcome(seen: Facts) -> tuple[str, str, object]:
    """Say what was decided without the words for people: gate, phase, reason or action."""
    decision = present(seen)
    match decision.verdict:
        case Act(action=action):
            return decision.gate, decision.phase, action
        case Wait(reason=reason) | Stuck(reason=reason):
            return decision.gate, decision.phase, reason
        case Met():
            return decision.gate, decision.phase, "Ready"


def test_a_ready_tenant_wants_nothing() -> None:
    assert present(READY) == Decision("Ready", "", Met())


def test_the_gates_stand_in_the_order_of_the_contract() -> None:
    assert [(gate.name, gate.phase) for gate in PRESENT] == [
        ("InstanceReady", "Pending"),
        ("NamesAllowed", "Pending"),
        ("ExtensionsAvailable", "Pending"),
        ("Registered", "Planned"),
        ("CredentialStored", "CredentialCreated"),
        ("RoleReady", "RoleCreated"),
        ("DatabaseReady", "DatabaseCreated"),
        ("ExternalSecretObserved", "ExternalSecretCreated"),
        ("CredentialProjected", "CredentialProjected"),
        ("LoginWorks", "Ready"),
    ]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(facts(instance=API_DOWN), "DependencyUnavailable", id="api-down"),
        pytest.param(facts(instance=None), "InstanceNotReady", id="absent"),
        pytest.param(
            facts(instance=replace(SEEN_INSTANCE, deleting=True, usable=False)),
            "InstanceNotReady",
            id="deleting",
        ),
        pytest.param(
            facts(instance=replace(SEEN_INSTANCE, usable=False)), "InstanceNotReady", id="not-ready"
        ),
        pytest.param(facts(server=DOWN), "InstanceNotReady", id="server-down"),
        pytest.param(
            facts(server=Refused("PostgreSQL", "the admin login was refused")),
            "InstanceNotReady",
            id="admin-refused",
        ),
    ],
)
def test_without_a_ready_instance_nothing_is_judged(seen: Facts, expected: str) -> None:
    assert outcome(seen) == ("InstanceReady", "", expected)
    verdict = present(seen).verdict
    assert isinstance(verdict, Wait)
    assert verdict.unread


@pytest.mark.parametrize(
    ("seen", "gate"),
    [
        pytest.param(
            facts(
                FRESH,
                spec=spec(database="admin_db"),
                instance=replace(
                    SEEN_INSTANCE, endpoint=replace(SEEN_INSTANCE.endpoint, database="admin_db")
                ),
            ),
            "NamesAllowed",
            id="administrative-database",
        ),
        pytest.param(
            facts(FRESH, spec=spec(loginRole="database_admin")), "NamesAllowed", id="admin-role"
        ),
        pytest.param(
            facts(FRESH, spec=spec(extensions=["nonesuch"])), "ExtensionsAvailable", id="nonesuch"
        ),
    ],
)
def test_names_that_the_server_cannot_give_are_invalid_before_any_write(
    seen: Facts, gate: str
) -> None:
    assert outcome(seen) == (gate, "Pending", "InvalidSpec")


def test_a_fresh_tenant_is_registered_first() -> None:
    assert outcome(FRESH) == ("Registered", "Pending", actions.InsertRow(INTENT))
    assert intent(FRESH, SEEN_INSTANCE) == INTENT


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"past": Past("CredentialCreated", None, {})}, "Conflict", id="status-says-credential"
        ),
        pytest.param({"past": Past("Pending", 20001, {})}, "Conflict", id="status-says-oid"),
        pytest.param({"credential": KV_DOWN}, "DependencyUnavailable", id="kv-unreadable"),
        pytest.param(
            {"credential": replace(CREDENTIAL, owner={"tenant-uid": "other"})},
            "Conflict",
            id="foreign-credential",
        ),
        pytest.param(
            {"credential": replace(CREDENTIAL, owner={})}, "Conflict", id="unmarked-credential"
        ),
        pytest.param(
            {"credential": replace(CREDENTIAL, owner=OWNER | {"instance": "before"})},
            "ImmutableField",
            id="instance-ref-was-changed",
        ),
        pytest.param({"credential": CREDENTIAL}, "Conflict", id="credential-without-row"),
        pytest.param(
            {"server": Server(None, (row(uid="other"),), None, None, "database_admin")},
            "Conflict",
            id="registered-for-another",
        ),
        pytest.param(
            {
                "server": Server(
                    None,
                    (row(uid="other", database="theirs", role="theirs"),),
                    None,
                    None,
                    "database_admin",
                )
            },
            "Conflict",
            id="secret-name-registered-for-another",
        ),
        pytest.param(
            {"server": Server(None, (), ROLE, None, "database_admin")},
            "Conflict",
            id="foreign-role",
        ),
        pytest.param(
            {"server": Server(None, (), None, DATABASE, "database_admin")},
            "Conflict",
            id="foreign-database",
        ),
        pytest.param({"external_secret": API_DOWN}, "DependencyUnavailable", id="api-down"),
        pytest.param(
            {"external_secret": external_secret(metadata={"ownerReferences": []})},
            "Conflict",
            id="foreign-external-secret",
        ),
        pytest.param({"secret": SECRET}, "Conflict", id="foreign-secret"),
        pytest.param({"secret": API_DOWN}, "DependencyUnavailable", id="secret-unreadable"),
        pytest.param({"live": False}, "Reconciling", id="tenant-is-gone"),
        pytest.param({"live": API_DOWN}, "DependencyUnavailable", id="liveness-unknown"),
    ],
)
def test_nothing_is_registered_over_a_doubt(changes: dict[str, Any], expected: str) -> None:
    assert outcome(facts(FRESH, **changes)) == ("Registered", "Pending", expected)


@pytest.mark.parametrize(
    ("own", "wanted", "expected"),
    [
        pytest.param(row(instance_uid="instance-0"), spec(), "Conflict", id="earlier-instance"),
        pytest.param(row(state="deleting"), spec(), "Reconciling", id="being-deleted"),
        pytest.param(row(kv_path="elsewhere/team-a/orders"), spec(), "Conflict", id="base-path"),
        pytest.param(ROW, spec(database="other"), "ImmutableField", id="database"),
        pytest.param(ROW, spec(loginRole="other"), "ImmutableField", id="role"),
        pytest.param(
            ROW, spec(credential={"secretName": "other"}), "ImmutableField", id="secret-name"
        ),
        pytest.param(
            row(extensions=frozenset({"pg_trgm"})), spec(), "ImmutableField", id="extension-removed"
        ),
        pytest.param(
            row(state="unmanaged"), spec(), actions.ReviveRow("tenant-1"), id="marked-by-mistake"
        ),
    ],
)
def test_the_row_is_the_baseline(own: Row, wanted: object, expected: object) -> None:
    seen = facts(spec=wanted, server=server(row=own))
    assert outcome(seen) == ("Registered", "Pending", expected)


def test_a_status_that_was_wiped_makes_no_field_mutable() -> None:
    seen = facts(spec=spec(database="other"), past=Past("", None, {}))
    assert outcome(seen)[2] == "ImmutableField"


def test_names_may_change_while_nothing_was_made() -> None:
    seen = facts(
        FRESH, spec=spec(database="other"), server=Server(PLANNED, (), None, None, "database_admin")
    )
    assert outcome(seen)[2] == actions.RewriteRow(replace(INTENT, database="other"))


def test_an_unmanaged_row_of_a_gone_tenant_is_not_revived() -> None:
    seen = facts(server=server(row=row(state="unmanaged")), live=False)
    assert outcome(seen) == ("Registered", "Pending", "Reconciling")


RESERVE = actions.ReserveCredential(ROW.kv_path, "shared", "instance-1")
STORE = actions.StoreCredential(ROW.kv_path, "orders", after=0)
RESERVED = Credential(version=0, owner=OWNER, login=None)


@pytest.mark.parametrize(
    ("own", "credential", "expected"),
    [
        pytest.param(PLANNED, None, RESERVE, id="nothing"),
        pytest.param(PLANNED, RESERVED, STORE, id="reserved"),
        pytest.param(ROW, None, "Conflict", id="gone-later"),
        pytest.param(ROW, RESERVED, "Conflict", id="emptied-later"),
        pytest.param(
            ROW, replace(CREDENTIAL, login=None, lost=True), "Conflict", id="version-deleted"
        ),
        pytest.param(
            PLANNED, replace(CREDENTIAL, login=None, lost=True), "Conflict", id="deleted-early"
        ),
        pytest.param(
            ROW, replace(CREDENTIAL, owner={"tenant-uid": "other"}), "Conflict", id="foreign"
        ),
        pytest.param(
            ROW,
            replace(CREDENTIAL, owner=OWNER | {"instance-uid": "instance-0"}),
            "Conflict",
            id="other-instance",
        ),
        pytest.param(
            ROW, replace(CREDENTIAL, login=Login("intruder", "x")), "Conflict", id="overwritten"
        ),
        pytest.param(PLANNED, KV_DOWN, "DependencyUnavailable", id="unreadable"),
        pytest.param(
            PLANNED, Denied("OpenBao", "permission denied"), "DependencyUnavailable", id="denied"
        ),
    ],
)
def test_a_password_is_made_only_while_kv_says_that_there_never_was_one(
    own: Row, credential: object, expected: object
) -> None:
    seen = facts(FRESH, server=Server(own, (), None, None, "database_admin"), credential=credential)
    assert outcome(seen) == ("CredentialStored", "Planned", expected)


APPROVED = "new-credential:yes-1"
APPROVED_SPEC = replace(READY.spec, new_credential="yes-1")
LOST = replace(CREDENTIAL, version=4, login=None, lost=True)


@pytest.mark.parametrize(
    ("own", "credential", "expected"),
    [
        pytest.param(ROW, None, RESERVE, id="gone"),
        pytest.param(ROW, RESERVED, STORE, id="reserved-again"),
        pytest.param(ROW, LOST, replace(STORE, after=4), id="version-deleted"),
        pytest.param(
            ROW, CREDENTIAL, actions.RecordApproval("tenant-1", APPROVED), id="there-mark-as-used"
        ),
        pytest.param(row(approvals=frozenset({APPROVED})), None, "Conflict", id="gone-again"),
        pytest.param(row(approvals=frozenset({APPROVED})), LOST, "Conflict", id="deleted-again"),
        pytest.param(
            ROW, replace(CREDENTIAL, owner={"tenant-uid": "other"}), "Conflict", id="foreign"
        ),
    ],
)
def test_a_lost_credential_is_made_anew_once_when_that_is_approved(
    own: Row, credential: object, expected: object
) -> None:
    seen = facts(spec=APPROVED_SPEC, server=server(row=own), credential=credential)
    assert outcome(seen) == ("CredentialStored", "Planned", expected)


def test_an_approval_that_was_used_changes_nothing() -> None:
    used = server(row=row(approvals=frozenset({APPROVED})))
    assert outcome(facts(spec=APPROVED_SPEC, server=used)) == ("", "Ready", "Ready")


RETAINED = row(uid="tenant-0", state="unmanaged")
BEFORE_HAND_OVER = facts(
    FRESH,
    instance=replace(SEEN_INSTANCE, hand_overs=frozenset({("tenant-0", "tenant-1")})),
    server=Server(None, (RETAINED,), ROLE, DATABASE, "database_admin"),
    credential=replace(CREDENTIAL, owner=OWNER | {"tenant-uid": "tenant-0"}),
)


def test_a_retained_database_is_handed_over_when_that_is_approved_on_the_instance() -> None:
    assert outcome(BEFORE_HAND_OVER)[2] == actions.TakeOverRow("tenant-0", "tenant-1")
    handed = server(row=row(approvals=frozenset({"hand-over:tenant-0"})))
    assert outcome(replace(BEFORE_HAND_OVER, server=handed))[2] == actions.TakeOverCredential(
        ROW.kv_path, "shared", "instance-1", "tenant-0"
    )


def test_a_tenant_that_was_restored_with_its_status_is_handed_over_too() -> None:
    restored = replace(BEFORE_HAND_OVER, past=Past("Ready", 16400, {}))
    assert outcome(restored)[2] == actions.TakeOverRow("tenant-0", "tenant-1")
    unapproved = replace(restored, instance=SEEN_INSTANCE)
    assert outcome(unapproved)[2] == "Conflict"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"instance": SEEN_INSTANCE}, id="not-approved"),
        pytest.param(
            {"instance": replace(SEEN_INSTANCE, hand_overs=frozenset({("tenant-0", "tenant-2")}))},
            id="approved-for-another",
        ),
        pytest.param(
            {
                "server": Server(
                    None, (replace(RETAINED, state="managed"),), ROLE, DATABASE, "database_admin"
                )
            },
            id="still-managed",
        ),
        pytest.param(
            {
                "server": Server(
                    None, (replace(RETAINED, namespace="team-b"),), ROLE, DATABASE, "database_admin"
                )
            },
            id="other-namespace",
        ),
        pytest.param(
            {
                "server": Server(
                    None,
                    (RETAINED, replace(RETAINED, uid="tenant-9", database="other")),
                    ROLE,
                    DATABASE,
                    "database_admin",
                )
            },
            id="somebody-else-has-a-claim-too",
        ),
        pytest.param({"credential": None}, id="its-credential-is-gone"),
        pytest.param({"secret": SECRET}, id="a-foreign-secret"),
    ],
)
def test_without_all_of_it_nothing_is_handed_over(changes: dict[str, Any]) -> None:
    assert outcome(replace(BEFORE_HAND_OVER, **changes)) == ("Registered", "Pending", "Conflict")


def test_a_ready_tenant_stays_ready_while_openbao_cannot_be_read() -> None:
    assert outcome(facts(credential=KV_DOWN)) == ("", "Ready", "Ready")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"login": DOWN}, id="login-fails"),
        pytest.param({"secret": None}, id="no-secret"),
        pytest.param({"external_secret": None, "secret": None}, id="no-external-secret"),
    ],
)
def test_without_a_login_that_works_an_unreadable_openbao_counts(
    changes: dict[str, Any],
) -> None:
    assert outcome(facts(credential=KV_DOWN, **changes))[2] == "DependencyUnavailable"


def test_a_missing_mount_is_no_passing_outage() -> None:
    seen = facts(credential=Misconfigured("OpenBao", "no such mount"))
    assert outcome(seen) == ("CredentialStored", "Planned", "DependencyUnavailable")


@pytest.mark.parametrize(
    ("own", "role", "login", "expected"),
    [
        pytest.param(PLANNED, None, None, actions.CreateRole("tenant-1", "orders"), id="none"),
        pytest.param(PLANNED, ROLE, None, "Conflict", id="somebody-was-first"),
        pytest.param(ROW, None, None, "Conflict", id="dropped-by-hand"),
        pytest.param(ROW, replace(ROLE, oid=1), None, "Conflict", id="made-again-by-hand"),
        pytest.param(ROW, replace(ROLE, elevated=True), None, "ProvisioningFailed", id="elevated"),
        pytest.param(ROW, replace(ROLE, can_login=False), None, "ProvisioningFailed", id="nologin"),
        pytest.param(ROW, replace(ROLE, expired=True), None, "ProvisioningFailed", id="expired"),
        pytest.param(
            ROW, replace(ROLE, connection_limit=0), None, "ProvisioningFailed", id="limit-0"
        ),
        pytest.param(
            ROW,
            replace(ROLE, administered=False),
            None,
            actions.AdministerRole("orders"),
            id="no-membership",
        ),
        pytest.param(
            ROW,
            ROLE,
            Refused("PostgreSQL", "the login was refused", code="28P01"),
            actions.SetPassword("orders"),
            id="password-changed-by-hand",
        ),
        pytest.param(
            ROW,
            ROLE,
            Refused("PostgreSQL", "the login was refused", code="28000"),
            "ProvisioningFailed",
            id="kept-out-by-pg-hba-conf",
        ),
    ],
)
def test_the_role_is_ours_and_logs_in(
    own: Row, role: object, login: object, expected: object
) -> None:
    seen = facts(server=server(row=own, role=role), login=login)
    assert outcome(seen) == ("RoleReady", "CredentialCreated", expected)


CREATE = actions.CreateDatabase("orders", "orders")
SECURE = actions.SecureDatabase("tenant-1", "orders")


@pytest.mark.parametrize(
    ("own", "database", "expected"),
    [
        pytest.param(MADE_ROLE, None, CREATE, id="none"),
        pytest.param(MADE_ROLE, DATABASE, SECURE, id="created-not-yet-recorded"),
        pytest.param(
            MADE_ROLE, replace(DATABASE, owner_oid=1), "Conflict", id="somebody-was-first"
        ),
        pytest.param(ROW, None, "Conflict", id="dropped-by-hand"),
        pytest.param(ROW, replace(DATABASE, oid=1), "Conflict", id="made-again-by-hand"),
        pytest.param(ROW, replace(DATABASE, owner_oid=1), "Conflict", id="other-owner"),
        pytest.param(
            ROW, replace(DATABASE, connection_limit=-2), "Conflict", id="interrupted-drop"
        ),
        pytest.param(
            ROW,
            replace(DATABASE, public_privileges=frozenset({"CONNECT"})),
            SECURE,
            id="public-may-connect",
        ),
        pytest.param(
            ROW,
            replace(DATABASE, keepers_missing=frozenset({"exporter"})),
            SECURE,
            id="keeper-lost-connect",
        ),
        pytest.param(
            ROW, replace(DATABASE, allows_connections=False), "ProvisioningFailed", id="closed"
        ),
        pytest.param(
            ROW, replace(DATABASE, connection_limit=0), "ProvisioningFailed", id="limit-0"
        ),
    ],
)
def test_the_database_is_ours_and_closed_to_others(
    own: Row, database: object, expected: object
) -> None:
    seen = facts(server=server(row=own, database=database))
    assert outcome(seen) == ("DatabaseReady", "RoleCreated", expected)


def inside(*extensions: str) -> Presence:
    return Presence("orders", "orders", frozenset(extensions))


@pytest.mark.parametrize(
    ("own", "login", "available", "expected"),
    [
        pytest.param(
            ROW,
            inside(),
            (PG_TRGM,),
            actions.CreateExtension("orders", "pg_trgm", trusted=True),
            id="trusted",
        ),
        pytest.param(
            ROW,
            inside(),
            (Available("pg_trgm", trusted=False),),
            actions.CreateExtension("orders", "pg_trgm", trusted=False),
            id="untrusted",
        ),
        pytest.param(
            ROW,
            inside("pg_trgm"),
            (PG_TRGM,),
            actions.RecordExtensions("tenant-1", frozenset({"pg_trgm"})),
            id="there-already",
        ),
        pytest.param(ROW, DOWN, (PG_TRGM,), "ProvisioningFailed", id="cannot-look-inside"),
    ],
)
def test_extensions_are_installed_and_recorded(
    own: Row, login: object, available: object, expected: object
) -> None:
    seen = facts(
        spec=spec(extensions=["pg_trgm"]),
        server=server(row=own),
        login=login,
        available=available,
    )
    assert outcome(seen) == ("DatabaseReady", "RoleCreated", expected)


def test_an_extension_that_was_dropped_by_its_owner_is_installed_again() -> None:
    seen = facts(
        spec=spec(extensions=["pg_trgm"]),
        server=server(row=row(extensions=frozenset({"pg_trgm"}))),
        login=inside(),
        available=(PG_TRGM,),
    )
    assert outcome(seen)[2] == actions.CreateExtension("orders", "pg_trgm", trusted=True)


@pytest.mark.parametrize(
    ("observed", "secret", "expected"),
    [
        pytest.param(None, None, "Reconciling", id="not-there-yet"),
        pytest.param(None, SECRET, "Conflict", id="foreign-secret"),
        pytest.param(
            external_secret(metadata={"ownerReferences": [{"uid": "x", "controller": True}]}),
            SECRET,
            "Conflict",
            id="foreign-external-secret",
        ),
        pytest.param(API_DOWN, None, "DependencyUnavailable", id="api-down"),
    ],
)
def test_the_external_secret_is_seen_and_ours(
    observed: object, secret: object, expected: str
) -> None:
    seen = facts(external_secret=observed, secret=secret)
    assert outcome(seen) == ("ExternalSecretObserved", "DatabaseCreated", expected)


def ready_condition(**changes: object) -> dict[str, object]:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "SecretSynced",
        "lastTransitionTime": "2026-03-01T10:00:00Z",
        **changes,
    }


NOT_READY_BEFORE = Past("ExternalSecretCreated", 20001, {"status": "False", "reason": "x"})


@pytest.mark.parametrize(
    ("observed", "secret", "message"),
    [
        pytest.param(
            external_secret(status={"conditions": []}), None, "has no status", id="no-controller"
        ),
        pytest.param(
            external_secret(
                status={"conditions": [ready_condition(status="False", reason="SecretSyncedError")]}
            ),
            SECRET,
            "is not synced (SecretSyncedError)",
            id="sync-error",
        ),
        pytest.param(
            external_secret(status={"conditions": [ready_condition(reason="SecretDeleted")]}),
            None,
            "reports SecretDeleted, not SecretSynced",
            id="source-gone",
        ),
        pytest.param(
            external_secret(status={"syncedResourceVersion": "2-abcdef"}),
            SECRET,
            "is not synced at its current generation",
            id="older-generation",
        ),
        pytest.param(external_secret(), None, "is not there", id="no-secret"),
        pytest.param(
            external_secret(),
            replace(SECRET, controller_uid="x"),
            "is not controlled by ExternalSecret",
            id="other-owner",
        ),
        pytest.param(
            external_secret(),
            replace(SECRET, data={**SECRET.data, "password": b"old"}),
            "does not hold the current credential",
            id="old-password",
        ),
        pytest.param(
            external_secret(),
            replace(SECRET, data={**SECRET.data, "host": b"elsewhere"}),
            "does not hold the current endpoint",
            id="old-endpoint",
        ),
    ],
)
def test_each_failure_of_the_projection_has_its_own_message(
    observed: object, secret: object, message: str
) -> None:
    seen = facts(external_secret=observed, secret=secret, past=NOT_READY_BEFORE)
    decision = present(seen)
    assert (decision.gate, decision.phase) == ("CredentialProjected", "ExternalSecretCreated")
    assert isinstance(decision.verdict, Wait)
    assert decision.verdict.reason == "CredentialProjectionFailed"
    assert message in decision.verdict.message


@pytest.mark.parametrize(
    ("created", "before", "expected"),
    [
        pytest.param(-59, {"status": "False"}, "Reconciling", id="just-created"),
        pytest.param(-61, {"status": "False"}, "CredentialProjectionFailed", id="created-long-ago"),
        pytest.param(-7200, {"status": "True"}, "Reconciling", id="was-ready-until-now"),
        pytest.param(
            -7200,
            {"status": "Unknown", "lastTransitionTime": "2026-03-01T11:59:30Z"},
            "Reconciling",
            id="was-ready-30-seconds-ago",
        ),
        pytest.param(
            -7200,
            {"status": "Unknown", "lastTransitionTime": "2026-03-01T11:58:30Z"},
            "CredentialProjectionFailed",
            id="was-ready-90-seconds-ago",
        ),
    ],
)
def test_external_secrets_has_a_minute(created: int, before: dict[str, str], expected: str) -> None:
    moment = NOW.timestamp() + created
    at = NOW.fromtimestamp(moment, tz=NOW.tzinfo).strftime("%Y-%m-%dT%H:%M:%SZ")
    observed = external_secret(metadata={"creationTimestamp": at}, status={"conditions": []})
    seen = facts(external_secret=observed, secret=None, past=Past("", None, before))
    assert outcome(seen)[2] == expected


@pytest.mark.parametrize(
    "login",
    [
        pytest.param(Presence("other", "orders", frozenset()), id="other-role"),
        pytest.param(Presence("orders", "other", frozenset()), id="other-database"),
    ],
)
def test_the_login_ends_where_it_should(login: Presence) -> None:
    assert outcome(facts(login=login)) == (
        "LoginWorks",
        "CredentialProjected",
        "ProvisioningFailed",
    )


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Denied("Kubernetes", "the hooks may not get secrets"), id="denied"),
        pytest.param(API_DOWN, id="down"),
    ],
)
def test_a_failed_read_is_never_absence(error: EffectError) -> None:
    """Wherever a fact is an error, no write is wanted on the strength of it."""
    for name in ("instance", "server", "credential", "external_secret", "secret", "available"):
        changes: dict[str, Any] = {name: error}
        decision = present(facts(FRESH, **changes))
        assert decision.action is None, name
