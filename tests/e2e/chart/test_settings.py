"""What an administrator can set in the chart and in an overlay, and what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT, blocks
from tests.e2e.chart.rendering import CHART, CRD_CHART, kustomized, run, templated
from tests.e2e.tools.programs import program
from tests.manifests.manifests import Manifest

IMAGE = "registry.example.internal/database-hooks:0.2.0"


def environment(manifests: list[Manifest]) -> dict[str, str | None]:
    """Return the variables of the one container."""
    (deployment,) = (m for m in manifests if m["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    found = {each["name"]: each.get("value") for each in container["env"]}
    return found | {"image": container["image"]}


@pytest.mark.parametrize("chart", [CHART, CRD_CHART], ids=lambda path: path.name)
def test_helm_finds_nothing_wrong(chart: Path) -> None:
    run("helm", "lint", "--strict", chart)


def test_a_setting_wins_over_what_the_chart_sets() -> None:
    files = "/a\\,/b"
    found = environment(
        templated(CHART, "settings.OPENBAO_ROLE=other", f"settings.HOOK_TOKEN_FILES={files}")
    )
    assert (found["OPENBAO_ROLE"], found["HOOK_TOKEN_FILES"]) == ("other", "/a,/b")


def test_the_jobs_get_the_image_that_the_chart_is_given() -> None:
    repository, _, tag = IMAGE.rpartition(":")
    values = [f"image.repository={repository}", f"image.tag={tag}", "initSql.mode=decorator"]
    found = environment(templated(CHART, *values))
    assert (found["image"], found["INIT_SQL_IMAGE"]) == (IMAGE, IMAGE)


def test_the_jobs_get_the_image_of_the_overlay_in_the_manual(tmp_path: Path) -> None:
    page = ROOT / "docs" / "database-init-sql.md"
    (overlay,) = (
        document
        for block in blocks(page, "yaml")
        for document in yaml.safe_load_all(block.text)
        if document["kind"] == "Kustomization"
    )
    (component,) = (Path(path).name for path in overlay["components"])
    repeated = {name: overlay[name] for name in ("images", "replacements")}
    found = environment(kustomized(tmp_path, component, **repeated))
    (image,) = overlay["images"]
    assert found["image"] == found["INIT_SQL_IMAGE"] == f"{image['newName']}:{image['newTag']}"


def test_one_pod_can_be_drained() -> None:
    kinds = {manifest["kind"] for manifest in templated(CHART, "replicas=1")}
    assert "PodDisruptionBudget" not in kinds


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("initSql.mode=both", id="both ways of init SQL"),
        pytest.param("druid.enable=true", id="a key that is misspelt"),
        pytest.param("settings.lower=1", id="no variable"),
        pytest.param("replicas=0", id="no pod"),
    ],
)
def test_a_value_that_means_nothing_is_refused(value: str) -> None:
    command = [str(program("helm")), "template", "x", str(CHART), "--set", value]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, "schema" in ended.stderr) == (1, True)
