"""What is read of the Kubernetes API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hooks.core.manifests import Manifest


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API server's paths name it."""

    group: str
    version: str
    plural: str


INSTANCES = Resource("database.ddupan.top", "v1alpha1", "postgresqlinstances")
TENANTS = Resource("database.ddupan.top", "v1alpha1", "postgresqltenants")
EXTERNAL_SECRETS = Resource("external-secrets.io", "v1", "externalsecrets")


@dataclass(frozen=True, slots=True)
class Secret:
    """A Kubernetes Secret: decoded data, who controls it, and the version that tells a change."""

    name: str
    uid: str
    controller_uid: str | None
    data: Mapping[str, bytes] = field(repr=False)
    version: str = ""


class Kubernetes(Protocol):
    """Live reads of the API server; never a cache, never a write."""

    def get(self, resource: Resource, name: str, namespace: str = "") -> Manifest | None:
        """Read one object."""
        ...

    def secret(self, namespace: str, name: str) -> Secret | None:
        """Read one Secret by name."""
        ...

    def list(
        self, resource: Resource, *, fields: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        """List metadata of all objects in all namespaces, every page or none.

        Args:
            resource: the kind.
            fields: a field selector. An API server that does not serve the field answers the
                same as one that does: then whole objects are listed and filtered here.
        """
        ...
