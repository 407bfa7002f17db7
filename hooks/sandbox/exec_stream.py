"""The channels of pods/exec over one WebSocket: v4.channel.k8s.io and v5.channel.k8s.io.

Idea: one loop moves bytes between the socket and the pipes of the process, so no side waits for
another; the first byte of a message is its channel. At the end the error channel tells how the
process ended. Only v5 lets the client end standard input.

When the client goes away the process goes on, with its input ended and its output lost: nobody can
tell from outside how far it comes.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import ssl
import subprocess
from typing import IO, TYPE_CHECKING, Literal

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest

    _Channel = ssl.SSLSocket | IO[bytes]

Fault = Literal["cut_before", "cut_in_stdin", "cut_after", "no_status"]
"""What goes wrong: the connection drops before the command starts, halfway through the first piece
of its input, or when it has ended and nothing was told; or nothing is said about how it ended."""

_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_CHUNK, _FULL = 64 * 1024, 1024 * 1024
_NORMAL_CLOSURE = 1000
_LINGER_SECONDS = 5.0


class Stream:
    """One command on one connection whose handshake is done."""

    def __init__(self, connection: ssl.SSLSocket, *, half_close: bool, fault: Fault | None) -> None:
        """Use a blocking connection; `half_close` is what v5 has and v4 has not."""
        self._connection = connection
        self._half_close = half_close
        self._fault = fault
        self._frames = Connection(ConnectionType.SERVER)
        self._message = b""
        self._outgoing = bytearray()
        self._input = bytearray()
        self._input_ended = False
        self._connected = True

    def serve(self, process: subprocess.Popen[bytes]) -> None:
        """Connect a process to the client until it has ended, and tell how."""
        self._send(_STDOUT, b"")  # tells the client that the command has started
        self._connection.settimeout(0)
        with process:
            outputs = {pipe: n for pipe, n in _outputs(process) if pipe is not None}
            while outputs:
                self._move(outputs, process.stdin)
        self._finish(_status(process.returncode))

    def refuse(self, text: str) -> None:
        """Tell that the command could not be started."""
        message = f"Internal error occurred: error executing command in container: {text}"
        self._finish(_failure(message, "InternalError", {"message": text}) | {"code": 500})

    def _move(self, outputs: dict[IO[bytes], int], stdin: IO[bytes] | None) -> None:
        """Wait until something can be moved, and move it; an output that ended leaves the map."""
        readable, writable = self._wait(outputs, stdin)
        if self._connection in readable:
            self._receive()
        if self._connection in writable:
            self._flush()
        for pipe in outputs.keys() & readable:
            if data := os.read(pipe.fileno(), _CHUNK):
                self._send(outputs[pipe], data)
            else:
                del outputs[pipe]
        if stdin is not None and stdin in writable:
            self._feed(stdin)

    def _wait(
        self, outputs: dict[IO[bytes], int], stdin: IO[bytes] | None
    ) -> tuple[set[_Channel], set[_Channel]]:
        """Wait for what there is room for."""
        readers: list[_Channel] = list(outputs) if len(self._outgoing) < _FULL else []
        writers: list[_Channel] = []
        if self._connected and len(self._input) < _FULL:
            readers.append(self._connection)
        if self._connected and self._outgoing:
            writers.append(self._connection)
        if stdin is not None and not stdin.closed and (self._input or self._input_ended):
            writers.append(stdin)
        readable, writable, _ = select.select(readers, writers, [])
        return set(readable), set(writable)

    def _receive(self) -> None:
        try:
            data = self._connection.recv(_CHUNK)
            while self._connection.pending():
                data += self._connection.recv(_CHUNK)
        except ssl.SSLWantReadError:
            return
        except OSError:
            data = b""
        self._frames.receive_data(data or None)
        for event in self._frames.events():
            self._handle(event)

    def _handle(self, event: Event) -> None:
        match event:
            case TextMessage() | BytesMessage():
                part = event.data
                self._message += part.encode() if isinstance(part, str) else bytes(part)
                if event.message_finished:
                    self._take(self._message)
                    self._message = b""
            case Ping():
                self._outgoing += self._frames.send(event.response())
            case CloseConnection():
                self._disconnect()
            case _:
                pass  # a pong

    def _take(self, message: bytes) -> None:
        channel, data = message[:1], message[1:]
        if channel == bytes([_STDIN]) and not self._input_ended:
            if self._fault == "cut_in_stdin" and data:
                data = data[: len(data) // 2]
                self._disconnect()
            self._input += data
        elif channel == bytes([_CLOSE]) and data == bytes([_STDIN]) and self._half_close:
            self._input_ended = True

    def _feed(self, stdin: IO[bytes]) -> None:
        """Hand input on; a process that does not want it any more loses it."""
        try:
            written = os.write(stdin.fileno(), self._input[: select.PIPE_BUF])
            del self._input[:written]
        except BrokenPipeError:
            self._input.clear()
        if self._input_ended and not self._input:
            stdin.close()

    def _send(self, channel: int, data: bytes) -> None:
        if self._connected and self._fault != "cut_after":
            self._outgoing += self._frames.send(BytesMessage(bytes([channel]) + data))

    def _flush(self) -> None:
        try:
            del self._outgoing[: self._connection.send(self._outgoing[:_CHUNK])]
        except ssl.SSLWantWriteError:
            return
        except OSError:
            self._disconnect()

    def _disconnect(self) -> None:
        self._connected = False
        self._input_ended = True
        self._outgoing.clear()
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _finish(self, status: Manifest) -> None:
        """Tell how it ended, and wait for the client: a reset would destroy what it was told."""
        if self._fault != "no_status":
            self._send(_ERROR, json.dumps(status).encode())
        if not self._connected or self._fault == "cut_after":
            return
        with contextlib.suppress(OSError):
            self._connection.settimeout(_LINGER_SECONDS)
            self._outgoing += self._frames.send(CloseConnection(_NORMAL_CLOSURE))
            self._connection.sendall(self._outgoing)
            while self._frames.state is not ConnectionState.CLOSED:
                self._frames.receive_data(self._connection.recv(_CHUNK) or None)
                list(self._frames.events())


def _outputs(process: subprocess.Popen[bytes]) -> tuple[tuple[IO[bytes] | None, int], ...]:
    return ((process.stdout, _STDOUT), (process.stderr, _STDERR))


def _status(code: int) -> Manifest:
    """Return what the error channel says; a signal counts as 128 and its number."""
    code = code if code >= 0 else 128 - code
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    text = f"command terminated with non-zero exit code: command terminated with exit code {code}"
    return _failure(text, "NonZeroExitCode", {"reason": "ExitCode", "message": str(code)})


def _failure(message: str, reason: str, cause: Manifest) -> Manifest:
    head: Manifest = {"metadata": {}, "status": "Failure", "message": message}
    return head | {"reason": reason, "details": {"causes": [cause]}}
