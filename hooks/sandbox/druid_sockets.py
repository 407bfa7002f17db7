"""The sockets of the double of Druid: HTTP and TLS, a thread for each connection."""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from hooks.sandbox.druid_replies import Reply
from hooks.sandbox.druid_rest import Request

if TYPE_CHECKING:
    from pathlib import Path

    from hooks.sandbox.certificates import CertificateFiles

    Respond = Callable[[Request], tuple[Reply, Mapping[str, str]] | None]
    """Answers with more headers, or None to drop the connection."""

    _Raw = socket.socket | tuple[bytes, socket.socket]  # what socketserver may hand over


class Server(ThreadingHTTPServer):
    """A server on a free port of 127.0.0.1 that answers with a function."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, respond: Respond, context: ssl.SSLContext | None) -> None:
        self.respond = respond
        self._context = context
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def finish_request(self, request: _Raw, client_address: object) -> None:
        """Shake hands in the connection's own thread, so that a silent client blocks nobody."""
        if not isinstance(request, socket.socket):
            raise TypeError("a stream server is given sockets")
        with self._encrypted(request) as connection:
            self._connections.add(connection)
            try:
                _Handler(connection, client_address, self)
            finally:
                self._connections.discard(connection)

    def _encrypted(self, request: socket.socket) -> socket.socket:
        if self._context is None:
            return request
        connection = self._context.wrap_socket(
            request, server_side=True, do_handshake_on_connect=False
        )
        try:
            connection.do_handshake()
        except ssl.SSLError:
            _hang_up(connection)
            raise
        return connection

    def handle_error(self, request: _Raw, client_address: object) -> None:
        """Keep quiet about clients that went away; a bug is still shown."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def drop_connections(self) -> None:
        """Close what clients keep open, so that nobody goes on talking to a server that is down."""
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        headers = {name.title(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        request = Request(self.command, url.path, query, headers, body)
        answer = self.server.respond(request)
        if answer is None:
            self.close_connection = True
            return
        reply, extra = answer
        self.send_response(reply.status)
        if reply.content_type:
            self.send_header("Content-Type", reply.content_type)
        if reply.challenge:
            self.send_header("WWW-Authenticate", "Basic")
        for name, value in {**extra, "Content-Length": str(len(reply.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Log nothing: requests may carry passwords."""


def _hang_up(connection: socket.socket) -> None:
    """Close so that the client gets to read why; closing at once would drop the alert."""
    connection.settimeout(1)
    with connection, contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


def server_context(
    certificate: CertificateFiles | None, client_ca: Path | None
) -> ssl.SSLContext | None:
    """Return how TLS is spoken, None without a certificate."""
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context
