"""The sandbox's adapter keeps its contract on a real API server, where watches are real too."""

from __future__ import annotations

import os
import queue
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.certificates import Authority
from hooks.sandbox.kinds import CONFIG_MAP
from hooks.sandbox.kube_cluster import KubeCluster
from tests.docs.pages import ROOT
from tests.e2e.apiserver.administrator import Administrator
from tests.e2e.apiserver.control_plane import started
from tests.e2e.tools.programs import program
from tests.sandbox.test_kube_cluster import *  # noqa: F403  all of it
from tests.sandbox.test_kube_cluster import settings


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Path]:
    """An API server with our kinds, and nobody at work who would change their objects."""
    directory = tmp_path_factory.mktemp("cluster")
    with started(directory, authority) as control_plane:
        environment = {
            "PATH": f"{program('kubectl').parent}:{os.defpath}",
            "HOME": str(directory),
            "KUBECONFIG": str(control_plane.kubeconfig),
        }
        who = Administrator(ROOT, environment)
        who.kubectl("apply", "-k", "crds")
        who.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        yield control_plane.kubeconfig


@pytest.fixture  # type: ignore[no-redef]  # a real one
def cluster(kubeconfig: Path) -> Iterator[KubeCluster]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with KubeCluster(kubeconfig, lambda: now) as cluster:
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
