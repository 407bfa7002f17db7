"""When is a PostgreSQLInstance Ready, and what is the next write towards it?

PRESENT is the whole answer, in order. Ready does not depend on OpenBao or External Secrets.
"""

from __future__ import annotations

from hooks.core.decision import Act, Decision, Gate, Met, Stuck, Verdict, Wait, decide
from hooks.core.errors import Denied, EffectError, Misconfigured, Refused
from hooks.effects.ports import REGISTRY_VERSION, CertificateNames, ServerInfo
from hooks.instance.actions import Action, MarkUnmanaged, MigrateRegistry, RecordSweep
from hooks.instance.facts import Facts

RECONCILING = "Reconciling"
INVALID_SPEC = "InvalidSpec"
DEPENDENCY_UNAVAILABLE = "DependencyUnavailable"
AUTHENTICATION_FAILED = "AuthenticationFailed"
INSUFFICIENT_PRIVILEGES = "InsufficientPrivileges"

OLDEST_VERSION = 130000
ROLE_MEMBERSHIP_OPTIONS = 160000
"""From here on INHERIT belongs to a membership, not to the role."""


def _reason(error: EffectError) -> str:
    """Return the reason that a failure to reach the server has."""
    if isinstance(error, Refused):
        return AUTHENTICATION_FAILED
    return INSUFFICIENT_PRIVILEGES if isinstance(error, Denied) else DEPENDENCY_UNAVAILABLE


def admin_secret_readable(facts: Facts) -> Verdict[Action]:
    """The admin Secret is there and holds both values."""
    if not isinstance(facts.login, EffectError):
        return Met()
    refused = isinstance(facts.login, Refused)
    return Wait.on(facts.login, reason=AUTHENTICATION_FAILED if refused else DEPENDENCY_UNAVAILABLE)


def server_authenticated(facts: Facts) -> Verdict[Action]:
    """The server is who it should be; for verify-full by its DNS name and by its address."""
    certificate, endpoint = facts.certificate, facts.spec.endpoint
    if isinstance(certificate, EffectError):
        return Wait.on(certificate, reason=_reason(certificate))
    if endpoint.ssl_mode != "verify-full" or certificate is None:
        return Met()
    missing = _uncovered(certificate, endpoint.host, endpoint.hostaddr)
    if missing:
        return Stuck(
            AUTHENTICATION_FAILED,
            f"the server's certificate does not cover {' and '.join(missing)}: issue it with both"
            " as subject alternative names, or correct spec.endpoint",
        )
    return Met()


def _uncovered(certificate: CertificateNames, host: str, hostaddr: str) -> list[str]:
    missing = [] if certificate.covers_host else [f"DNS name {host}"]
    return missing if certificate.covers_hostaddr else [*missing, f"IP address {hostaddr}"]


def logged_in(facts: Facts) -> Verdict[Action]:
    """The admin's login works, on a primary of a version that we support."""
    server = facts.server
    if isinstance(server, Misconfigured):
        return Stuck(INVALID_SPEC, f"spec.endpoint: {server.detail}")
    if isinstance(server, EffectError):
        return Wait.on(server, reason=_reason(server))
    if server is None:
        return Wait(RECONCILING, "the server was not asked", unread=True)
    return _suitable(server)


def _suitable(server: ServerInfo) -> Verdict[Action]:
    if server.standby:
        return Wait(
            DEPENDENCY_UNAVAILABLE, "the server is a standby: point spec.endpoint at the primary"
        )
    if server.read_only:
        return Wait(DEPENDENCY_UNAVAILABLE, "the server accepts no writes (read-only)")
    if server.version_num < OLDEST_VERSION:
        return Stuck(
            INVALID_SPEC, f"PostgreSQL {server.version} is too old: 13 or later is supported"
        )
    return Met()


def rights_sufficient(facts: Facts) -> Verdict[Action]:
    """The admin role may do what Tenants need."""
    server = facts.server
    assert isinstance(server, ServerInfo)  # noqa: S101  behind the gate logged_in
    if server.superuser:
        return Met()
    missing = [*_attributes(server), *_grants(server, facts.spec.endpoint.database)]
    if missing:
        return Stuck(
            INSUFFICIENT_PRIVILEGES,
            f"the admin role lacks rights: run {'; '.join(missing)} as a superuser",
        )
    return Met()


def _attributes(server: ServerInfo) -> list[str]:
    inherits = server.inherit or server.version_num >= ROLE_MEMBERSHIP_OPTIONS
    lacking = [
        attribute
        for held, attribute in (
            (server.createdb, "CREATEDB"),
            (server.createrole, "CREATEROLE"),
            (inherits, "INHERIT"),
        )
        if not held
    ]
    return [f"ALTER ROLE <admin role> {' '.join(lacking)}"] if lacking else []


def _grants(server: ServerInfo, database: str) -> list[str]:
    if server.registry_creatable:
        return []
    schema = server.registry_schema
    if schema:  # of another role, maybe of the admin before this one
        return [
            f"GRANT USAGE, CREATE ON SCHEMA {schema} TO <admin role>",
            f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO <admin role>",
        ]
    return [f"GRANT CREATE ON DATABASE {database} TO <admin role>"]


def registry_current(facts: Facts) -> Verdict[Action]:
    """The registry is at a version that this code knows, and can be written."""
    registry = facts.registry
    if isinstance(registry, EffectError):
        return Wait.on(registry, reason=DEPENDENCY_UNAVAILABLE, subject="the registry")
    if registry is None:
        return Act(MigrateRegistry(), DEPENDENCY_UNAVAILABLE, "creating the registry")
    if registry.min_code > REGISTRY_VERSION:
        return Stuck(
            DEPENDENCY_UNAVAILABLE,
            "the registry was written by a newer release of database-hooks: upgrade this one",
        )
    if registry.schema_version < REGISTRY_VERSION:
        return Act(MigrateRegistry(), DEPENDENCY_UNAVAILABLE, "upgrading the registry")
    if not registry.writable:
        return Wait(DEPENDENCY_UNAVAILABLE, "the registry cannot be written by the admin role")
    return Met()


def swept(facts: Facts) -> Verdict[Action]:
    """Rows of vanished Tenants are marked; a sweep that fails does not make the server unready."""
    sweep = facts.sweep
    if sweep is None or isinstance(sweep, EffectError):
        return Met()
    if sweep.orphans:
        return Act(
            MarkUnmanaged(sweep.orphans[0]), DEPENDENCY_UNAVAILABLE, "marking rows as unmanaged"
        )
    return Act(RecordSweep(), DEPENDENCY_UNAVAILABLE, "recording the sweep")


PRESENT: tuple[Gate[Facts, Action], ...] = (
    Gate(
        "AdminSecretReadable",
        admin_secret_readable,
        "Validating",
        frozenset({DEPENDENCY_UNAVAILABLE, AUTHENTICATION_FAILED}),
    ),
    Gate(
        "ServerAuthenticated",
        server_authenticated,
        "Validating",
        frozenset({DEPENDENCY_UNAVAILABLE, AUTHENTICATION_FAILED}),
    ),
    Gate(
        "LoggedIn",
        logged_in,
        "Validating",
        frozenset(
            {DEPENDENCY_UNAVAILABLE, AUTHENTICATION_FAILED, INVALID_SPEC, INSUFFICIENT_PRIVILEGES}
        ),
    ),
    Gate(
        "RightsSufficient",
        rights_sufficient,
        "InitializingRegistry",
        frozenset({INSUFFICIENT_PRIVILEGES}),
    ),
    Gate("RegistryCurrent", registry_current, "Ready", frozenset({DEPENDENCY_UNAVAILABLE})),
    Gate("Swept", swept, "Ready", frozenset()),
)


SWEPT = PRESENT[-1].name


def present(facts: Facts) -> Decision[Action]:
    """Judge what a live Instance needs."""
    return decide(PRESENT, facts)


def ready_despite_sweep(decision: Decision[Action]) -> Decision[Action]:
    """Return what is told of a sweep that could not be written down: it is tried again."""
    return Decision(decision.phase, "", Met()) if decision.gate == SWEPT else decision
