"""The chart and the manifests install the same objects."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.chart.rendering import (
    CHART,
    CRD_CHART,
    kustomized,
    objects,
    run,
    templated,
)
from tests.manifests.manifests import CRDS, Manifest, load

OF_HELM = ("app.kubernetes.io/managed-by", "helm.sh/chart")
NAMED = ("env", "volumes", "volumeMounts")  # lists whose order means nothing

DRUID, MONITORING, TLS = "druid.enabled=true", "monitoring.enabled=true", "tls.enabled=true"
COMPOSITE, DECORATOR = "initSql.mode=composite", "initSql.mode=decorator"
CASES = {
    "base": ([], []),
    "druid": (["druid"], [DRUID]),
    "init-sql": (["init-sql"], [COMPOSITE]),
    "init-sql-pgo": (["init-sql-pgo"], [DECORATOR]),
    "monitoring": (["monitoring"], [MONITORING]),
    "tls": (["tls"], [TLS]),
    "all": (
        ["druid", "init-sql", "monitoring", "tls"],
        [DRUID, COMPOSITE, MONITORING, TLS],
    ),
    "without-postgresql": (
        ["druid", "init-sql-pgo", "monitoring", "without-postgresql", "tls"],
        [DRUID, DECORATOR, MONITORING, TLS, "postgresql.enabled=false"],
    ),
}


def identity(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def in_order(value: Any, key: str = "") -> Any:  # noqa: ANN401  a part of a manifest
    """Return a part of an object with its unordered lists sorted."""
    if isinstance(value, dict):
        return {name: in_order(child, name) for name, child in value.items()}
    if isinstance(value, list):
        items = [in_order(item) for item in value]
        return sorted(items, key=lambda item: item["name"]) if key in NAMED else items
    return value


def comparable(manifests: list[Manifest]) -> dict[tuple[str, str, str], Manifest]:
    """Return the objects by identity, without what only one of the two tools writes."""
    found = {}
    for manifest in manifests:
        copied = deepcopy(manifest)
        for label in OF_HELM:
            copied["metadata"].get("labels", {}).pop(label, None)
        if copied["kind"] != "Namespace":  # Helm is told the namespace and does not own it
            found[identity(copied)] = in_order(copied)
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_chart_renders_the_objects_of_the_manifests(case: str, tmp_path: Path) -> None:
    components, values = CASES[case]
    ours = comparable(kustomized(tmp_path, *components))
    assert comparable(templated(CHART, *values)) == ours


def test_every_label_of_helm_is_on_every_object() -> None:
    for manifest in templated(CHART, "druid.enabled=true", "monitoring.enabled=true"):
        assert set(OF_HELM) <= manifest["metadata"]["labels"].keys()


def test_the_chart_of_the_crds_renders_the_files() -> None:
    files = [path for path in CRDS.rglob("*.yaml") if path.name != "kustomization.yaml"]
    rendered = templated(CRD_CHART, "druid=true", "initSql=true")
    assert comparable(rendered) == comparable(load(*files))


def test_the_chart_of_the_crds_has_by_default_those_that_nobody_else_brings() -> None:
    names = {manifest["spec"]["names"]["kind"] for manifest in templated(CRD_CHART)}
    assert names == {"PostgreSQLInstance", "PostgreSQLTenant"}


@pytest.mark.parametrize("chart", [CHART, CRD_CHART], ids=lambda path: path.name)
def test_a_packed_chart_has_the_files_that_it_links_to(chart: Path, tmp_path: Path) -> None:
    run("helm", "package", chart, "--destination", tmp_path)
    (archive,) = tmp_path.glob("*.tgz")
    values = ["monitoring.enabled=true"] if chart == CHART else ["druid=true"]
    assert templated(archive, *values) == templated(chart, *values)


def test_the_crds_are_built_in_two_parts() -> None:
    built = objects(run("kubectl", "kustomize", CRDS))
    apart = objects(run("kubectl", "kustomize", CRDS / "init-sql"))
    files = [path for path in CRDS.rglob("*.yaml") if path.name != "kustomization.yaml"]
    assert comparable(built + apart) == comparable(load(*files))
