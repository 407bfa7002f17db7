"""Serve a MemoryCluster over HTTPS on loopback, for the real Kubernetes client.

Idea: sockets, TLS, tokens and faults live here; what a request means is rest.py, and for commands
in Pods exec_service.py. A thread serves a connection; closing the server also drops the connections
that clients keep alive, so nobody goes on talking to a server that is down.

Limits: tokens are compared plainly, request bodies need a Content-Length.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import socket
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml
from wsproto.utilities import generate_accept_token

from hooks.sandbox.authorization import service_account
from hooks.sandbox.exec_service import ExecService, Session
from hooks.sandbox.kinds import ApiError
from hooks.sandbox.rest import Api, Request, failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from hooks.core.manifests import Manifest
    from hooks.sandbox.certificates import CertificateFiles
    from hooks.sandbox.cluster import MemoryCluster

    Fault = Callable[[str, str], int | Literal["close"] | None]
    """Of method and path: answer with that status and do nothing, or act and drop the reply."""

    _Raw = socket.socket | tuple[bytes, socket.socket]  # what socketserver may hand over

_POLL_SECONDS = 0.02
_UNAUTHORIZED = (401, failure(ApiError(401, "Unauthorized", "Unauthorized")))


class ApiServer:
    """The double as a server; a context manager.

    `api.allow` decides who may do what, `faults` what goes wrong; both may be exchanged any time.
    `exec` is where commands in Pods run.
    """

    def __init__(
        self,
        cluster: MemoryCluster,
        *,
        certificate: CertificateFiles,
        ca_file: Path,
        tokens: Mapping[str, str],
    ) -> None:
        self.api = Api(cluster)
        self.exec = ExecService(cluster, self.api)
        self.tokens = dict(tokens)
        self.faults: Fault = lambda _method, _path: None
        self._ca_file = ca_file
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.cert, certificate.key)
        self._server = _Server(self, context)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True
        )

    @property
    def url(self) -> str:
        """Return the address of the server."""
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and drop every connection."""
        self._server.shutdown()
        self._server.server_close()
        self.exec.close()
        self._server.drop_connections()
        self._thread.join()

    def kubeconfig(self, path: Path, token: str, *, namespace: str = "default") -> Path:
        """Write a kubeconfig, readable by its owner only, and return its path."""
        authority = base64.b64encode(self._ca_file.read_bytes()).decode()
        context = {"cluster": "sandbox", "user": "sandbox", "namespace": namespace}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "sandbox",
                    "cluster": {"server": self.url, "certificate-authority-data": authority},
                }
            ],
            "users": [{"name": "sandbox", "user": {"token": token}}],
            "contexts": [{"name": "sandbox", "context": context}],
            "current-context": "sandbox",
        }
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, 0o600)
            yaml.safe_dump(config, file)
        return path

    def issue_token(self, namespace: str, account: str) -> str:
        """Return a new token of a ServiceAccount; what it may do is for Roles to say."""
        token = secrets.token_urlsafe(24)
        self.tokens[token] = service_account(namespace, account)
        return token

    def revoke_token(self, token: str) -> None:
        """Know a token no more."""
        self.tokens.pop(token, None)

    def respond(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Manifest] | None:
        """Answer a request; None means that the connection is dropped instead."""
        url = urlsplit(target)
        path = unquote(url.path)
        fault = self.faults(method, path)
        if isinstance(fault, int):
            return fault, failure(ApiError(fault, "InternalError", "a fault was asked for"))
        user = self._user(headers)
        if user is None:
            return _UNAUTHORIZED
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        answer = self.api.answer(Request(user, method, path, query, headers, body))
        return None if fault == "close" else answer

    def upgrade(self, target: str, headers: Mapping[str, str]) -> Session | tuple[int, Manifest]:
        """Judge a request for a WebSocket; a session, or the answer that refuses it."""
        url = urlsplit(target)
        user = self._user(headers)
        if user is None:
            return _UNAUTHORIZED
        offered = [name.strip() for name in headers.get("Sec-Websocket-Protocol", "").split(",")]
        try:
            return self.exec.admit(user, unquote(url.path), url.query, offered)
        except ApiError as error:
            return error.status, failure(error)

    def _user(self, headers: Mapping[str, str]) -> str | None:
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        return self.tokens.get(token) if scheme.lower() == "bearer" else None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, owner: ApiServer, context: ssl.SSLContext) -> None:
        self.owner = owner
        self._context = context
        self._connections: set[ssl.SSLSocket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def finish_request(self, request: _Raw, client_address: object) -> None:
        """Shake hands in the connection's own thread, so that a silent client blocks nobody."""
        if not isinstance(request, socket.socket):
            raise TypeError("a stream server is given sockets")
        with self._context.wrap_socket(request, server_side=True) as connection:
            self._connections.add(connection)
            try:
                _Handler(connection, client_address, self)
            finally:
                self._connections.discard(connection)

    def handle_error(self, request: _Raw, client_address: object) -> None:
        """Keep quiet about clients that went away; a bug is still shown."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def drop_connections(self) -> None:
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    connection: ssl.SSLSocket
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.title(): value for name, value in self.headers.items()}
        if headers.get("Upgrade", "").lower() == "websocket":
            self._upgrade(headers)
            return
        answer = self.server.owner.respond(self.command, self.path, headers, body)
        if answer is None:
            self.close_connection = True
        else:
            self._answer(*answer)

    def _upgrade(self, headers: Mapping[str, str]) -> None:
        """Shake hands for a WebSocket and serve it; the connection is of no other use then."""
        self.close_connection = True
        session = self.server.owner.upgrade(self.path, headers)
        if not isinstance(session, Session):
            self._answer(*session)
            return
        key = headers.get("Sec-Websocket-Key", "").encode()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", generate_accept_token(key).decode())
        self.send_header("Sec-WebSocket-Protocol", session.protocol)
        self.end_headers()
        session.serve(self.connection)

    def _answer(self, status: int, obj: Manifest) -> None:
        content = json.dumps(obj).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Log nothing: requests may carry Secrets."""
