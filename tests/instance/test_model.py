"""Which Instances are valid, and what is said of the others."""

from __future__ import annotations

from typing import Any

import pytest

from hooks.effects.ports import Endpoint
from hooks.instance.model import Spec, parse
from tests.builders import instance


def test_a_valid_instance_is_read() -> None:
    assert parse(instance()) == Spec(
        uid="instance-1",
        name="shared",
        generation=1,
        endpoint=Endpoint(
            host="postgresql.example.internal",
            hostaddr="192.0.2.10",
            port=5432,
            database="postgres",
            ssl_mode="verify-full",
        ),
    )


def test_what_the_api_server_would_default_is_defaulted_here_too() -> None:
    bare = instance(
        spec={
            "endpoint": {"port": None, "database": None, "sslMode": None},
            "adminCredentialRef": {"usernameKey": None, "passwordKey": None},
        }
    )
    assert parse(bare) == parse(instance())


@pytest.mark.parametrize("hostaddr", ["192.0.2.10", "2001:db8::1", "::1"])
def test_one_address_of_either_kind_is_valid(hostaddr: str) -> None:
    assert isinstance(parse(instance(spec={"endpoint": {"hostaddr": hostaddr}})), Spec)


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        pytest.param(
            {"hostaddr": "192.0.2.10,192.0.2.11"},
            "spec.endpoint.hostaddr: '192.0.2.10,192.0.2.11' is not one IPv4 or IPv6 address",
            id="list",
        ),
        pytest.param(
            {"hostaddr": "db.example"},
            "spec.endpoint.hostaddr: 'db.example' is not one IPv4 or IPv6 address",
            id="name-as-address",
        ),
        pytest.param(
            {"hostaddr": "fe80::1%eth0"},
            "spec.endpoint.hostaddr: 'fe80::1%eth0' is not one IPv4 or IPv6 address",
            id="zone",
        ),
        pytest.param(
            {"host": "192.0.2.10"},
            "spec.endpoint.host: '192.0.2.10' is no DNS name",
            id="address-as-name",
        ),
        pytest.param(
            {"host": "a b"}, "spec.endpoint.host: 'a b' is no DNS name", id="space-in-name"
        ),
        pytest.param(
            {"port": 0},
            "spec.endpoint.port: Input should be greater than or equal to 1",
            id="port-0",
        ),
        pytest.param(
            {"database": "Postgres"},
            "spec.endpoint.database: 'Postgres' is no PostgreSQL identifier ^[a-z][a-z0-9_]{0,62}$",
            id="database",
        ),
        pytest.param(
            {"sslMode": "prefer"},
            "spec.endpoint.sslMode: Input should be 'disable', 'require', 'verify-ca' or"
            " 'verify-full'",
            id="prefer",
        ),
    ],
)
def test_each_problem_is_named_with_its_path(endpoint: dict[str, Any], problem: str) -> None:
    assert parse(instance(spec={"endpoint": endpoint})) == [problem]


def test_all_problems_are_reported_together() -> None:
    wrong = instance(
        spec={"endpoint": {"host": "", "hostaddr": 5}, "adminCredentialRef": {"name": None}}
    )
    assert parse(wrong) == [
        "spec.endpoint.host: String should have at least 1 character",
        "spec.endpoint.hostaddr: Input should be a valid string",
        "spec.adminCredentialRef.name: Field required",
    ]
