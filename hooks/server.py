"""gunicorn, run by this program: one process with threads, and one above that restarts it.

Each connection that is sending or waiting for an answer holds a thread; an idle one holds none.
The threads above MAX_IN_FLIGHT answer customize, probes and 429, so that nothing ever queues.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import ThreadWorker

from hooks import telemetry
from hooks.settings import Settings, SettingsError

Build = Callable[[Settings, Callable[[], bool]], flask.Flask]

KEEPALIVE_SECONDS = 100
"""Above the 90 s after which Metacontroller closes an idle connection: it never meets one that we
have just closed."""
GRACEFUL_SECONDS = 35
"""Longer than any call, shorter than the pod's grace period."""
SOCKET_SECONDS = 10.0
"""A peer that stops in the middle of a request or of an answer is dropped after this."""


def serve(settings: Settings, build: Build) -> None:
    """Serve until SIGTERM; what is in flight then is still answered.

    Args:
        settings: where to listen, and how many threads.
        build: makes the application, in the serving process; it is handed what says whether
            new calls are welcome.

    Raises:
        SettingsError: the certificate cannot be used.
    """
    _check_certificate(settings)
    telemetry.setup(settings.log_level)
    _Server(settings, build).run()


def _check_certificate(settings: Settings) -> None:
    """Fail here: later, each connection would."""
    cert, key = settings.tls_cert_file, settings.tls_key_file
    if cert is None or key is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(cert, key)
    except OSError as error:  # ssl.SSLError too
        problem = f"TLS_CERT_FILE, TLS_KEY_FILE: no usable pair: {error.strerror or error}"
        raise SettingsError([problem]) from error


class _Log(Logger):  # type: ignore[misc]  # gunicorn ships no types
    """gunicorn's messages by our logging, and no access log: the hooks log each call."""

    def setup(self, cfg: Any) -> None:  # noqa: ANN401  gunicorn's Config
        super().setup(cfg)
        self.error_log.propagate = True


class _Socket(socket.socket):
    """A connection whose reads and writes end; gunicorn's wait for ever once a request began."""

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001  socket's signature
        self.settimeout(SOCKET_SECONDS if flag else 0.0)


class _TlsSocket(ssl.SSLSocket):
    """The same with TLS."""

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001  socket's signature
        self.settimeout(SOCKET_SECONDS if flag else 0.0)


def _tls(_cfg: Any, default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:  # noqa: ANN401  gunicorn's Config
    """Read the certificate anew for each connection, so that it may rotate."""
    context = default()
    context.sslsocket_class = _TlsSocket
    return context


class _Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn ships no types
    """gunicorn's threads, without two ways to wait for nothing."""

    def enqueue_req(self, conn: Any) -> None:  # noqa: ANN401  gunicorn's connection
        if type(conn.sock) is socket.socket:
            conn.sock = _Socket(fileno=conn.sock.detach())
        super().enqueue_req(conn)

    def set_accept_enabled(self, enabled: bool) -> None:  # noqa: FBT001  gunicorn's signature
        super().set_accept_enabled(enabled)
        # gunicorn keeps its listeners until the last answer: until then the kernel would take
        # connections that nobody serves.
        if not self.alive:
            for listener in self.sockets:
                listener.close()


class _Server(BaseApplication):  # type: ignore[misc]  # gunicorn ships no types
    """The application as gunicorn wants it: configured by us alone, no files, no variables."""

    def __init__(self, settings: Settings, build: Build) -> None:
        self._settings = settings
        self._build = build
        self._worker: Any = None
        super().__init__()

    def load_config(self) -> None:
        settings = self._settings
        chosen = {
            "bind": settings.listen_address,
            "worker_class": _Worker,
            "workers": 1,
            "threads": settings.threads,
            "worker_connections": 1000,
            "keepalive": KEEPALIVE_SECONDS,
            "graceful_timeout": GRACEFUL_SECONDS,
            # Of the accepting loop, which only ever waits; calls have their own deadline.
            "timeout": 60,
            "worker_tmp_dir": _memory_directory(),
            "certfile": str(settings.tls_cert_file) if settings.tls_cert_file else None,
            "keyfile": str(settings.tls_key_file) if settings.tls_key_file else None,
            "logger_class": _Log,
            "loglevel": settings.log_level,
            "errorlog": None,
            "accesslog": None,
            "control_socket_disable": True,
            # Built in the worker: the process above imports no client library and stays small.
            "preload_app": False,
            "ssl_context": _tls,
            "post_worker_init": self._remember,
        }
        for name, value in chosen.items():
            self.cfg.set(name, value)

    def load(self) -> flask.Flask:
        return self._build(self._settings, lambda: self._worker is None or self._worker.alive)

    def _remember(self, worker: Any) -> None:  # noqa: ANN401  gunicorn's Worker
        self._worker = worker


def _memory_directory() -> str | None:
    """Return where the heartbeat file may be without touching a disk, or None for the default."""
    shared = Path("/dev/shm")  # noqa: S108  memory, and the file has no name
    return str(shared) if shared.is_dir() and os.access(shared, os.W_OK) else None
