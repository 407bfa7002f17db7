"""Doubles behind the ports: ConfigMaps in memory, and Pods that remember what ran in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from hooks.core.errors import EffectError
from hooks.core.manifests import Manifest
from hooks.effects.ports.kubernetes import Resource
from hooks.effects.ports.pods import ConfigMap, NotFound


@dataclass
class MemoryConfigMaps:
    """ConfigMaps of one namespace; an error in the place of one is raised."""

    namespace: str
    held: dict[str, ConfigMap | EffectError] = field(default_factory=dict)

    def read(self, namespace: str, name: str) -> ConfigMap:
        found = self.held.get(name) if namespace == self.namespace else None
        if found is None:
            raise NotFound("Kubernetes", f'configmaps "{name}" not found', code="404")
        if isinstance(found, EffectError):
            raise found
        return found


@dataclass
class MemoryPods:
    """Pods in which SQL is run by remembering it.

    Attributes:
        ran: (namespace, Pod, container) and the SQL, in order.
        error: what running raises.
    """

    ran: list[tuple[str, str, str, str]] = field(default_factory=list)
    error: Exception | None = None

    def exec(self, namespace: str, pod: str, *, container: str, stdin: str) -> None:
        if self.error is not None:
            raise self.error
        self.ran.append((namespace, pod, container, stdin))


@dataclass
class MemoryKubernetes:
    """An API server that holds what it is given, by plural and name; an error is raised."""

    held: dict[tuple[str, str], Manifest | EffectError] = field(default_factory=dict)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Manifest | None:  # noqa: ARG002
        found = self.held.get((resource.plural, name))
        if isinstance(found, EffectError):
            raise found
        return found
