"""The API double for what a real server does, and a bare server for what one should not do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from hooks.core.deadline import Deadline
from hooks.core.manifests import Manifest
from hooks.effects.kubernetes import connect
from hooks.effects.ports.kubernetes import Kubernetes
from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import MemoryCluster

TOKEN = "a-token-in-no-text"
CRDS = Path(__file__).parents[3] / "crds"


@dataclass(frozen=True)
class Reply:
    """What the bare server answers; no status means that it does not answer at all."""

    status: int | None = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str = "{}"


class Bare:
    """A server that answers each request with the next of its replies, the last one for ever."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.seen: list[str] = []
        self._released = threading.Event()
        bare = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                bare.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.seen.append(handler.path)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if reply.status is None:
            self._released.wait(10)
            return
        content = reply.body.encode()
        handler.send_response(reply.status)
        for key, text in {**reply.headers, "Content-Length": str(len(content))}.items():
            handler.send_header(key, text)
        handler.end_headers()
        handler.wfile.write(content)

    def close(self) -> None:
        self._released.set()
        self._http.shutdown()
        self._http.server_close()


class Server(ApiServer):
    """The double, which forgets what it was listing when told to."""

    expired: int = 0

    def respond(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Manifest] | None:
        if "continue=" in target and self.expired:
            self.expired -= 1
            return 410, {"kind": "Status", "reason": "Expired", "message": "too old"}
        return super().respond(method, target, headers, body)


def status(code: int, reason: str, message: str = "", **details: str) -> Reply:
    """Answer with a Status object, as API servers do."""
    body = {"kind": "Status", "reason": reason, "message": message, "details": details}
    return Reply(code, {"Content-Type": "application/json"}, json.dumps(body))


def kubeconfig(path: Path, server: str, user: dict[str, str]) -> Path:
    """Write a kubeconfig for one server."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def cluster() -> MemoryCluster:
    crds = [yaml.safe_load(file.read_text()) for file in sorted(CRDS.glob("postgresql*.yaml"))]
    return MemoryCluster(
        crds, lambda: datetime(2026, 1, 1, tzinfo=UTC), namespaces=["shop", "hooks"]
    )


@pytest.fixture
def server(cluster: MemoryCluster, authority: Authority) -> Iterator[Server]:
    certificate = authority.issue("apiserver", dns=["localhost"], ips=["127.0.0.1"])
    with Server(
        cluster, certificate=certificate, ca_file=authority.ca_file, tokens={TOKEN: "hooks"}
    ) as server:
        yield server


@pytest.fixture
def kubernetes(server: Server, tmp_path: Path) -> Kubernetes:
    return connect(server.kubeconfig(tmp_path / "kubeconfig", TOKEN)).bind(Deadline())


@pytest.fixture
def bare() -> Iterator[Bare]:
    bare = Bare()
    yield bare
    bare.close()


@pytest.fixture
def beside(bare: Bare, tmp_path: Path) -> Kubernetes:
    """A reader of the bare server."""
    file = kubeconfig(tmp_path / "bare", bare.address, {"token": TOKEN})
    return connect(file).bind(Deadline())
