"""What init SQL asks of a cluster's ConfigMaps and Pods.

No error here quotes the SQL, its results, or a sentence of the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hooks.core.errors import EffectError, Unavailable
from hooks.core.manifests import Manifest
from hooks.effects.ports.kubernetes import Resource

CONFIG_MAPS = Resource("", "v1", "configmaps")
POSTGRES_CLUSTERS = Resource("postgres-operator.crunchydata.com", "v1beta1", "postgresclusters")


class NotFound(EffectError):
    """The API server looked, and the object is not there."""


class NotNow(Unavailable):
    """Nothing was executed; a later attempt may be."""


class _AtLine(EffectError):
    """Something happened at a line of the script.

    Attributes:
        line: the line on which the statement ends; None when it is not known.
    """

    def __init__(
        self, system: str, detail: str, *, code: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(system, detail, code=code)
        self.line = line


class ScriptFailed(_AtLine):
    """A statement failed, and those after it were not executed; what ran before may stay."""


class OutcomeUnknown(_AtLine):
    """The script was handed over and its end was not seen: all of it may have been executed."""


@dataclass(frozen=True, slots=True)
class ConfigMap:
    """The contents of a ConfigMap.

    Attributes:
        data: its texts.
        binary: names of the keys whose values are no text.
    """

    data: Mapping[str, str] = field(repr=False)
    binary: frozenset[str] = frozenset()

    @classmethod
    def of(cls, manifest: Manifest) -> ConfigMap:
        """Read a ConfigMap object."""
        return cls(manifest.get("data") or {}, frozenset(manifest.get("binaryData") or ()))


class ConfigMaps(Protocol):
    """Reads of ConfigMaps."""

    def read(self, namespace: str, name: str) -> ConfigMap:
        """Read a ConfigMap.

        Raises:
            NotFound: there is none.
            EffectError: it cannot be read.
        """
        ...


class Pods(Protocol):
    """Reads of Pods."""

    def list(self, namespace: str, selector: str) -> list[Manifest]:
        """List the Pods of a namespace by a label selector, whole."""
        ...


class PodExec(Protocol):
    """Runs SQL in a container of a Pod."""

    def exec(self, namespace: str, pod: str, *, container: str, stdin: str) -> None:
        """Run the SQL on standard input with psql; to return is to have succeeded.

        Raises:
            NotNow: nothing was executed.
            ScriptFailed: a statement failed.
            OutcomeUnknown: it may have been executed.
            EffectError: the container cannot be reached.
        """
        ...
