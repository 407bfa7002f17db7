"""A real OpenBao for all tests, and a proxy that spoils what it answers."""

from __future__ import annotations

import ssl
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from hooks.core.deadline import Deadline
from hooks.effects.openbao import OpenBao, TokenFile
from hooks.effects.ports.openbao import CredentialStore
from hooks.sandbox.certificates import Authority, CertificateFiles
from hooks.sandbox.openbao_server import MOUNT, OpenBaoServer, controller_policy

BASE = "postgres"
KV1_MOUNT = "old"
MISSING_MOUNT = "missing"
RULES = "".join(controller_policy(mount, BASE) for mount in (MOUNT, KV1_MOUNT, MISSING_MOUNT))


@dataclass(frozen=True)
class Fault:
    """What happens to the requests that it applies to, instead of the server's answer.

    Attributes:
        status: the answer's; None for no answer at all.
        done: the server gets the request all the same.
        silent: the connection stays open.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    method: str = ""
    path: str = ""
    done: bool = False
    silent: bool = False


class Front:
    """A proxy before the real server, without TLS unless it gets a certificate."""

    def __init__(self, server: OpenBaoServer, certificate: CertificateFiles | None = None) -> None:
        self.faults: list[Fault] = []
        self.seen: list[str] = []
        self._released = threading.Event()
        self._server = server
        front = self

        class Handler(BaseHTTPRequestHandler):
            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if self.raw_requestline and self.parse_request():
                    front.handle(self)
                self.close_connection = True

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        scheme = "https" if certificate else "http"
        self.address = f"{scheme}://127.0.0.1:{self._http.server_address[1]}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.cert, certificate.key)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        content = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.seen.append(f"{handler.command} {handler.path}")
        fault = self._fault(handler)
        if fault is None or fault.done:
            real = self._forward(handler, content)
        if fault is None:
            _answer(handler, real.status_code, dict(real.headers), real.content)
        elif fault.silent:
            self._released.wait(10)
        elif fault.status is not None:
            _answer(handler, fault.status, fault.headers, fault.body.encode())

    def close(self) -> None:
        self._released.set()
        self._http.shutdown()
        self._http.server_close()

    def _fault(self, handler: BaseHTTPRequestHandler) -> Fault | None:
        for fault in self.faults:
            if fault.method in handler.command and fault.path in handler.path:
                return fault
        return None

    def _forward(self, handler: BaseHTTPRequestHandler, content: bytes) -> requests.Response:
        headers = {key: text for key, text in handler.headers.items() if key.startswith("X-")}
        return requests.request(
            handler.command,
            self._server.address + handler.path,
            headers=headers,
            data=content,
            verify=str(self._server.ca_file),
            timeout=5,
        )


def _answer(
    handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], content: bytes
) -> None:
    handler.send_response(status)
    kept = {key: text for key, text in headers.items() if key in {"Location", "Retry-After"}}
    for key, text in {**kept, "Content-Length": str(len(content))}.items():
        handler.send_header(key, text)
    handler.end_headers()
    handler.wfile.write(content)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[OpenBaoServer]:
    with OpenBaoServer.start(tmp_path_factory.mktemp("openbao"), authority) as server:
        root = server.client(server.root_token)
        root.sys.enable_secrets_engine("kv", path=KV1_MOUNT, options={"version": "1"})
        yield server


@pytest.fixture(scope="session")
def token(server: OpenBaoServer) -> str:
    """A token with exactly the rights that the documentation asks for."""
    return server.token(RULES)


@pytest.fixture
def token_file(tmp_path: Path, token: str) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{token}\n")
    return file


@pytest.fixture
def openbao(server: OpenBaoServer, token_file: Path) -> OpenBao:
    return OpenBao(
        address=server.address, mount=MOUNT, auth=TokenFile(token_file), ca_file=server.ca_file
    )


@pytest.fixture
def store(openbao: OpenBao) -> CredentialStore:
    return openbao.bind(Deadline())


@pytest.fixture
def path() -> str:
    """A path where nothing was ever written."""
    return f"{BASE}/shop/orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def front(server: OpenBaoServer) -> Iterator[Front]:
    front = Front(server)
    yield front
    front.close()


@pytest.fixture
def fronted(front: Front, token_file: Path) -> CredentialStore:
    """The store with the proxy in between."""
    behind = OpenBao(address=front.address, mount=MOUNT, auth=TokenFile(token_file))
    return behind.bind(Deadline())
