"""ConfigMaps, by the Kubernetes port."""

from __future__ import annotations

from hooks.effects.ports.kubernetes import Kubernetes
from hooks.effects.ports.pods import CONFIG_MAPS, ConfigMap, NotFound


class LiveConfigMaps:
    """Reads ConfigMaps when asked, never from a cache."""

    def __init__(self, kubernetes: Kubernetes) -> None:
        self._kubernetes = kubernetes

    def read(self, namespace: str, name: str) -> ConfigMap:
        """Read a ConfigMap, or raise NotFound."""
        found = self._kubernetes.get(CONFIG_MAPS, name, namespace)
        if found is None:
            raise NotFound("Kubernetes", f'configmaps "{name}" not found', code="404")
        return ConfigMap.of(found)
