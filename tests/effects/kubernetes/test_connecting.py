"""Which API server the reader talks to, and as whom."""

from __future__ import annotations

import traceback
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from kubernetes.config import incluster_config

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError, Misconfigured, Refused, Unavailable
from hooks.effects.kubernetes import connect
from hooks.effects.ports.kubernetes import TENANTS, Kubernetes
from hooks.sandbox.certificates import Authority
from hooks.sandbox.processes import free_port
from tests.effects.kubernetes.conftest import TOKEN, Server, kubeconfig

SYSTEM = "Kubernetes"


def failure(kubernetes: Kubernetes) -> EffectError:
    with pytest.raises(EffectError) as raised:
        kubernetes.get(TENANTS, "orders", "shop")
    return raised.value


def test_nobody_listens(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "nobody", f"https://127.0.0.1:{free_port()}", {"token": TOKEN})
    assert failure(connect(file).bind(Deadline())) == Unavailable(SYSTEM, "no connection")


def test_a_certificate_of_a_stranger_is_refused(server: Server, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger")
    file = tmp_path / "kubeconfig"
    kubeconfig(file, server.url, {"token": TOKEN})
    ca = f"    server: {server.url}\n    certificate-authority: {stranger.ca_file}\n"
    file.write_text(file.read_text().replace(f"    server: {server.url}\n", ca))
    assert failure(connect(file).bind(Deadline())) == Refused(
        SYSTEM, "no trusted TLS connection: check its address and its CA"
    )


@pytest.mark.parametrize(
    "content", [None, "", "{", "a: b", "users: [{name: it, user: {token: a-token-in-no-text}}]"]
)
def test_a_kubeconfig_that_is_none_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    with pytest.raises(Misconfigured) as raised:
        connect(file)
    assert raised.value == Misconfigured(SYSTEM, "the kubeconfig is missing or cannot be used")
    assert TOKEN not in "".join(traceback.format_exception(raised.value))


def test_outside_a_pod_there_is_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(Misconfigured) as raised:
        connect(None)
    assert raised.value == Misconfigured(
        SYSTEM, "the Pod's ServiceAccount is missing or cannot be used"
    )


class Pod:
    """Where a Pod finds the API server and its token."""

    def __init__(self, directory: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        self.token = directory / "token"
        self.now = datetime(2026, 1, 1)  # noqa: DTZ001  the client compares naive times
        (directory / "ca.crt").write_text(server._ca_file.read_text())  # noqa: SLF001  its own
        clock = SimpleNamespace(now=lambda: self.now)
        shim = SimpleNamespace(datetime=clock, timedelta=timedelta)
        monkeypatch.setattr(incluster_config, "datetime", shim)
        monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(self.token))
        monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(directory / "ca.crt"))
        host, _, port = server.url.removeprefix("https://").partition(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)


@pytest.fixture
def pod(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Pod:
    return Pod(tmp_path, server, monkeypatch)


def test_in_a_pod_the_token_is_read_again_as_it_rotates(pod: Pod, server: Server) -> None:
    pod.token.write_text(TOKEN)
    kubernetes = connect(None).bind(Deadline())
    first = kubernetes.list(TENANTS)
    server.tokens = {"rotated": "hooks"}
    pod.token.write_text("rotated")
    pod.now += timedelta(minutes=1)
    assert (first, kubernetes.list(TENANTS)) == ([], [])


@pytest.mark.parametrize("content", [None, "", f"{TOKEN}\nand more\n"])
def test_a_token_that_becomes_unusable_is_named_and_not_shown(
    pod: Pod, content: str | None
) -> None:
    pod.token.write_text(TOKEN)
    kubernetes = connect(None).bind(Deadline())
    pod.token.unlink()
    if content is not None:
        pod.token.write_text(content)
    pod.now += timedelta(minutes=1)
    error = failure(kubernetes)
    assert error == Misconfigured(SYSTEM, "the credentials of the hooks cannot be used")
    assert TOKEN not in "".join(traceback.format_exception(error))


def test_the_environment_sets_no_proxy(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    kubernetes = connect(server.kubeconfig(tmp_path / "kubeconfig", TOKEN)).bind(Deadline())
    assert kubernetes.list(TENANTS) == []
