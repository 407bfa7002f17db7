"""Reads of the API double through the real client."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from hooks.core.deadline import Deadline
from hooks.core.errors import Denied, EffectError, Misconfigured, Refused, Unavailable
from hooks.core.manifests import Manifest
from hooks.effects.kubernetes import connect
from hooks.effects.ports.kubernetes import (
    EXTERNAL_SECRETS,
    INSTANCES,
    TENANTS,
    Kubernetes,
    Resource,
    Secret,
)
from hooks.sandbox.cluster import MemoryCluster
from tests.effects.kubernetes.conftest import Server

SYSTEM = "Kubernetes"


def tenant(name: str, *, instance: str = "main") -> Manifest:
    return {
        "apiVersion": "database.ddupan.top/v1alpha1",
        "kind": "PostgreSQLTenant",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"instanceRef": instance},
    }


def secret(name: str, data: dict[str, bytes] | None, **metadata: object) -> Manifest:
    found: Manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "shop", **metadata},
    }
    if data is not None:
        found["data"] = {key: base64.b64encode(text).decode() for key, text in data.items()}
    return found


def names(found: list[Manifest]) -> list[str]:
    return [item["metadata"]["name"] for item in found]


def test_an_object_is_read_whole(kubernetes: Kubernetes, cluster: MemoryCluster) -> None:
    created = cluster.create(tenant("orders"))
    assert kubernetes.get(TENANTS, "orders", "shop") == created


def test_a_change_is_seen_at_once(kubernetes: Kubernetes, cluster: MemoryCluster) -> None:
    created = cluster.create(tenant("orders"))
    kubernetes.get(TENANTS, "orders", "shop")
    created["metadata"]["labels"] = {"tier": "one"}
    changed = cluster.replace(created)
    assert kubernetes.get(TENANTS, "orders", "shop") == changed


@pytest.mark.parametrize("namespace", ["shop", "nowhere"])
def test_an_object_that_is_not_there_is_absent(kubernetes: Kubernetes, namespace: str) -> None:
    assert kubernetes.get(TENANTS, "orders", namespace) is None


def test_a_cluster_scoped_object_that_is_not_there_is_absent(kubernetes: Kubernetes) -> None:
    assert kubernetes.get(INSTANCES, "main") is None


@pytest.mark.parametrize(
    "resource",
    [
        Resource("database.ddupan.top", "v9", "postgresqltenants"),
        Resource("database.ddupan.top", "v1alpha1", "postgresqlusers"),
        Resource("nobody.test", "v1", "things"),
    ],
)
def test_a_kind_that_is_not_served_is_not_an_absent_object(
    kubernetes: Kubernetes, resource: Resource
) -> None:
    expected = Misconfigured(
        SYSTEM, f"the kind {resource.plural}.{resource.group} is not installed", code="404"
    )
    with pytest.raises(EffectError) as got:
        kubernetes.get(resource, "orders", "shop")
    with pytest.raises(EffectError) as listed:
        kubernetes.list(resource)
    assert (got.value, listed.value) == (expected, expected)


def test_no_name_is_not_the_list(kubernetes: Kubernetes) -> None:
    with pytest.raises(EffectError) as raised:
        kubernetes.get(TENANTS, "", "shop")
    assert raised.value == Misconfigured(
        SYSTEM,
        "another object came back from get postgresqltenants.database.ddupan.top in namespace shop",
    )


def test_a_secret_is_decoded(kubernetes: Kubernetes, cluster: MemoryCluster) -> None:
    data = {"username": b"orders", "password": b"\x00\xff:p\xc3\xa4ss", "empty": b""}
    created = cluster.create(secret("login", data))
    uid, version = created["metadata"]["uid"], created["metadata"]["resourceVersion"]
    assert kubernetes.secret("shop", "login") == Secret("login", uid, None, data, version)


def test_a_secret_says_who_controls_it(kubernetes: Kubernetes, cluster: MemoryCluster) -> None:
    owner = cluster.create(tenant("orders"))["metadata"]["uid"]
    references = [
        {"apiVersion": "v1", "kind": "Thing", "name": "other", "uid": "another-uid"},
        {
            "apiVersion": "database.ddupan.top/v1alpha1",
            "kind": "PostgreSQLTenant",
            "name": "orders",
            "uid": owner,
            "controller": True,
        },
    ]
    created = cluster.create(secret("login", None, ownerReferences=references))
    found = kubernetes.secret("shop", "login")
    assert found is not None
    assert found == Secret("login", created["metadata"]["uid"], owner, {}, found.version)


def test_a_secret_that_is_not_there_is_absent(kubernetes: Kubernetes) -> None:
    assert kubernetes.secret("shop", "login") is None


def test_a_list_is_metadata_of_all_namespaces(
    kubernetes: Kubernetes, cluster: MemoryCluster
) -> None:
    elsewhere = tenant("carts")
    elsewhere["metadata"]["namespace"] = "hooks"
    created = [cluster.create(elsewhere), cluster.create(tenant("orders"))]
    assert kubernetes.list(TENANTS) == [{"metadata": item["metadata"]} for item in created]


def test_an_empty_list_is_empty(kubernetes: Kubernetes) -> None:
    assert kubernetes.list(TENANTS) == []


def test_a_list_is_selected_by_a_field(kubernetes: Kubernetes, cluster: MemoryCluster) -> None:
    cluster.create(tenant("orders", instance="main"))
    cluster.create(tenant("carts", instance="other"))
    assert names(kubernetes.list(TENANTS, fields={"spec.instanceRef": "main"})) == ["orders"]


def test_a_field_that_the_server_does_not_serve_makes_no_difference(
    kubernetes: Kubernetes, cluster: MemoryCluster
) -> None:
    limited = tenant("orders")
    limited["spec"]["deletionPolicy"] = "Delete"
    created = cluster.create(limited)
    cluster.create(tenant("carts"))
    found = kubernetes.list(TENANTS, fields={"spec.deletionPolicy": "Delete"})
    assert found == [{"metadata": created["metadata"]}]


@pytest.fixture
def many(cluster: MemoryCluster) -> list[str]:
    """Three pages."""
    return [
        cluster.create(secret(f"login-{number:04}", None))["metadata"]["name"]
        for number in range(1001)
    ]


SECRETS = Resource("", "v1", "secrets")


def test_a_list_has_every_page(kubernetes: Kubernetes, many: list[str]) -> None:
    assert names(kubernetes.list(SECRETS)) == many


def test_a_list_without_its_field_has_every_page(kubernetes: Kubernetes, many: list[str]) -> None:
    assert names(kubernetes.list(SECRETS, fields={"spec.none": ""})) == many


def test_a_list_that_expires_is_begun_again_once(
    kubernetes: Kubernetes, server: Server, many: list[str]
) -> None:
    server.expired = 1
    assert names(kubernetes.list(SECRETS)) == many


def test_a_list_that_goes_on_expiring_is_no_result(
    kubernetes: Kubernetes, server: Server, many: list[str]
) -> None:
    server.expired = len(many)
    with pytest.raises(EffectError) as raised:
        kubernetes.list(SECRETS)
    assert raised.value == Unavailable(SYSTEM, "it changes too fast to list secrets", code="410")


def test_what_the_hooks_may_not_do_is_named(kubernetes: Kubernetes, server: Server) -> None:
    server.api.allow = lambda *_: False
    told: list[str] = []
    for read in (
        lambda: kubernetes.secret("shop", "login"),
        lambda: kubernetes.get(EXTERNAL_SECRETS, "login"),
        lambda: kubernetes.get(INSTANCES, "main"),
        lambda: kubernetes.list(TENANTS),
    ):
        with pytest.raises(Denied) as raised:
            read()
        told.append(str(raised.value))
    assert told == [
        "Kubernetes: the hooks may not get secrets in namespace shop (403)",
        "Kubernetes: the hooks may not get externalsecrets.external-secrets.io (403)",
        "Kubernetes: the hooks may not get postgresqlinstances.database.ddupan.top (403)",
        "Kubernetes: the hooks may not list postgresqltenants.database.ddupan.top (403)",
    ]


def test_a_token_that_is_not_known_is_refused(server: Server, tmp_path: Path) -> None:
    stranger = connect(server.kubeconfig(tmp_path / "stranger", "another")).bind(Deadline())
    with pytest.raises(EffectError) as raised:
        stranger.list(TENANTS)
    assert raised.value == Refused(SYSTEM, "the token of the hooks is not accepted", code="401")


def test_a_server_that_comes_back_is_found(
    kubernetes: Kubernetes, server: Server, cluster: MemoryCluster
) -> None:
    created = cluster.create(tenant("orders"))
    kubernetes.get(TENANTS, "orders", "shop")
    server.faults = lambda _method, _path: "close"
    with pytest.raises(EffectError) as raised:
        kubernetes.get(TENANTS, "orders", "shop")
    server.faults = lambda _method, _path: None
    found = kubernetes.get(TENANTS, "orders", "shop")
    assert (raised.value, found) == (Unavailable(SYSTEM, "no connection"), created)
