"""The sandbox's adapter keeps its contract on a real API server, where watches are real too."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.kinds import CONFIG_MAP
from hooks.sandbox.kube_cluster import KubeCluster
from tests.e2e.apiserver.installation import Installation
from tests.sandbox.test_kube_cluster import *  # noqa: F403  all of it
from tests.sandbox.test_kube_cluster import settings


@pytest.fixture  # type: ignore[no-redef]  # a real one
def cluster(installation: Installation) -> Iterator[KubeCluster]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with KubeCluster(installation.control_plane.kubeconfig, lambda: now) as cluster:
        yield cluster


def test_changes_are_told(cluster: KubeCluster) -> None:
    told: queue.SimpleQueue[tuple[str, Manifest]] = queue.SimpleQueue()
    cluster.subscribe(lambda change, obj: told.put((change, obj)))
    cluster.list(CONFIG_MAP)
    created = cluster.create(settings(a="1"))
    replaced = cluster.replace({**created, "data": {"a": "2"}})
    cluster.delete(CONFIG_MAP, manifests.namespace(created), manifests.name(created))
    heard = [told.get(timeout=20) for _ in range(3)]
    assert [change for change, _ in heard] == ["ADDED", "MODIFIED", "DELETED"]
    assert [obj for _, obj in heard[:2]] == [created, replaced]


def test_what_is_applied_again_without_a_field_loses_it(cluster: KubeCluster) -> None:
    wanted = settings(a="1", b="2")
    cluster.apply(wanted)
    applied = cluster.apply({**wanted, "data": {"a": "1"}})
    assert applied["data"] == {"a": "1"}
