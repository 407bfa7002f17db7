"""Each PostgresCluster gets a member, which goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.cluster import MemoryCluster
from hooks.sandbox.kinds import NAMESPACE, POD
from hooks.sandbox.postgres_clusters import POSTGRES_CLUSTER, PostgresClusters
from hooks.sandbox.postgres_pod import Where
from hooks.sandbox.shipped import crds
from tests.app.running import until
from tests.sandbox.widgets import BORN, NOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.certificates import Authority


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster(crds(), lambda: NOW)


@pytest.fixture
def clusters(
    cluster: MemoryCluster, authority: Authority, tmp_path: Path
) -> Iterator[PostgresClusters]:
    certificate = authority.issue("kubernetes", ips=["127.0.0.1"])
    with ApiServer(
        cluster, certificate=certificate, ca_file=authority.ca_file, tokens={}
    ) as server:
        made = PostgresClusters(Where(cluster, server.exec, lambda: BORN), tmp_path, authority)
        yield made
        made.stop()


def hippo() -> Manifest:
    return {
        "apiVersion": POSTGRES_CLUSTER.api_version,
        "kind": POSTGRES_CLUSTER.kind,
        "metadata": {"name": "hippo", "namespace": "default"},
        "spec": {},
    }


def test_a_cluster_has_one_member_until_it_is_deleted(
    cluster: MemoryCluster, clusters: PostgresClusters
) -> None:
    cluster.create(hippo())
    clusters.settle()
    clusters.settle()
    member = clusters.member("default", "hippo")
    pods = [pod["metadata"]["name"] for pod in cluster.list(POD)]
    running = member.server.pid is not None

    cluster.delete(POSTGRES_CLUSTER, "default", "hippo")
    clusters.settle()

    assert (pods, running) == ([member.name], True)
    assert (cluster.list(POD), member.server.pid) == ([], None)


def test_clusters_are_followed_as_they_come_and_go(
    cluster: MemoryCluster, clusters: PostgresClusters
) -> None:
    clusters.start()

    cluster.create(hippo())
    until(lambda: bool(cluster.list(POD)))
    cluster.delete(NAMESPACE, None, "default")

    until(lambda: cluster.get(NAMESPACE, None, "default") is None)
