"""The CRDs say what the API contract says: its fields, defaults, choices and columns."""

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.manifests.contract import NONE, TOP, Field
from tests.manifests.contracts import CONTRACTS
from tests.manifests.manifests import (
    CRDS,
    Manifest,
    crd,
    load,
    problems,
    properties,
    schema,
    unknown_fields,
    version,
)

KINDS = list(CONTRACTS)


def described(node: Manifest, *, required: bool) -> Field:
    """Return a field's type (its format where it has one), need and default."""
    return str(node.get("format", node["type"])), required, node.get("default", NONE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fields_are_those_of_the_contract(kind: str) -> None:
    found = {
        path: described(node, required=required)
        for path, node, required in properties(schema(kind))
    }
    assert found == CONTRACTS[kind].fields


@pytest.mark.parametrize("kind", KINDS)
def test_the_choices_are_those_of_the_contract(kind: str) -> None:
    found = {path: node["enum"] for path, node, _ in properties(schema(kind)) if "enum" in node}
    assert found == CONTRACTS[kind].enums


@pytest.mark.parametrize("kind", KINDS)
def test_the_columns_are_those_of_the_contract(kind: str) -> None:
    found = [
        (column["name"], column["type"], column["jsonPath"])
        for column in version(kind)["additionalPrinterColumns"]
    ]
    assert found == CONTRACTS[kind].columns


@pytest.mark.parametrize("kind", KINDS)
def test_the_names_and_the_scope_are_those_of_the_contract(kind: str) -> None:
    manifest, contract = crd(kind), CONTRACTS[kind]
    spec = manifest["spec"]
    assert manifest["metadata"]["name"] == f"{contract.plural}.{contract.group}"
    assert (spec["group"], spec["scope"]) == (contract.group, contract.scope)
    short_names = {"shortNames": list(contract.short_names)} if contract.short_names else {}
    assert spec["names"] == short_names | {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": contract.plural,
        "singular": kind.lower(),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_one_version_is_served_stored_and_has_a_status_of_its_own(kind: str) -> None:
    found = version(kind)
    name = CONTRACTS[kind].version
    assert (found["name"], found["served"], found["storage"]) == (name, True, True)
    assert found["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_structural(kind: str) -> None:
    """Every field has a type, and only what the contract opens lets anything through."""
    nodes = {"": schema(kind)} | {path: node for path, node, _ in properties(schema(kind))}
    assert [path for path, node in nodes.items() if "type" not in node] == []
    lists = {path for path, node in nodes.items() if node["type"] == "array"}
    assert [path for path in lists if "items" not in nodes[path]] == []
    open_ended = {"additionalProperties", "x-kubernetes-preserve-unknown-fields", "$ref"}
    found = {path for path, node in nodes.items() if open_ended & node.keys()}
    assert found == CONTRACTS[kind].open


@pytest.mark.parametrize("kind", KINDS)
def test_every_default_is_valid(kind: str) -> None:
    refused = [
        path
        for path, node, _ in properties(schema(kind))
        if "default" in node and not Draft202012Validator(node).is_valid(node["default"])
    ]
    assert refused == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_string_and_list_is_bounded(kind: str) -> None:
    """Without bounds the API server refuses validation rules as too costly."""
    unbounded = [
        path
        for path, node, _ in properties(schema(kind))
        if path not in TOP
        and node["type"] in {"string", "array"}
        and not {"maxLength", "maxItems", "enum", "format"} & node.keys()
    ]
    assert unbounded == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_explained(kind: str) -> None:
    unexplained = {
        path
        for path, node, _ in properties(schema(kind))
        if not node.get("description", "").strip()
    }
    assert unexplained == {"metadata", "status.conditions[]"}


@pytest.mark.parametrize("kind", KINDS)
def test_kubectl_explain_shows_a_valid_example(kind: str) -> None:
    description = schema(kind)["description"]
    _, _, example = description.partition("\n\n")
    manifest = yaml.safe_load(example)
    assert manifest["kind"] == kind
    assert problems(manifest) == []
    assert unknown_fields(manifest, schema(kind)) == []
    assert max(len(line) for line in description.splitlines()) <= 76  # else kubectl wraps it


@pytest.mark.parametrize("kind", KINDS)
def test_a_condition_type_is_there_once(kind: str) -> None:
    conditions = schema(kind)["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_extensions_are_a_set() -> None:
    extensions = schema("PostgreSQLTenant")["properties"]["spec"]["properties"]["extensions"]
    assert extensions["x-kubernetes-list-type"] == "set"


@pytest.mark.parametrize("kind", KINDS)
def test_objects_are_selectable_by_the_fields_of_the_contract(kind: str) -> None:
    found = [each["jsonPath"] for each in version(kind).get("selectableFields", ())]
    assert found == CONTRACTS[kind].selectable


@pytest.mark.parametrize("kind", KINDS)
def test_a_helm_release_that_goes_leaves_the_crd(kind: str) -> None:
    assert crd(kind)["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize("directory", [CRDS, CRDS / "init-sql"], ids=lambda path: path.name)
def test_a_kustomization_lists_every_crd_beside_it(directory: Path) -> None:
    (kustomization,) = load(directory / "kustomization.yaml")
    files = {path.name for path in directory.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == files
