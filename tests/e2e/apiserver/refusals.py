"""Why the API server refuses an object, and all that our kinds give it to refuse."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from hooks.core.manifests import Manifest
from tests.docs.pages import ROOT
from tests.e2e.apiserver.operation import Operation


def refusals(operation: Operation, wanted: Manifest) -> list[str]:
    """Return what is wrong with an object; that not all was looked at is left out."""
    said = operation.administrator.may_not_apply(wanted).partition(" is invalid: ")[2]
    found = [line.removeprefix("* ") for line in said.strip().splitlines()]
    return [line for line in found if "some validation rules were not checked" not in line]


def rules(*plurals: str) -> Iterator[str]:
    """Yield the message of each validation rule of these kinds."""
    for plural in plurals:
        (path,) = (ROOT / "crds").glob(f"{plural}.*.yaml")
        for version in yaml.safe_load(path.read_text())["spec"]["versions"]:
            yield from _rules(version["schema"]["openAPIV3Schema"])


def _rules(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for rule in node.get("x-kubernetes-validations", ()):
            yield rule["message"]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _rules(child)
