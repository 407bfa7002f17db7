"""Reads the YAML of the repository and judges objects by the CRDs, as the API server would.

Validation covers the OpenAPI part of a schema. The validation rules (CEL) have their own tests.
"""

import copy
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

Manifest = dict[str, Any]

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "crds"
SAMPLES = ROOT / "samples"
BASE = ROOT / "metacontroller" / "base"
COMPONENTS = ROOT / "metacontroller" / "components"


def load(*paths: Path) -> list[Manifest]:
    """Return every document of the files."""
    return [
        document
        for path in paths
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    ]


def json_patch(path: Path) -> list[Manifest]:
    """Return the changes of a JSON patch, which is a list in a document of its own."""
    found: list[Manifest] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


@functools.cache
def crd(kind: str) -> Manifest:
    """Return the CRD of a kind, not to be changed."""
    found: Manifest
    (found,) = load(*CRDS.rglob(f"{kind.lower()}s.*.yaml"))
    return found


def version(kind: str) -> Manifest:
    """Return the one version of a kind's CRD."""
    found: Manifest
    (found,) = crd(kind)["spec"]["versions"]
    return found


def schema(kind: str) -> Manifest:
    """Return the schema of a kind."""
    found: Manifest = version(kind)["schema"]["openAPIV3Schema"]
    return found


def properties(node: Manifest, path: str = "") -> Iterator[tuple[str, Manifest, bool]]:
    """Yield path, schema and whether it is required, of every field below a schema."""
    for name, child in node.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here, child, name in node.get("required", [])
        yield from properties(child, here)
        if "items" in child:
            yield f"{here}[]", child["items"], False
            yield from properties(child["items"], f"{here}[]")


def with_defaults(value: Manifest, node: Manifest) -> Manifest:
    """Return the object as the API server would store it: defaults filled in."""
    filled = copy.deepcopy(value)
    for name, child in node.get("properties", {}).items():
        if filled.get(name) is None and "default" in child:  # null counts as omitted
            filled[name] = copy.deepcopy(child["default"])
        if isinstance(filled.get(name), dict):
            filled[name] = with_defaults(filled[name], child)
    return filled


def problems(manifest: Manifest) -> list[str]:
    """Return where the API server would refuse the object, by its OpenAPI schema."""
    node = schema(manifest["kind"])
    validator = Draft202012Validator(node, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return sorted(error.json_path for error in validator.iter_errors(with_defaults(manifest, node)))


def unknown_fields(value: object, node: Manifest, path: str = "") -> list[str]:
    """Return the fields that the API server would prune, which nobody means to write."""
    if isinstance(value, list):
        return [found for item in value for found in unknown_fields(item, node["items"], path)]
    if not isinstance(value, dict) or path == ".metadata":
        return []
    known = node.get("properties", {})
    kept = bool(node.get("x-kubernetes-preserve-unknown-fields"))
    return [f"{path}.{name}" for name in value if name not in known and not kept] + [
        found
        for name, child in value.items()
        if name in known
        for found in unknown_fields(child, known[name], f"{path}.{name}")
    ]


def changed(manifest: Manifest, path: str, value: object) -> Manifest:
    """Return a copy of the object with the field at a dotted path set."""
    copied = copy.deepcopy(manifest)
    *parents, leaf = path.split(".")
    node = copied
    for name in parents:
        node = node.setdefault(name, {})
    node[leaf] = value
    return copied
