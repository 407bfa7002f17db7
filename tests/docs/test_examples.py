"""The examples are valid, and the policies are those that the tests of the servers use."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from hooks.sandbox.openbao_server import controller_policy, reader_policy
from tests.docs.pages import OPERATIONS, blocks, label, pages
from tests.manifests.manifests import BASE, ROOT, Manifest, load, problems, schema, unknown_fields

POSTGRESQL = {"PostgreSQLInstance", "PostgreSQLTenant"}
VALUES = "# values.yaml\n"
OURS = POSTGRESQL | {"DruidIngestion", "PostgresCluster"}


def examples(page: Path) -> list[Manifest]:
    """Return every object in the YAML blocks of a page."""
    return [
        document
        for block in blocks(page, "yaml")
        if not block.text.startswith(VALUES)
        for document in yaml.safe_load_all(block.text)
        if document is not None
    ]


def example(kind: str) -> Manifest:
    """Return the one object of a kind on the page of operations."""
    (found,) = (each for each in examples(OPERATIONS) if each["kind"] == kind)
    return found


def container(deployment: Manifest) -> Any:  # noqa: ANN401  a part of a manifest
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return found


@pytest.mark.parametrize("page", pages(), ids=label)
def test_an_example_is_an_object_that_the_api_server_would_take(page: Path) -> None:
    for manifest in examples(page):
        assert {"apiVersion", "kind"} <= manifest.keys()
        if manifest["kind"] in OURS:
            assert problems(manifest) == []
            assert unknown_fields(manifest, schema(manifest["kind"])) == []


def test_every_kind_has_an_example_on_its_page_and_the_first_two_in_the_readme() -> None:
    kinds = {label(page): {each["kind"] for each in examples(page)} & OURS for page in pages()}
    assert kinds["README.md"] >= POSTGRESQL
    assert kinds["docs/postgresql-instance.md"] == {"PostgreSQLInstance"}
    assert kinds["docs/postgresql-tenant.md"] == {"PostgreSQLTenant"}
    assert kinds["docs/druid-ingestion.md"] == {"DruidIngestion"}
    assert kinds["docs/database-init-sql.md"] == {"PostgresCluster"}


@pytest.mark.parametrize("page", pages(), ids=label)
def test_an_overlay_names_directories_that_there_are(page: Path) -> None:
    overlays = [each for each in examples(page) if each["kind"] == "Kustomization"]
    named = [path for each in overlays for path in each["resources"] + each.get("components", [])]
    inside = [path.removeprefix("../database-hooks/") for path in named]
    assert [path for path in inside if not (ROOT / path / "kustomization.yaml").is_file()] == []


def test_the_policies_are_exactly_those_that_are_enough() -> None:
    assert [block.text for block in blocks(OPERATIONS, "hcl")] == [
        controller_policy("secret", "postgresql"),
        reader_policy("secret", "postgresql/team-a"),
    ]


def test_the_overlay_changes_what_is_in_the_base() -> None:
    (base,) = load(BASE / "deployment.yaml")
    overlay = example("Deployment")
    assert overlay["metadata"].items() <= base["metadata"].items()
    assert container(overlay)["name"] == container(base)["name"]
    image = container(base)["image"].partition(":")[0]
    assert [each["name"] for each in example("Kustomization")["images"]] == [image]


def test_the_values_of_the_chart_are_values_and_set_variables_that_exist() -> None:
    (block,) = (each for each in blocks(OPERATIONS, "yaml") if each.text.startswith(VALUES))
    values = yaml.safe_load(block.text)
    schema_of_values = json.loads((ROOT / "charts/database-hooks/values.schema.json").read_text())
    assert list(Draft7Validator(schema_of_values).iter_errors(values)) == []
    assert {*values["settings"], *values["postgresql"]["settings"]} <= variables()


def variables() -> set[str]:
    """Return the variables of the table."""
    return {row.split("`")[1] for row in OPERATIONS.read_text().splitlines() if row[:3] == "| `"}


def test_the_overlay_sets_variables_that_exist() -> None:
    named = {variable["name"] for variable in container(example("Deployment"))["env"]}
    assert named <= variables()


def test_the_store_is_the_one_that_the_base_names_at_the_mount_of_the_policies() -> None:
    (base,) = load(BASE / "deployment.yaml")
    environment = {each["name"]: each.get("value") for each in container(base)["env"]}
    store = example("SecretStore")
    assert store["metadata"]["name"] == environment["SECRET_STORE_NAME"]
    assert store["spec"]["provider"]["vault"]["path"] == "secret"
