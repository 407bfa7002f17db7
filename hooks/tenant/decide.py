"""When is a PostgreSQLTenant Ready, and what is the next write towards it?

PRESENT is the whole answer, in order. Each gate relies on those before it being met, so a fact
that they have settled is not asked for again.
"""

from __future__ import annotations

from hooks.core.decision import Act, Decision, Gate, Met, Stuck, Verdict, Wait, decide
from hooks.core.errors import EffectError, Refused
from hooks.effects.ports import Presence, Role, Row
from hooks.tenant import credential, database, projection, registration
from hooks.tenant.actions import (
    AdministerRole,
    CreateRole,
    Provision,
    SetPassword,
)
from hooks.tenant.facts import Facts
from hooks.tenant.reasons import (
    CONFLICT,
    CREDENTIAL_PROJECTION_FAILED,
    DEPENDENCY_UNAVAILABLE,
    IMMUTABLE_FIELD,
    INSTANCE_NOT_READY,
    INVALID_SPEC,
    PROVISIONING_FAILED,
)

LOGIN_REJECTED = "28P01"
"""SQLSTATE invalid_password; a role that pg_hba.conf keeps out is not mended by a password."""


def instance_ready(facts: Facts) -> Verdict[Provision]:
    """The Instance is there and proved for its current generation, and its server answers."""
    name, instance, server = facts.spec.instance, facts.instance, facts.server
    if isinstance(instance, EffectError):
        return Wait.on(instance, reason=DEPENDENCY_UNAVAILABLE)
    if instance is None:
        return _not_ready(f"PostgreSQLInstance {name} does not exist")
    if instance.deleting:
        return _not_ready(f"PostgreSQLInstance {name} is being deleted")
    if not instance.usable:
        return _not_ready(f"PostgreSQLInstance {name} is not Ready: see its status")
    if isinstance(server, EffectError):
        return Wait.on(server, reason=INSTANCE_NOT_READY, subject=f"PostgreSQLInstance {name}")
    return Met()


def _not_ready(message: str) -> Wait:
    return Wait(INSTANCE_NOT_READY, message, unread=True)


def names_allowed(facts: Facts) -> Verdict[Provision]:
    """The names are none that the server's own administration uses."""
    spec, instance, server = facts.spec, facts.the_instance, facts.the_server
    if spec.database == instance.endpoint.database:
        return Stuck(
            INVALID_SPEC,
            f"spec.database: {spec.database!r} is the administrative database of"
            f" PostgreSQLInstance {instance.name}: choose another name",
        )
    if spec.role == server.admin_role:
        return Stuck(INVALID_SPEC, "spec.loginRole: this name is reserved here: choose another")
    return Met()


def extensions_available(facts: Facts) -> Verdict[Provision]:
    """The server can install every extension, asked before anything is written."""
    if isinstance(facts.available, EffectError):
        return Wait.on(facts.available, reason=INSTANCE_NOT_READY)
    row = facts.the_server.row
    known = row.extensions if row else frozenset()
    there = facts.login.extensions if isinstance(facts.login, Presence) else frozenset()
    offered = {extension.name for extension in facts.available} | (known & there)
    missing = ", ".join(sorted(facts.spec.extensions - offered))
    if missing:
        return Stuck(
            INVALID_SPEC,
            f"spec.extensions: {missing} cannot be installed on this server: remove it, or have"
            " its package installed there",
        )
    return Met()


def role_ready(facts: Facts) -> Verdict[Provision]:
    """The role is the one we created, may log in, and its password is KV's."""
    row, role = facts.the_row, facts.the_server.role
    if role is None:
        if row.role_oid is not None:
            return Stuck(
                CONFLICT,
                f"role {row.role!r} was dropped by somebody: restore it, or delete this Tenant",
            )
        return Act(
            CreateRole(row.uid, row.role), PROVISIONING_FAILED, f"creating role {row.role!r}"
        )
    if role.oid != row.role_oid:
        return Stuck(CONFLICT, f"role {row.role!r} is not the one that was created for this Tenant")
    return _role_fault(role, row) or _password(facts, role, row)


def _role_fault(role: Role, row: Row) -> Stuck | None:
    faults = (
        (role.elevated, "has more rights than a tenant may have", "revoke them with ALTER ROLE"),
        (not role.can_login, "is set to NOLOGIN", "run ALTER ROLE ... LOGIN"),
        (role.expired, "has expired (VALID UNTIL)", "run ALTER ROLE ... VALID UNTIL 'infinity'"),
        (role.connection_limit == 0, "has CONNECTION LIMIT 0", "raise it with ALTER ROLE"),
    )
    for found, what, remedy in faults:
        if found:
            return Stuck(PROVISIONING_FAILED, f"role {row.role!r} {what}: {remedy} if unwanted")
    return None


def _password(facts: Facts, role: Role, row: Row) -> Verdict[Provision]:
    if not role.administered:
        return Act(
            AdministerRole(row.role),
            PROVISIONING_FAILED,
            f"the admin role may not act as role {row.role!r}",
        )
    login = facts.login
    if isinstance(login, Refused) and login.code == LOGIN_REJECTED:
        return Act(
            SetPassword(row.role),
            PROVISIONING_FAILED,
            f"role {row.role!r} cannot log in with the stored password, even after it was set"
            " again",
        )
    if isinstance(login, Refused):
        return Wait.on(login, reason=PROVISIONING_FAILED, subject=f"role {row.role!r}")
    return Met()


PRESENT: tuple[Gate[Facts, Provision], ...] = (
    Gate("InstanceReady", instance_ready, "Pending", frozenset({INSTANCE_NOT_READY})),
    Gate("NamesAllowed", names_allowed, "Pending", frozenset({INVALID_SPEC})),
    Gate("ExtensionsAvailable", extensions_available, "Pending", frozenset({INVALID_SPEC})),
    Gate(
        "Registered",
        registration.registered,
        "Planned",
        frozenset({CONFLICT, IMMUTABLE_FIELD, DEPENDENCY_UNAVAILABLE, PROVISIONING_FAILED}),
    ),
    Gate(
        "CredentialStored",
        credential.stored,
        "CredentialCreated",
        frozenset({CONFLICT, DEPENDENCY_UNAVAILABLE, PROVISIONING_FAILED}),
    ),
    Gate(
        "RoleReady",
        role_ready,
        "RoleCreated",
        frozenset({CONFLICT, PROVISIONING_FAILED, DEPENDENCY_UNAVAILABLE}),
    ),
    Gate(
        "DatabaseReady",
        database.ready,
        "DatabaseCreated",
        frozenset({CONFLICT, PROVISIONING_FAILED, DEPENDENCY_UNAVAILABLE}),
    ),
    Gate(projection.OBSERVED, projection.observed, "ExternalSecretCreated", frozenset({CONFLICT})),
    Gate(
        projection.PROJECTED,
        projection.projected,
        "CredentialProjected",
        frozenset({CREDENTIAL_PROJECTION_FAILED}),
    ),
    Gate(projection.LOGIN_WORKS, projection.login_works, "Ready", frozenset({PROVISIONING_FAILED})),
)


def present(facts: Facts) -> Decision[Provision]:
    """Judge what a live Tenant needs."""
    return decide(PRESENT, facts)
