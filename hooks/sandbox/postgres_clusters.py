"""A double of the operator that makes PostgresClusters: each gets a member that is a real server.

Limits: one member, whatever the spec says, and no status: what the hooks write there is not
anybody else's.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.follower import Follower
from hooks.sandbox.kinds import ApiError, Kind
from hooks.sandbox.postgres_pod import PostgresPod, Where

if TYPE_CHECKING:
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.certificates import Authority

POSTGRES_CLUSTER = Kind(
    "postgres-operator.crunchydata.com/v1beta1",
    "PostgresCluster",
    "postgresclusters",
    namespaced=True,
)


class PostgresClusters:
    """The members of all PostgresClusters."""

    def __init__(self, where: Where, directory: Path, authority: Authority) -> None:
        """Use an existing directory for the servers' logs."""
        self._where = where
        self._directory = directory
        self._authority = authority
        self._lock = threading.Lock()
        self._members: dict[str, PostgresPod] = {}
        self._follower = Follower(where.cluster, (POSTGRES_CLUSTER,), self.settle)

    def start(self) -> None:
        """Follow the PostgresClusters in a thread until `stop`."""
        self._follower.start()

    def stop(self) -> None:
        """Stop every member."""
        self._follower.stop()
        for pod in self._members.values():
            pod.stop()
        self._members.clear()

    def settle(self) -> None:
        """Start the members that are missing, and take away those of clusters that are gone."""
        with self._lock:
            clusters = self._where.cluster.list(POSTGRES_CLUSTER)
            wanted = {manifests.uid(cluster): cluster for cluster in clusters}
            for uid in self._members.keys() - wanted.keys():
                self._members.pop(uid).remove()
            for uid in wanted.keys() - self._members.keys():
                # A namespace that ends takes no Pods any more.
                with contextlib.suppress(ApiError):
                    self._members[uid] = self._started(wanted[uid])

    def member(self, namespace: str, name: str) -> PostgresPod:
        """Return the member of a PostgresCluster that has one."""
        cluster = self._where.cluster.get(POSTGRES_CLUSTER, namespace, name)
        return self._members[manifests.uid(cluster or {})]

    def _started(self, cluster: Manifest) -> PostgresPod:
        return PostgresPod.start(
            self._where,
            self._directory / manifests.uid(cluster),
            self._authority,
            owner=(manifests.namespace(cluster), manifests.name(cluster)),
        )
