"""What the API server refuses, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from hooks.core import manifests
from hooks.core.manifests import Manifest
from tests.e2e.apiserver.operation import Operation
from tests.e2e.apiserver.refusals import refusals, rules
from tests.e2e.apiserver.tenants import API, provided, tenant

AGAIN = "restore the previous value, or create another PostgreSQLTenant"
IMMUTABLE = {
    "instanceRef": (
        f"spec.instanceRef is immutable once the credential exists: {AGAIN} and migrate the data"
    ),
    "database": (
        "spec.database is immutable once the credential exists (omitted, it is metadata.name):"
        f" {AGAIN} and migrate the data"
    ),
    "loginRole": (
        "spec.loginRole is immutable once the credential exists (omitted, it is metadata.name):"
        f" {AGAIN} and migrate the data"
    ),
    "credential.secretName": (
        "spec.credential.secretName is immutable once the credential exists (omitted, it is"
        f" <instanceRef>-<name>-postgresql): {AGAIN}"
    ),
}
TOO_LONG = (
    "spec.instanceRef and metadata.name must have at most 241 characters together"
    " (<instanceRef>-<name>-postgresql is the name of the ExternalSecret): choose a shorter"
    " metadata.name"
)


@pytest.fixture(scope="module")
def in_use(shared: Operation) -> Manifest:
    """A Tenant whose credential exists."""
    return provided(shared)


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        # The Secret's name follows from the Instance's.
        ({"instanceRef": "another"}, ["instanceRef", "credential.secretName"]),
        ({"database": "another"}, ["database"]),
        ({"loginRole": "another"}, ["loginRole"]),
        ({"credential": {"secretName": "another"}}, ["credential.secretName"]),
    ],
    ids=IMMUTABLE,
)
def test_what_is_in_use_is_immutable(
    shared: Operation, in_use: Manifest, spec: dict[str, Any], fields: list[str]
) -> None:
    said = refusals(shared, edited(in_use, **spec))
    assert said == [f"spec.{field}: Invalid value: {IMMUTABLE[field]}" for field in fields]


def test_a_default_may_be_written_out(shared: Operation, in_use: Manifest) -> None:
    name = manifests.name(in_use)
    written = edited(
        in_use,
        database=name,
        loginRole=name,
        credential={"secretName": f"shared-{name}-postgresql"},
    )
    shared.administrator.apply(written)
    assert shared.becomes_ready("pgtenant", name, "team-a")["metadata"]["generation"] == 2


def test_names_that_are_too_long_together_are_refused(shared: Operation) -> None:
    wanted = tenant(instanceRef="i" * 121)
    wanted["metadata"]["name"] = "n" * 121
    assert refusals(shared, wanted) == [f"spec.instanceRef: Invalid value: {TOO_LONG}"]


def test_every_rule_is_seen_to_refuse() -> None:
    assert set(rules("postgresqlinstances", "postgresqltenants")) == {*IMMUTABLE.values(), TOO_LONG}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(
            {"deletionPolicy": "Keep"},
            'spec.deletionPolicy: Unsupported value: "Keep": supported values: "Retain", "Delete"',
            id="policy",
        ),
        pytest.param(
            {"extensions": ["hstore", "hstore"]},
            'spec.extensions[1]: Duplicate value: "hstore"',
            id="duplicate",
        ),
        pytest.param(
            {"database": "Orders"},
            'spec.database: Invalid value: "Orders": spec.database in body should match'
            " '^[a-z][a-z0-9_]{0,62}$'",
            id="identifier",
        ),
    ],
)
def test_a_bad_value_is_refused_by_name(shared: Operation, spec: dict[str, Any], said: str) -> None:
    assert refusals(shared, tenant(**spec)) == [said]


def test_an_unknown_field_is_refused(shared: Operation) -> None:
    assert 'unknown field "spec.passwd"' in shared.administrator.may_not_apply(tenant(passwd="x"))


def test_an_instance_needs_a_server(shared: Operation) -> None:
    wanted = {
        "apiVersion": API,
        "kind": "PostgreSQLInstance",
        "metadata": {"name": "empty"},
        "spec": {"adminCredentialRef": {"name": "any"}},
    }
    assert refusals(shared, wanted) == ["spec.endpoint: Required value"]


def edited(found: Manifest, **spec: Any) -> Manifest:  # noqa: ANN401  members of spec
    """Return what a user would apply again, with another spec."""
    meta = {key: found["metadata"][key] for key in ("name", "namespace")}
    kept = {"instanceRef": found["spec"]["instanceRef"]}
    return {"apiVersion": API, "kind": found["kind"], "metadata": meta, "spec": kept | spec}
