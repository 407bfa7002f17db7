"""The manifests that users apply, read from where they are."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path

import yaml

from hooks.core.manifests import Manifest

ROOT = Path(__file__).parents[2]


def crds() -> list[Manifest]:
    """Return the CRDs, optional ones included."""
    return _manifests("crds", "**/*.yaml", ("CustomResourceDefinition",))


def controllers() -> list[Manifest]:
    """Return the controllers, those of optional components included."""
    types = ("CompositeController", "DecoratorController")
    return _manifests("metacontroller", "**/*controller-*.yaml", types)


def _manifests(directory: str, pattern: str, kinds: tuple[str, ...]) -> list[Manifest]:
    return [found for found in deepcopy(_read(directory, pattern)) if found["kind"] in kinds]


@cache
def _read(directory: str, pattern: str) -> list[Manifest]:
    files = sorted((ROOT / directory).glob(pattern))
    return [yaml.safe_load(path.read_text()) for path in files]
