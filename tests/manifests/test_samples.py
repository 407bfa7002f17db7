"""The samples are valid as they are, and the full ones leave nothing out."""

from pathlib import Path

import pytest

from tests.manifests.manifests import (
    SAMPLES,
    Manifest,
    load,
    problems,
    properties,
    schema,
    unknown_fields,
)

FILES = sorted(SAMPLES.glob("postgresql*.yaml"))


def spec_fields(manifest: Manifest) -> set[str]:
    """Return the paths below spec that an object sets."""

    def walk(node: Manifest, path: str) -> set[str]:
        return {f"{path}.{name}" for name in node}.union(
            *(walk(v, f"{path}.{k}") for k, v in node.items() if isinstance(v, dict))
        )

    return walk(manifest["spec"], "spec")


def test_there_is_a_minimal_and_a_full_sample_of_each_kind() -> None:
    assert [path.name for path in FILES] == [
        "postgresqlinstance-full.yaml",
        "postgresqlinstance-minimal.yaml",
        "postgresqltenant-full.yaml",
        "postgresqltenant-minimal.yaml",
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_sample_is_valid_and_has_no_unknown_field(path: Path) -> None:
    (manifest,) = load(path)
    assert manifest["apiVersion"] == "database.ddupan.top/v1alpha1"
    assert problems(manifest) == []
    assert unknown_fields(manifest, schema(manifest["kind"])) == []


@pytest.mark.parametrize("kind", ["PostgreSQLInstance", "PostgreSQLTenant"])
def test_the_full_sample_sets_every_field(kind: str) -> None:
    (full,) = load(SAMPLES / f"{kind.lower()}-full.yaml")
    every = {path for path, _, _ in properties(schema(kind)) if path.startswith("spec.")}
    assert spec_fields(full) == {path for path in every if not path.endswith("[]")}


@pytest.mark.parametrize("kind", ["PostgreSQLInstance", "PostgreSQLTenant"])
def test_the_minimal_sample_sets_only_what_is_required(kind: str) -> None:
    (minimal,) = load(SAMPLES / f"{kind.lower()}-minimal.yaml")
    required = {path for path, _, needed in properties(schema(kind)) if needed}
    assert spec_fields(minimal) == {path for path in required if path.startswith("spec.")}


def test_every_tenant_refers_to_an_instance_of_the_samples() -> None:
    manifests = load(*FILES)
    names = {m["metadata"]["name"] for m in manifests if m["kind"] == "PostgreSQLInstance"}
    tenants = [m for m in manifests if m["kind"] == "PostgreSQLTenant"]
    assert {tenant["spec"]["instanceRef"] for tenant in tenants} == names
