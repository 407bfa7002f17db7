"""A TCP relay before the server, that can act as a pooler does or go silent."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Self

_SSL_REQUEST = struct.pack("!ii", 8, 80877103)


class Relay:
    """Accepts connections on `port`, and forwards them unless it is told to be silent."""

    def __init__(self, target: int | None) -> None:
        """Forward to this port of 127.0.0.1; None accepts and never answers."""
        self._target = target
        self._rewrite = False
        self._refuses_tls = False
        self._answer = b""
        self._silent = threading.Event()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in [self._listener, *self._sockets]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def change_process_id(self) -> None:
        """Show another process id than the server's."""
        self._rewrite = True

    def refuse_tls(self) -> None:
        """Answer as a server without TLS does."""
        self._refuses_tls = True

    def answer(self, code: str, text: str) -> None:
        """Answer everything with this error, as if the server did."""
        fields = [b"SFATAL", b"VFATAL", b"C" + code.encode(), b"M" + text.encode(), b""]
        body = b"".join(field + b"\0" for field in fields)
        self._answer = b"E" + struct.pack("!i", len(body) + 4) + body

    def go_silent(self) -> None:
        """Swallow whatever the server says from now on."""
        self._silent.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                if self._target is not None:
                    server = socket.create_connection(("127.0.0.1", self._target))
                    self._sockets.append(server)
                    for pair in ((client, server), (server, client)):
                        threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self._refuses_tls and data == _SSL_REQUEST:
                    source.sendall(b"N")
                elif self._answer:
                    source.sendall(self._answer)
                elif not self._silent.is_set():
                    sink.sendall(self._changed(data))
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def _changed(self, data: bytes) -> bytes:
        """Rewrite the process id in BackendKeyData, which is `K`, its length, and the id."""
        head = b"K" + struct.pack("!i", 12)
        at = data.find(head) if self._rewrite else -1
        if at < 0:
            return data
        at += len(head)
        return data[:at] + struct.pack("!i", 1) + data[at + 4 :]
