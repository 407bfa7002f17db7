"""The samples are valid as they are, and the full ones leave nothing out."""

import json
from pathlib import Path

import pytest

from tests.manifests.contracts import CONTRACTS
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
INGESTIONS = sorted(SAMPLES.glob("druidingestion-*.yaml"))
TYPES = ["index-hadoop", "kafka", "kinesis", "native-batch", "sql"]
FREE = ("spec.ingestion.nativeSpec", "spec.ingestion.compaction", "spec.ingestion.rules")


def spec_fields(manifest: Manifest) -> set[str]:
    """Return the paths below spec that an object sets."""

    def walk(node: Manifest, path: str) -> set[str]:
        return {f"{path}.{name}" for name in node}.union(
            *(walk(v, f"{path}.{k}") for k, v in node.items() if isinstance(v, dict))
        )

    return walk(manifest["spec"], "spec")


def crd_version(kind: str) -> str:
    contract = CONTRACTS[kind]
    return f"{contract.group}/{contract.version}"


def test_there_is_a_minimal_and_a_full_sample_of_each_kind() -> None:
    assert [path.name for path in FILES] == [
        "postgresqlinstance-full.yaml",
        "postgresqlinstance-minimal.yaml",
        "postgresqltenant-full.yaml",
        "postgresqltenant-minimal.yaml",
    ]


def test_there_is_a_sample_of_each_type_of_ingestion_and_a_full_one() -> None:
    assert [path.stem for path in INGESTIONS] == [
        f"druidingestion-{name}" for name in sorted([*TYPES, "full"])
    ]


@pytest.mark.parametrize("path", [*FILES, *INGESTIONS], ids=lambda path: path.stem)
def test_a_sample_is_valid_and_has_no_unknown_field(path: Path) -> None:
    (manifest,) = load(path)
    assert manifest["apiVersion"] == crd_version(manifest["kind"])
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


@pytest.mark.parametrize("name", TYPES)
def test_the_sample_of_a_type_sets_only_what_is_required(name: str) -> None:
    (manifest,) = load(SAMPLES / f"druidingestion-{name}.yaml")
    set_here = {field for field in spec_fields(manifest) if not field.startswith(FREE)}
    work = {"spec.ingestion.spec"} if "spec" in manifest["spec"]["ingestion"] else set()
    assert set_here == {"spec.druidCluster", "spec.ingestion", "spec.ingestion.type"} | work
    assert manifest["spec"]["ingestion"]["type"] == name


def test_the_full_ingestion_sets_every_field_but_the_other_form_of_the_work() -> None:
    (full,) = load(SAMPLES / "druidingestion-full.yaml")
    every = {path for path, _, _ in properties(schema("DruidIngestion")) if path[:5] == "spec."}
    expected = {path for path in every if not path.endswith("[]")} - {"spec.ingestion.spec"}
    found = {
        field for field in spec_fields(full) if not field.startswith(tuple(f"{f}." for f in FREE))
    }
    assert found == expected


@pytest.mark.parametrize("path", INGESTIONS, ids=lambda path: path.stem)
def test_the_work_of_a_sample_is_what_its_type_takes(path: Path) -> None:
    (manifest,) = load(path)
    ingestion = manifest["spec"]["ingestion"]
    work = ingestion.get("nativeSpec") or json.loads(ingestion["spec"])
    expected = {"native-batch": "index_parallel", "index-hadoop": "index_hadoop", "sql": None}
    assert work.get("type") == expected.get(ingestion["type"], ingestion["type"])
    assert ("query" in work) is (ingestion["type"] == "sql")
