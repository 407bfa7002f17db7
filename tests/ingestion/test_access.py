"""Where the Router is, and with which login and trust it is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hooks.core.errors import Unavailable
from hooks.core.manifests import Manifest
from hooks.effects.ports import Login, Secret
from hooks.effects.ports.druid import Router
from hooks.ingestion import access, router
from hooks.ingestion.access import Access
from hooks.ingestion.model import Config, Connection, SecretRef, Tls
from hooks.ingestion.reasons import Fault
from tests.ingestion.world import BATCH, FakeKubernetes, IngestionWorld

CONFIG = Config("database-hooks", frozenset({"shared", "database-hooks"}))
REFERENCE = SecretRef("team-a", "login", "OperatorUserName", "OperatorPassword")


def service(name: str = "router", **changes: Any) -> Manifest:  # noqa: ANN401  of spec
    labels = {"druid_cr": "tiny", "component": "router"}
    return {
        "metadata": {"name": name, "namespace": "team-a", "labels": labels},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 8088}], **changes},
    }


def url(*services: Manifest, tls: bool = False) -> str | Fault:
    found = {f"team-a/{number}": one for number, one in enumerate(services)}
    return router.url({"Service.v1": found}, "team-a", "tiny", tls=tls)


def ports(**named: int) -> list[Manifest]:
    return [{"name": name.replace("_", "-"), "port": port} for name, port in named.items()]


@pytest.mark.parametrize(
    ("services", "tls", "expected"),
    [
        pytest.param([service()], False, "http://router.team-a.svc:8088", id="the only port"),
        pytest.param(
            [service("a", clusterIP="None"), service("b")],
            False,
            "http://b.team-a.svc:8088",
            id="one with an address before a headless one",
        ),
        pytest.param([service("b"), service("a")], False, "http://a.team-a.svc:8088", id="by name"),
        pytest.param(
            [service(clusterIP="None")], False, "http://router.team-a.svc:8088", id="headless only"
        ),
        pytest.param(
            [service(type="ExternalName", externalName="druid.example.org.")],
            False,
            "http://druid.example.org:8088",
            id="ExternalName",
        ),
        pytest.param(
            [service(ports=ports(metrics=9000, router=8888))],
            False,
            "http://router.team-a.svc:8888",
            id="a port named router",
        ),
        pytest.param(
            [service(ports=ports(http=80, https=443))],
            False,
            "http://router.team-a.svc:80",
            id="plain unless encryption is asked for",
        ),
        pytest.param(
            [service(ports=ports(http=80, https=443))],
            True,
            "https://router.team-a.svc:443",
            id="encrypted when it is asked for",
        ),
        pytest.param(
            [service(ports=[{"port": 9088}])],
            False,
            "https://router.team-a.svc:9088",
            id="Druid's own TLS port",
        ),
        pytest.param(
            [service(ports=[{"port": 8088}])],
            True,
            "https://router.team-a.svc:8088",
            id="encrypted at the only port",
        ),
        pytest.param(
            [service(ports=ports(plain=8088, https=9088))],
            False,
            "http://router.team-a.svc:8088",
            id="the only plain port",
        ),
    ],
)
def test_the_routers_address(services: list[Manifest], tls: bool, expected: str) -> None:  # noqa: FBT001
    assert url(*services, tls=tls) == expected


@pytest.mark.parametrize(
    ("services", "words"),
    [
        pytest.param([], "druid_cr=tiny,component=router", id="none"),
        pytest.param([service(ports=ports(a=1, b=2))], "2 ports", id="no port to choose"),
        pytest.param([service(ports=[])], "no ports", id="no port"),
        pytest.param(
            [service(ports=[{"port": 1, "protocol": "UDP"}])], "no ports", id="no TCP port"
        ),
    ],
)
def test_a_router_that_cannot_be_found_is_explained(services: list[Manifest], words: str) -> None:
    found = url(*services)
    assert isinstance(found, Fault)
    assert found.reason == "RouterNotFound"
    assert words in found.message


def secret(name: str = "login", **data: bytes) -> Secret:
    return Secret(name, "uid-1", None, data, "7")


def find(
    kubernetes: FakeKubernetes,
    *,
    reference: SecretRef | None = REFERENCE,
    tls: Tls | None = None,
) -> Access | Fault:
    related = {"Service.v1": {"team-a/router": service()}}
    return access.find(Connection("team-a", "tiny", reference, tls), related, kubernetes, CONFIG)


GOOD = secret(OperatorUserName=b"admin", OperatorPassword="p:äss\n".encode())


def test_the_login_is_read_without_the_editors_line_break() -> None:
    kubernetes = FakeKubernetes({("team-a", "login"): GOOD})
    expected = Access(
        Router("http://router.team-a.svc:8088"), Login("admin", "p:äss"), secret="uid-1@7"
    )
    assert find(kubernetes) == expected


def test_other_keys_and_an_allowed_namespace_are_used() -> None:
    kubernetes = FakeKubernetes({("shared", "login"): secret(user=b"u", word=b"w")})
    found = find(kubernetes, reference=SecretRef("shared", "login", "user", "word"))
    assert isinstance(found, Access)
    assert found.login == Login("u", "w")


def test_no_auth_asks_for_no_secret() -> None:
    kubernetes = FakeKubernetes()
    assert find(kubernetes, reference=None) == Access(Router("http://router.team-a.svc:8088"))
    assert kubernetes.reads == []


@pytest.mark.parametrize(
    ("secrets", "reference", "reason", "words"),
    [
        pytest.param({}, REFERENCE, "SecretNotFound", "team-a/login", id="no Secret"),
        pytest.param(
            {("team-a", "login"): secret(OperatorUserName=b"u")},
            REFERENCE,
            "SecretKeyMissing",
            "'OperatorPassword'",
            id="no password",
        ),
        pytest.param(
            {("team-a", "login"): secret(OperatorUserName=b"", OperatorPassword=b"p")},
            REFERENCE,
            "SecretKeyMissing",
            "'OperatorUserName'",
            id="empty user name",
        ),
        pytest.param(
            {("team-a", "login"): secret(OperatorUserName=b"a:b", OperatorPassword=b"p")},
            REFERENCE,
            "SecretKeyMissing",
            "'OperatorUserName'",
            id="a colon in the user name",
        ),
        pytest.param(
            {("team-a", "login"): secret(OperatorUserName=b"u", OperatorPassword=b"\xff")},
            REFERENCE,
            "SecretKeyMissing",
            "'OperatorPassword'",
            id="no text",
        ),
        pytest.param(
            {("other", "login"): GOOD},
            replace(REFERENCE, namespace="other"),
            "SecretNotAllowed",
            "namespace other",
            id="another namespace",
        ),
        pytest.param(
            {("database-hooks", "login"): GOOD},
            replace(REFERENCE, namespace="database-hooks"),
            "SecretNotAllowed",
            "namespace database-hooks",
            id="the controller's namespace, even when it is listed",
        ),
    ],
)
def test_a_login_that_cannot_be_used_is_explained(
    secrets: dict[tuple[str, str], Secret], reference: SecretRef, reason: str, words: str
) -> None:
    found = find(FakeKubernetes(secrets), reference=reference)
    assert isinstance(found, Fault)
    assert found.reason == reason
    assert words in found.message


def test_trust_and_client_certificate_come_from_the_objects_namespace() -> None:
    kubernetes = FakeKubernetes(
        {
            ("team-a", "ca"): Secret("ca", "1", None, {"ca.crt": b"CA"}),
            ("team-a", "me"): Secret("me", "2", None, {"tls.crt": b"C", "tls.key": b"K"}),
        }
    )
    found = find(kubernetes, reference=None, tls=Tls(ca_secret="ca", client_secret="me"))
    assert found == Access(
        Router("https://router.team-a.svc:8088", ca_pem=b"CA", client_pem=(b"C", b"K"))
    )


def test_a_missing_certificate_key_is_named() -> None:
    kubernetes = FakeKubernetes({("team-a", "me"): Secret("me", "2", None, {"tls.crt": b"C"})})
    found = find(kubernetes, reference=None, tls=Tls(client_secret="me"))
    assert isinstance(found, Fault)
    assert found.reason == "SecretKeyMissing"
    assert "'tls.key'" in found.message


def test_kubernetes_down_is_no_missing_secret(world: IngestionWorld) -> None:
    world.make(BATCH, auth={"type": "", "secretRef": {"name": "login"}})
    world.kubernetes.down = Unavailable("Kubernetes", "it does not answer")
    world.sync()
    assert world.condition("Accepted") == ("False", "DependencyUnavailable")


def test_the_auth_block_of_the_original_without_a_name_is_no_auth(world: IngestionWorld) -> None:
    world.make(BATCH, auth={"type": "", "secretRef": {}})
    world.settle()
    assert world.condition("Submitted") == ("True", "Submitted")


def test_a_router_that_appears_is_used(world: IngestionWorld) -> None:
    routers, world.routers = world.routers, []
    world.make(BATCH)
    world.settle()
    assert world.conditions() == {
        "Accepted": ("False", "RouterNotFound"),
        "Submitted": ("Unknown", "Reconciling"),
        "Ready": ("False", "RouterNotFound"),
        "Suspended": ("False", "NotSuspended"),
    }
    world.routers = routers
    world.settle()
    assert world.condition("Submitted") == ("True", "Submitted")


def test_customize_names_the_routers_services(world: IngestionWorld) -> None:
    parent = world.make(BATCH)
    request = world._request(parent, finalizing=False)  # noqa: SLF001
    assert world.hooks.customize(request) == [
        {
            "apiVersion": "v1",
            "resource": "services",
            "namespace": "team-a",
            "labelSelector": {"matchLabels": {"druid_cr": "tiny", "component": "router"}},
        }
    ]
    parent["spec"]["druidCluster"] = 5
    assert world.hooks.customize(world._request(parent, finalizing=False)) == []  # noqa: SLF001
