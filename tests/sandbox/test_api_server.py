"""The double speaks REST well enough for the real Kubernetes client."""

from __future__ import annotations

import json
import socket
import stat
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.certificates import Authority
from tests.sandbox.widgets import API, populated, widget

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hooks.core.manifests import Manifest

TOKEN = "a-token"
WIDGETS = f"/apis/{API}/namespaces/default/widgets"
SECRET_S = "/api/v1/namespaces/default/secrets/s"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def server(authority: Authority) -> Iterator[ApiServer]:
    certificate = authority.issue("kubernetes", ips=["127.0.0.1"])
    serving = ApiServer(
        populated(), certificate=certificate, ca_file=authority.ca_file, tokens={TOKEN: "hooks"}
    )
    with serving:
        yield serving


@pytest.fixture
def api(server: ApiServer, tmp_path: Path) -> Iterator[client.ApiClient]:
    with connected(server, tmp_path) as made:
        yield made


def connected(server: ApiServer, directory: Path, token: str = TOKEN) -> client.ApiClient:
    settings = client.Configuration()
    file = server.kubeconfig(directory / "kubeconfig", token)
    config.load_kube_config(  # type: ignore[no-untyped-call]  # the client is half typed
        str(file), client_configuration=settings
    )
    settings.retries = False
    return client.ApiClient(settings)


def call(
    api: client.ApiClient, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, Manifest]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    _, url, made, content, _ = api.param_serialize(
        method, path, header_params=sent, body=body, auth_settings=["BearerToken"]
    )
    try:
        answer = api.call_api(method, url, made, content, _request_timeout=5)
        content = answer.read()  # type: ignore[no-untyped-call]  # the client is half typed
        return answer.status, json.loads(content)
    except ApiException as error:
        return error.status, json.loads(error.body or "")


def names(body: Manifest) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


def test_the_real_client_reads_a_secret(api: client.ApiClient) -> None:
    found = client.CoreV1Api(api).read_namespaced_secret("s", "default")

    assert found.data == {"password": "c2VjcmV0"}


def test_pages_of_metadata_make_the_whole_list(api: client.ApiClient) -> None:
    query, pages, kinds = "?limit=2&fieldSelector=spec.owner=bob", [], set()
    token = ""
    while True:
        path = f"{WIDGETS}{query}&continue={quote(token)}"
        body = call(api, "GET", path, Accept=PARTIAL)[1]
        pages.append(names(body))
        kinds |= {body["kind"], *(item["kind"] for item in body["items"])}
        assert all("spec" not in item for item in body["items"])
        token = body["metadata"].get("continue", "")
        if not token:
            break

    assert pages == [["a", "c"], ["d"]]
    assert kinds == {"PartialObjectMetadata", "PartialObjectMetadataList"}


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_stranger_is_unauthorized(server: ApiServer, tmp_path: Path, token: str) -> None:
    with connected(server, tmp_path, token) as api, pytest.raises(ApiException) as caught:
        client.CoreV1Api(api).read_namespaced_secret("s", "default")

    assert caught.value.status == 401


def test_rights_are_asked_for(server: ApiServer, api: client.ApiClient) -> None:
    asked: list[tuple[object, ...]] = []

    def nobody(*question: object) -> bool:
        asked.append(question)
        return False

    server.api.allow = nobody

    _, said = call(api, "GET", SECRET_S)
    call(api, "PUT", f"{WIDGETS}/a/status", widget("a"))
    call(api, "GET", "/apis/example.com/v1/gadgets")

    assert said["message"] == (
        'secrets "s" is forbidden: User "hooks" cannot get resource "secrets" in API group "" '
        'in the namespace "default"'
    )
    assert asked == [
        ("hooks", "get", "", "secrets", "default", "s"),
        ("hooks", "update", "example.com", "widgets/status", "default", "a"),
        ("hooks", "list", "example.com", "gadgets", None, None),
    ]


def test_a_fault_answers_instead(server: ApiServer, api: client.ApiClient) -> None:
    server.faults = lambda method, path: 503 if (method, path) == ("POST", WIDGETS) else None

    assert call(api, "POST", WIDGETS, widget("x"))[0] == 503
    assert call(api, "GET", f"{WIDGETS}/x")[0] == 404


def test_a_lost_reply_was_still_a_write(server: ApiServer, api: client.ApiClient) -> None:
    server.faults = lambda method, _: "close" if method == "POST" else None

    with pytest.raises(HTTPError):
        call(api, "POST", WIDGETS, widget("x"))

    assert call(api, "GET", f"{WIDGETS}/x")[0] == 200


def test_a_closed_server_drops_kept_connections(server: ApiServer, api: client.ApiClient) -> None:
    assert call(api, "GET", f"{WIDGETS}/a")[0] == 200

    server.close()

    with pytest.raises(HTTPError):
        call(api, "GET", f"{WIDGETS}/a")


def test_a_silent_client_blocks_nobody(server: ApiServer, api: client.ApiClient) -> None:
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)):
        assert call(api, "GET", "/version")[0] == 200


def test_a_kubeconfig_is_private(server: ApiServer, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.touch(0o644)

    assert stat.S_IMODE(server.kubeconfig(path, TOKEN).stat().st_mode) == 0o600
