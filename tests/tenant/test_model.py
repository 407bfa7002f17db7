"""Which Tenants are valid, what their effective names are, and what is said of the others."""

from __future__ import annotations

from typing import Any

import pytest

from hooks.core.manifests import Manifest
from hooks.tenant.model import Identity, Spec, parse
from tests.builders import CONFIG, merged, tenant


def problems(manifest: Manifest) -> list[str]:
    parsed = parse(manifest, CONFIG)
    assert isinstance(parsed, list), parsed
    return parsed


def test_omitted_names_are_derived() -> None:
    assert parse(tenant(), CONFIG) == Spec(
        identity=Identity(uid="tenant-1", namespace="team-a", name="orders", generation=1),
        instance="shared",
        database="orders",
        role="orders",
        extensions=frozenset(),
        secret_name="shared-orders-postgresql",
        external_secret_name="shared-orders-postgresql",
        kv_path="postgresql/team-a/orders",
    )


def test_given_names_are_taken_and_the_external_secret_keeps_its_own() -> None:
    given = tenant(
        spec={
            "database": "orders_db",
            "loginRole": "orders_owner",
            "extensions": ["uuid-ossp", "pg_trgm", "pg_trgm"],
            "credential": {"secretName": "orders.database"},
        }
    )
    parsed = parse(given, CONFIG)
    assert isinstance(parsed, Spec)
    assert (parsed.database, parsed.role, parsed.extensions, parsed.secret_name) == (
        "orders_db",
        "orders_owner",
        frozenset({"uuid-ossp", "pg_trgm"}),
        "orders.database",
    )
    assert parsed.external_secret_name == "shared-orders-postgresql"


@pytest.mark.parametrize("name", ["a" * 63, "user", "all", "replication", "select", "a_1"])
def test_names_that_postgresql_takes_when_quoted_are_valid(name: str) -> None:
    assert isinstance(parse(tenant(spec={"database": name, "loginRole": name}), CONFIG), Spec)


@pytest.mark.parametrize(
    "name", ["a" * 64, "1abc", "Abc", 'a"b', "my-app", "", "a\n", "ä"], ids=repr
)
def test_names_that_are_no_identifiers_are_refused_with_their_path(name: str) -> None:
    assert problems(tenant(spec={"database": name})) == [
        f"spec.database: {name!r} is no PostgreSQL identifier ^[a-z][a-z0-9_]{{0,62}}$"
    ]


def test_a_default_that_is_no_identifier_says_which_field_to_set() -> None:
    assert problems(tenant(metadata={"name": "my-app"})) == [
        f"{path}: 'my-app' is no PostgreSQL identifier ^[a-z][a-z0-9_]{{0,62}}$"
        f" (it defaults to metadata.name: set {path})"
        for path in ("spec.database", "spec.loginRole")
    ]


@pytest.mark.parametrize("name", ["postgres", "template0", "template1", "public", "none", "pg_x"])
def test_reserved_names_are_refused(name: str) -> None:
    assert problems(tenant(spec={"loginRole": name})) == [
        f"spec.loginRole: {name!r} is reserved by PostgreSQL: choose another name"
    ]


@pytest.mark.parametrize("name", ["a--b", "-a", "a-", "a b", "", "a;drop", "a" * 64], ids=repr)
def test_names_that_no_extension_has_are_refused(name: str) -> None:
    assert problems(tenant(spec={"extensions": [name]})) == [
        f"spec.extensions: {name!r} is no extension name"
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"spec": {"credential": {"secretName": "Upper"}}},
            ["spec.credential.secretName: 'Upper' is no Kubernetes object name (DNS subdomain)"],
            id="secret-name",
        ),
        pytest.param(
            {"spec": {"instanceRef": None}}, ["spec.instanceRef: Field required"], id="no-instance"
        ),
        pytest.param(
            {"spec": {"deletionPolicy": "Keep", "database": 7}},
            [
                "spec.database: Input should be a valid string",
                "spec.deletionPolicy: Input should be 'Retain' or 'Delete'",
            ],
            id="two-at-once",
        ),
        pytest.param(
            {"spec": {"instanceRef": "i" * 236, "credential": {"secretName": "given"}}},
            ["spec.instanceRef: with metadata.name it has 242 characters, 241 are allowed"],
            id="242-characters",
        ),
    ],
)
def test_every_problem_is_named_with_its_path(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(tenant(**changes)) == expected


def test_241_characters_of_names_are_allowed() -> None:
    longest = merged(tenant(), {"spec": {"instanceRef": "i" * 235}})
    assert isinstance(parse(longest, CONFIG), Spec)


@pytest.mark.parametrize("spec", [None, [], "text", 7])
def test_a_spec_of_another_shape_is_a_problem_and_no_exception(spec: object) -> None:
    manifest = tenant()
    manifest["spec"] = spec
    assert all(problem.startswith("spec") for problem in problems(manifest))
