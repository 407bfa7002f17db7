"""Facts in, decision out: every gate of an Instance, in the order of the gates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hooks.core.decision import Act, Met, Stuck, Wait
from hooks.core.errors import Blocked, Denied, Misconfigured, Refused, Unavailable
from hooks.effects.ports import (
    REGISTRY_VERSION,
    CertificateNames,
    Login,
    RegistryInfo,
    ServerInfo,
)
from hooks.instance.actions import MarkUnmanaged, MigrateRegistry, RecordSweep
from hooks.instance.decide import PRESENT, present
from hooks.instance.facts import Facts, Sweep
from hooks.instance.model import Spec, parse
from tests.builders import instance

SPEC = parse(instance())
assert isinstance(SPEC, Spec)

CERTIFICATE = CertificateNames(
    dns=frozenset({"postgresql.example.internal"}),
    ips=frozenset({"192.0.2.10"}),
    covers_host=True,
    covers_hostaddr=True,
)
SERVER = ServerInfo(
    version="17.10",
    version_num=170010,
    standby=False,
    read_only=False,
    superuser=False,
    createdb=True,
    createrole=True,
    inherit=True,
    registry_creatable=True,
)
REGISTRY = RegistryInfo(schema_version=REGISTRY_VERSION, min_code=1, sweep_age=None, writable=True)
READY = Facts(
    spec=SPEC,
    login=Login("admin", "x"),
    certificate=CERTIFICATE,
    server=SERVER,
    registry=REGISTRY,
)


def facts(**changes: Any) -> Facts:  # noqa: ANN401  a table's cells
    return replace(READY, **changes)


def outcome(seen: Facts) -> tuple[str, str, object]:
    decision = present(seen)
    match decision.verdict:
        case Act(action=action):
            return decision.gate, decision.phase, action
        case Wait(reason=reason) | Stuck(reason=reason):
            return decision.gate, decision.phase, reason
        case Met():
            return decision.gate, decision.phase, "Ready"


def test_the_gates_stand_in_the_order_of_the_contract() -> None:
    assert [(gate.name, gate.phase) for gate in PRESENT] == [
        ("AdminSecretReadable", "Validating"),
        ("ServerAuthenticated", "Validating"),
        ("LoggedIn", "Validating"),
        ("RightsSufficient", "InitializingRegistry"),
        ("RegistryCurrent", "Ready"),
        ("Swept", "Ready"),
    ]


def test_a_good_server_is_ready() -> None:
    assert outcome(READY) == ("", "Ready", "Ready")


@pytest.mark.parametrize(
    ("seen", "gate", "expected"),
    [
        pytest.param(
            facts(login=Unavailable("Kubernetes", "Secret is not there")),
            "AdminSecretReadable",
            "DependencyUnavailable",
            id="secret-absent",
        ),
        pytest.param(
            facts(login=Refused("Kubernetes", "Secret has no usable value")),
            "AdminSecretReadable",
            "AuthenticationFailed",
            id="key-missing",
        ),
        pytest.param(
            facts(login=Denied("Kubernetes", "the hooks may not get secrets")),
            "AdminSecretReadable",
            "DependencyUnavailable",
            id="rbac-missing",
        ),
        pytest.param(
            facts(certificate=Refused("PostgreSQL", "the certificate is not trusted")),
            "ServerAuthenticated",
            "AuthenticationFailed",
            id="untrusted",
        ),
        pytest.param(
            facts(certificate=Unavailable("PostgreSQL", "nobody answers")),
            "ServerAuthenticated",
            "DependencyUnavailable",
            id="unreachable",
        ),
        pytest.param(
            facts(certificate=replace(CERTIFICATE, covers_hostaddr=False)),
            "ServerAuthenticated",
            "AuthenticationFailed",
            id="no-ip-san",
        ),
        pytest.param(
            facts(certificate=replace(CERTIFICATE, covers_host=False)),
            "ServerAuthenticated",
            "AuthenticationFailed",
            id="no-dns-san",
        ),
        pytest.param(
            facts(server=Refused("PostgreSQL", "the login was refused")),
            "LoggedIn",
            "AuthenticationFailed",
            id="wrong-password",
        ),
        pytest.param(
            facts(server=Unavailable("PostgreSQL", "starting up")),
            "LoggedIn",
            "DependencyUnavailable",
            id="starting-up",
        ),
        pytest.param(
            facts(server=Denied("PostgreSQL", "the role may not connect to the database")),
            "LoggedIn",
            "InsufficientPrivileges",
            id="may-not-connect",
        ),
        pytest.param(
            facts(server=Blocked("PostgreSQL", "the database accepts no connections")),
            "LoggedIn",
            "DependencyUnavailable",
            id="database-closed",
        ),
        pytest.param(
            facts(server=Misconfigured("PostgreSQL", "a pooler is in between")),
            "LoggedIn",
            "InvalidSpec",
            id="pooler",
        ),
        pytest.param(
            facts(server=replace(SERVER, standby=True)),
            "LoggedIn",
            "DependencyUnavailable",
            id="standby",
        ),
        pytest.param(
            facts(server=replace(SERVER, read_only=True)),
            "LoggedIn",
            "DependencyUnavailable",
            id="read-only",
        ),
        pytest.param(
            facts(server=replace(SERVER, version="12.22", version_num=120022)),
            "LoggedIn",
            "InvalidSpec",
            id="too-old",
        ),
    ],
)
def test_a_server_that_is_not_proved_is_not_used(seen: Facts, gate: str, expected: str) -> None:
    phase = "" if gate == "AdminSecretReadable" else "Validating"
    assert outcome(seen) == (gate, phase, expected)


def test_below_verify_full_names_are_not_compared() -> None:
    spec = replace(READY.spec, endpoint=replace(READY.spec.endpoint, ssl_mode="verify-ca"))
    nameless = CertificateNames(frozenset(), frozenset(), covers_host=False, covers_hostaddr=False)
    assert outcome(facts(spec=spec, certificate=nameless))[2] == "Ready"


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        pytest.param({"createdb": False}, "ALTER ROLE <admin role> CREATEDB", id="createdb"),
        pytest.param({"createrole": False}, "ALTER ROLE <admin role> CREATEROLE", id="createrole"),
        pytest.param(
            {"version_num": 150000, "inherit": False},
            "ALTER ROLE <admin role> INHERIT",
            id="noinherit-before-16",
        ),
        pytest.param(
            {"registry_creatable": False},
            "GRANT CREATE ON DATABASE postgres TO <admin role>",
            id="no-schema",
        ),
    ],
)
def test_missing_rights_are_named_with_the_command_that_gives_them(
    changes: dict[str, Any], command: str
) -> None:
    decision = present(facts(server=replace(SERVER, **changes)))
    assert decision.verdict == Stuck(
        "InsufficientPrivileges",
        f"the admin role lacks rights: run {command} as a superuser",
    )


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"inherit": False}, id="noinherit-from-16"),
        pytest.param(
            {"superuser": True, "createdb": False, "createrole": False, "inherit": False},
            id="superuser",
        ),
    ],
)
def test_rights_that_suffice(changes: dict[str, Any]) -> None:
    assert outcome(facts(server=replace(SERVER, **changes)))[2] == "Ready"


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        pytest.param(None, MigrateRegistry(), id="none"),
        pytest.param(replace(REGISTRY, schema_version=0), MigrateRegistry(), id="older"),
        pytest.param(replace(REGISTRY, schema_version=99), "Ready", id="newer-and-compatible"),
        pytest.param(
            replace(REGISTRY, schema_version=99, min_code=99), "DependencyUnavailable", id="too-new"
        ),
        pytest.param(replace(REGISTRY, writable=False), "DependencyUnavailable", id="not-writable"),
        pytest.param(
            Unavailable("PostgreSQL", "timed out"), "DependencyUnavailable", id="unreadable"
        ),
    ],
)
def test_the_registry_is_at_a_version_that_this_code_knows(
    registry: object, expected: object
) -> None:
    assert outcome(facts(registry=registry))[2] == expected


@pytest.mark.parametrize(
    ("sweep", "expected"),
    [
        pytest.param(Sweep(("tenant-9", "tenant-8")), MarkUnmanaged("tenant-9"), id="orphans"),
        pytest.param(Sweep(()), RecordSweep(), id="none-left"),
        pytest.param(Unavailable("Kubernetes", "timed out"), "Ready", id="unknown-marks-nothing"),
    ],
)
def test_a_sweep_marks_what_is_proved_to_be_gone(sweep: object, expected: object) -> None:
    assert outcome(facts(sweep=sweep))[2] == expected
