"""The adapter of a real API server, over the double; e2e runs these tests over a real one as well.

Names are new in each test, so that the tests may share a server.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

import pytest

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import MemoryCluster
from hooks.sandbox.kinds import CONFIG_MAP, NAMESPACE, SECRET, ApiError, Kind
from hooks.sandbox.kube_cluster import KubeCluster
from hooks.sandbox.world import crds
from tests.effects.kubernetes.conftest import kubeconfig
from tests.tenant.world import TENANTS

HOME = "default"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def server(authority: Authority) -> Iterator[ApiServer]:
    double = MemoryCluster(crds(), lambda: NOW)
    certificate = authority.issue("kube-cluster", dns=["localhost"], ips=["127.0.0.1"])
    with ApiServer(
        double, certificate=certificate, ca_file=authority.ca_file, tokens={"token": "me"}
    ) as server:
        yield server


@pytest.fixture
def cluster(server: ApiServer, tmp_path: Path) -> Iterator[KubeCluster]:
    with KubeCluster(server.kubeconfig(tmp_path / "kubeconfig", "token"), lambda: NOW) as cluster:
        yield cluster


def settings(name: str = "", **data: str) -> Manifest:
    """Return a ConfigMap, of a name that no other has."""
    meta = {"name": name or f"settings-{token_hex(4)}", "namespace": HOME}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def tenant() -> Manifest:
    """Return a Tenant, of a name that no other has."""
    return {
        "apiVersion": "database.ddupan.top/v1alpha1",
        "kind": "PostgreSQLTenant",
        "metadata": {"name": f"tenant{token_hex(4)}", "namespace": HOME},
        "spec": {"instanceRef": "none"},
    }


def named(cluster: KubeCluster, kind: Kind, obj: Manifest) -> Manifest:
    """Return an object that must be there."""
    found = cluster.get(kind, manifests.namespace(obj), manifests.name(obj))
    assert found is not None
    return found


def test_the_kinds_are_those_that_are_served(cluster: KubeCluster) -> None:
    assert {CONFIG_MAP, NAMESPACE, SECRET, TENANTS} <= set(cluster.kinds)
    assert all("/" not in kind.plural for kind in cluster.kinds)


def test_what_was_created_is_read_back_and_listed(cluster: KubeCluster) -> None:
    created = cluster.create(settings(a="1"))
    assert (created["data"], bool(manifests.uid(created))) == ({"a": "1"}, True)
    assert named(cluster, CONFIG_MAP, created) == created
    assert created in cluster.list(CONFIG_MAP)
    assert created in cluster.list(CONFIG_MAP, HOME)
    assert cluster.list(CONFIG_MAP, "nowhere") == []


def test_what_is_not_there_is_none(cluster: KubeCluster) -> None:
    assert cluster.get(CONFIG_MAP, HOME, "nothing") is None


def test_a_replaced_object_is_another_version(cluster: KubeCluster) -> None:
    created = cluster.create(settings(a="1"))
    replaced = cluster.replace({**created, "data": {"b": "2"}})
    assert replaced["data"] == {"b": "2"}
    with pytest.raises(ApiError) as refused:
        cluster.replace({**created, "data": {"c": "3"}})
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")


def test_status_and_the_rest_are_written_apart(cluster: KubeCluster) -> None:
    created = cluster.create({**tenant(), "status": {"phase": "Ready"}})
    assert "status" not in created
    both = {**created, "spec": {"instanceRef": "other"}, "status": {"phase": "Planned"}}
    written = cluster.replace_status(both)
    assert (written["spec"]["instanceRef"], written["status"]) == ("none", {"phase": "Planned"})
    both["metadata"] = written["metadata"]
    written = cluster.replace({**both, "status": {"phase": "Ready"}})
    assert (written["spec"]["instanceRef"], written["status"]) == ("other", {"phase": "Planned"})


def test_a_name_that_is_taken_is_refused_by_name(cluster: KubeCluster) -> None:
    created = cluster.create(settings())
    name = manifests.name(created)
    with pytest.raises(ApiError) as refused:
        cluster.create(settings(name))
    error = refused.value
    assert (error.status, error.reason) == (409, "AlreadyExists")
    assert error.details == {"name": name, "kind": "configmaps"}
    assert str(error) == f'configmaps "{name}" already exists'


def test_only_the_object_that_is_meant_is_deleted(cluster: KubeCluster) -> None:
    created = cluster.create(settings())
    name = manifests.name(created)
    with pytest.raises(ApiError) as refused:
        cluster.delete(CONFIG_MAP, HOME, name, uid="0b1c4f3e-0000-0000-0000-000000000000")
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    cluster.delete(CONFIG_MAP, HOME, name, uid=manifests.uid(created))
    assert cluster.get(CONFIG_MAP, HOME, name) is None
    with pytest.raises(ApiError) as gone:
        cluster.delete(CONFIG_MAP, HOME, name)
    assert (gone.value.status, gone.value.reason) == (404, "NotFound")


def test_a_finalizer_keeps_what_is_deleted(cluster: KubeCluster) -> None:
    kept = settings()
    kept["metadata"]["finalizers"] = ["example.com/kept"]
    created = cluster.create(kept)
    cluster.delete(CONFIG_MAP, HOME, manifests.name(created))
    marked = named(cluster, CONFIG_MAP, created)
    assert manifests.deleting(marked)
    marked["metadata"]["finalizers"] = []
    cluster.replace(marked)
    assert cluster.get(CONFIG_MAP, HOME, manifests.name(created)) is None


def test_an_event_is_counted(cluster: KubeCluster) -> None:
    created = cluster.create(settings())
    for reason in ("First", "Second", "First"):
        cluster.record_event(created, reason, "it happened")
    found = {
        event["reason"]: (event["count"], event["type"], event["message"])
        for event in cluster.events
        if event["involvedObject"].get("uid") == manifests.uid(created)
    }
    assert found == {
        "First": (2, "Warning", "it happened"),
        "Second": (1, "Warning", "it happened"),
    }


def test_an_event_that_cannot_be_written_is_lost(cluster: KubeCluster) -> None:
    homeless = settings()
    homeless["metadata"] |= {"namespace": "nowhere", "uid": "some-uid"}
    cluster.record_event(homeless, "Lost", "it happened")
    assert [event for event in cluster.events if event["reason"] == "Lost"] == []


def test_a_kind_that_is_not_served_is_refused(cluster: KubeCluster) -> None:
    with pytest.raises(ApiError) as refused:
        cluster.create({**settings(), "kind": "Nonsense"})
    assert (refused.value.status, refused.value.reason) == (404, "NotFound")


def test_a_server_that_is_down_is_an_error_of_the_api(tmp_path: Path) -> None:
    nobody = kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1", {"token": "token"})
    with pytest.raises(ApiError) as down:
        KubeCluster(nobody, lambda: NOW).get(CONFIG_MAP, "default", "any")
    assert (down.value.status, down.value.reason) == (503, "ServiceUnavailable")
