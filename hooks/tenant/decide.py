"""When is a PostgreSQLTenant Ready, and what is the next write towards it?

PRESENT is the whole answer, in order. Each gate relies on those before it being met, so a fact
that they have settled is not asked for again.
"""

from __future__ import annotations

from hooks.core.decision import Act, Decision, Gate, Met, Stuck, Verdict, Wait, decide
from hooks.core.errors import EffectError, Misconfigured, Refused
from hooks.effects.ports import Credential, Database, Presence, Role, Row
from hooks.tenant import ownership, projection
from hooks.tenant.actions import (
    AdministerRole,
    CreateDatabase,
    CreateExtension,
    CreateRole,
    Provision,
    RecordExtensions,
    ReserveCredential,
    SecureDatabase,
    SetPassword,
    StoreCredential,
)
from hooks.tenant.facts import Facts, Instance, Server
from hooks.tenant.reasons import (
    CONFLICT,
    CREDENTIAL_PROJECTION_FAILED,
    DEPENDENCY_UNAVAILABLE,
    IMMUTABLE_FIELD,
    INSTANCE_NOT_READY,
    INVALID_SPEC,
    PROVISIONING_FAILED,
    RECONCILING,
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
    spec, instance, server = facts.spec, _instance(facts), _server(facts)
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
    row = _server(facts).row
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


def registered(facts: Facts) -> Verdict[Provision]:
    """The registry row is ours, and says what the spec says."""
    instance, server = _instance(facts), _server(facts)
    if server.row is None:
        return ownership.unregistered(facts, instance, server)
    return ownership.registered(facts, instance, server, server.row) or Met()


def credential_stored(facts: Facts) -> Verdict[Provision]:
    """KV holds our credential; one is made only while KV says that there never was any."""
    credential, row, spec = facts.credential, _row(facts), facts.spec
    if isinstance(credential, EffectError):
        serving = not isinstance(credential, Misconfigured) and projection.serving(facts)
        return Met() if serving else Wait.on(credential, reason=DEPENDENCY_UNAVAILABLE)
    if credential is None:
        if row.role_oid is not None:
            return _lost_credential(spec.kv_path, "is gone")
        reserve = ReserveCredential(spec.kv_path, row.instance_name, row.instance_uid)
        return Act(reserve, CONFLICT, "reserving the credential's path")
    if not ownership.is_ours(facts, credential):
        return ownership.foreign_credential(facts)
    return _judge_own_credential(credential, row)


def _judge_own_credential(credential: Credential, row: Row) -> Verdict[Provision]:
    path = row.kv_path
    if credential.owner.get("instance-uid") != row.instance_uid:
        return Stuck(CONFLICT, f"the credential at {path} was made for another Instance")
    if credential.lost:
        return _lost_credential(path, "was deleted or destroyed")
    if credential.version == 0:
        if row.role_oid is not None:
            return _lost_credential(path, "is gone")
        return Act(StoreCredential(path, row.role), CONFLICT, "storing the credential")
    if credential.login is None or credential.login.username != row.role:
        return Stuck(
            CONFLICT,
            f"the credential at {path} was overwritten: it must hold username {row.role!r} and a"
            " password; restore the earlier version",
        )
    return Met()


def _lost_credential(path: str, what: str) -> Stuck:
    return Stuck(
        CONFLICT,
        f"the credential at {path} {what}, while its role exists: restore it in OpenBao; no new"
        " password is made in silence",
    )


def role_ready(facts: Facts) -> Verdict[Provision]:
    """The role is the one we created, may log in, and its password is KV's."""
    row, role = _row(facts), _server(facts).role
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


def database_ready(facts: Facts) -> Verdict[Provision]:
    """The database is the one we created, only its owner gets in, and extensions are there."""
    row, database = _row(facts), _server(facts).database
    if database is None:
        if row.database_oid is not None:
            return Stuck(
                CONFLICT,
                f"database {row.database!r} was dropped by somebody: it is not created again"
                " empty; restore it, or delete this Tenant",
            )
        return Act(
            CreateDatabase(row.database, row.role),
            PROVISIONING_FAILED,
            f"creating database {row.database!r}",
        )
    foreign = database.owner_oid != row.role_oid or (
        row.database_oid is not None and database.oid != row.database_oid
    )
    if foreign:
        return Stuck(
            CONFLICT,
            f"database {row.database!r} is not the one that was created for this Tenant, or has"
            " another owner",
        )
    return _database_state(database, row) or _inside(facts, row)


def _database_state(database: Database, row: Row) -> Verdict[Provision] | None:
    name = row.database
    if database.connection_limit == -2:  # noqa: PLR2004  PostgreSQL's mark of an interrupted DROP
        return Stuck(CONFLICT, f"database {name!r} is invalid after an interrupted DROP DATABASE")
    if row.database_oid is None or database.public_privileges or database.keepers_missing:
        return Act(
            SecureDatabase(row.uid, name),
            PROVISIONING_FAILED,
            f"PUBLIC still has rights on database {name!r}: the REVOKE had no effect",
        )
    if not database.allows_connections or database.connection_limit == 0:
        return Stuck(
            PROVISIONING_FAILED,
            f"database {name!r} accepts no connections (ALLOW_CONNECTIONS or CONNECTION LIMIT):"
            " undo it with ALTER DATABASE if unwanted",
        )
    return None


def _inside(facts: Facts, row: Row) -> Verdict[Provision]:
    login, wanted = facts.login, facts.spec.extensions
    if isinstance(login, EffectError):
        return Wait.on(login, reason=PROVISIONING_FAILED, subject=f"database {row.database!r}")
    if login is None:
        return Wait(RECONCILING, f"database {row.database!r} was not looked into")
    missing = sorted(wanted - login.extensions)
    if missing:
        trusted = _trusted(facts, missing[0])
        return Act(
            CreateExtension(row.database, missing[0], trusted),
            PROVISIONING_FAILED,
            f"installing extension {missing[0]}",
        )
    if wanted - row.extensions:
        return Act(
            RecordExtensions(row.uid, row.extensions | wanted),
            PROVISIONING_FAILED,
            "recording the installed extensions",
        )
    return Met()


def _trusted(facts: Facts, name: str) -> bool:
    offered = () if isinstance(facts.available, EffectError) else facts.available
    return any(extension.name == name and extension.trusted for extension in offered)


PRESENT: tuple[Gate[Facts, Provision], ...] = (
    Gate("InstanceReady", instance_ready, "Pending", frozenset({INSTANCE_NOT_READY})),
    Gate("NamesAllowed", names_allowed, "Pending", frozenset({INVALID_SPEC})),
    Gate("ExtensionsAvailable", extensions_available, "Pending", frozenset({INVALID_SPEC})),
    Gate("Registered", registered, "Planned", frozenset({CONFLICT, IMMUTABLE_FIELD})),
    Gate(
        "CredentialStored",
        credential_stored,
        "CredentialCreated",
        frozenset({CONFLICT, DEPENDENCY_UNAVAILABLE}),
    ),
    Gate("RoleReady", role_ready, "RoleCreated", frozenset({CONFLICT, PROVISIONING_FAILED})),
    Gate(
        "DatabaseReady",
        database_ready,
        "DatabaseCreated",
        frozenset({CONFLICT, PROVISIONING_FAILED}),
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


def _instance(facts: Facts) -> Instance:
    assert isinstance(facts.instance, Instance)  # noqa: S101  behind the gate instance_ready
    return facts.instance


def _server(facts: Facts) -> Server:
    assert isinstance(facts.server, Server)  # noqa: S101  behind the gate instance_ready
    return facts.server


def _row(facts: Facts) -> Row:
    row = _server(facts).row
    assert row is not None  # noqa: S101  behind the gate registered
    return row
