"""Apache Druid over HTTP, through the Routers of its clusters.

One `DruidClusters` lives as long as the process and is shared by its threads: it keeps the
connections. `bind` gives what one request works with, under that request's deadline.

No call is repeated and no redirect is followed: a time-out means that nobody knows, and a look
tells more than a second try.
"""

from __future__ import annotations

from pathlib import Path

from hooks.core.deadline import Deadline
from hooks.effects.druid.asking import Asker
from hooks.effects.druid.cluster import DruidCluster
from hooks.effects.druid.transport import Transport
from hooks.effects.ports.druid import Cluster, Druid, Router
from hooks.effects.ports.server import Login

__all__ = ["DruidClusters"]


class DruidClusters:
    """All Druid clusters, as the process sees them."""

    def __init__(self, *, ca_file: Path | None = None) -> None:
        """Keep the settings; nothing is asked of any cluster yet.

        Args:
            ca_file: who signed the certificates of Routers that bring no CA of their own; None
                trusts what the system trusts.
        """
        self._transport = Transport(ca_file)

    def bind(self, deadline: Deadline) -> Druid:
        """Return Druid as one request may use it."""
        return _Bound(self._transport, deadline)


class _Bound:
    """Druid clusters within one request's time."""

    def __init__(self, transport: Transport, deadline: Deadline) -> None:
        self._transport = transport
        self._deadline = deadline

    def cluster(self, router: Router, login: Login | None) -> Cluster:
        """Return a cluster; nothing is asked yet."""
        return DruidCluster(Asker(self._transport, self._deadline, router, login))
