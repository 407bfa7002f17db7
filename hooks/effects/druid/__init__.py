"""Apache Druid over HTTP, through the Routers of its clusters."""

from __future__ import annotations

from pathlib import Path

from hooks.core.deadline import Deadline
from hooks.effects.ports.druid import Cluster, Router
from hooks.effects.ports.server import Login


class DruidClusters:
    """All Druid clusters, as the process sees them."""

    def __init__(self, *, ca_file: Path | None = None) -> None:
        self._ca_file = ca_file

    def bind(self, deadline: Deadline) -> BoundDruid:
        """Return Druid as one request may use it."""
        return BoundDruid(self._ca_file, deadline)


class BoundDruid:
    """Druid clusters within one request's time."""

    def __init__(self, ca_file: Path | None, deadline: Deadline) -> None:
        self._ca_file = ca_file
        self._deadline = deadline

    def cluster(self, router: Router, login: Login | None) -> Cluster:
        """Return a cluster; nothing is asked yet."""
        raise NotImplementedError(router.url, login)
