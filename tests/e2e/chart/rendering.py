"""Renders the manifests with kubectl and the chart with Helm, for comparison."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import yaml

from tests.e2e.tools.programs import program
from tests.manifests.manifests import BASE, COMPONENTS, ROOT, Manifest

CHARTS = ROOT / "charts"
CHART, CRD_CHART = CHARTS / "database-hooks", CHARTS / "database-hooks-crds"


def run(name: str, *arguments: str | Path) -> str:
    """Run kubectl or helm, and return what it prints."""
    command = [str(program(name)), *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def objects(text: str) -> list[Manifest]:
    """Return the objects of a stream of YAML."""
    return [document for document in yaml.safe_load_all(text) if document is not None]


def kustomized(directory: Path, *components: str, **more: object) -> list[Manifest]:
    """Build the base with components, in an overlay made for it.

    Args:
        directory: where the overlay is written.
        components: names of folders of metacontroller/components.
        more: other fields of the overlay's kustomization.
    """
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(BASE, directory)],
        "components": [os.path.relpath(COMPONENTS / name, directory) for name in components],
        **more,
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    return objects(run("kubectl", "kustomize", directory))


def templated(chart: Path, *values: str) -> list[Manifest]:
    """Render a chart; values are those of --set."""
    sets = [argument for value in values for argument in ("--set", value)]
    namespace = "database-hooks"
    return objects(run("helm", "template", namespace, chart, "--namespace", namespace, *sets))
