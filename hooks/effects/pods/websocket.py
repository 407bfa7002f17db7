"""pods/exec: run a command in a container over one WebSocket.

Subprotocols v5 and v4 are both good: nothing here depends on saying that standard input ended.
The exit code is read from the Status on the error channel. An empty channel means that the end
was not seen; it never means success.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Sequence
from http import HTTPStatus
from urllib.parse import urlencode

from kubernetes.client.api_client import ApiClient
from kubernetes.config.config_exception import ConfigException
from websocket import (
    ABNF,
    WebSocket,
    WebSocketBadStatusException,
    WebSocketException,
    WebSocketTimeoutException,
)

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError, Misconfigured, Refused, Unavailable
from hooks.core.manifests import Manifest
from hooks.effects.kubernetes.transport import SYSTEM, Answer, Question
from hooks.effects.pods.psql import Container, Ended
from hooks.effects.ports.kubernetes import Resource
from hooks.effects.ports.pods import NotFound

_PODS = Resource("", "v1", "pods")
_EXEC = Resource("", "v1", "pods/exec")
_PROTOCOLS = ["v5.channel.k8s.io", "v4.channel.k8s.io"]
_STDIN, _STDOUT, _STDERR, _ERROR = 0, 1, 2, 3

_CHUNK = 32 * 1024
_MAX_STATUS = 64 * 1024
_QUIET = 20.0
"""Seconds of silence after which a ping keeps the connection alive; proxies end idle ones."""

Sink = Callable[[bytes], None]


class WebSocketExec:
    """Runs commands in containers through one API server."""

    def __init__(self, client: ApiClient, deadline: Deadline) -> None:
        self._client = client
        self._deadline = deadline

    def run(
        self,
        container: Container,
        argv: Sequence[str],
        stdin: bytes,
        outputs: tuple[Sink, Sink],
    ) -> Ended:
        """Run a command, telling its standard output and error as they come.

        Raises:
            EffectError: it was not started.
        """
        socket = self._connect(container, argv)
        try:
            return _Session(socket, outputs, self._deadline).run(stdin)
        finally:
            socket.shutdown()  # type: ignore[no-untyped-call]  # the client's own

    def _connect(self, container: Container, argv: Sequence[str]) -> WebSocket:
        question = Question("create", _EXEC, container.namespace, container.pod)
        url, token = self._address(container, argv)
        name = self._client.configuration.tls_server_name
        options = {"context": self._trust()} | ({"server_hostname": name} if name else {})
        socket = WebSocket(sslopt=options)
        try:
            socket.connect(  # type: ignore[no-untyped-call]  # the client's own
                url,
                header=token,
                subprotocols=_PROTOCOLS,
                timeout=self._deadline.timeout(SYSTEM, cap=_QUIET),
                redirect_limit=0,
                http_no_proxy=["*"],
                suppress_origin=True,
            )
        except WebSocketBadStatusException as error:
            raise _refused(question, error) from None  # the cause holds headers and the address
        except ssl.SSLCertVerificationError:
            detail = "no trusted TLS connection: check its address and its CA"
            raise Refused(SYSTEM, detail) from None
        except (WebSocketException, OSError):
            raise Unavailable(SYSTEM, f"no connection to {container.pod}") from None
        return socket

    def _address(self, container: Container, argv: Sequence[str]) -> tuple[str, dict[str, str]]:
        """Return where the command is run, and the header that says who we are."""
        path = Question("get", _PODS, container.namespace, container.pod).path
        query = [("container", container.name)]
        query += [(stream, "true") for stream in ("stdin", "stdout", "stderr")]
        query += [("command", word) for word in argv]
        try:
            _, url, headers, _, _ = self._client.param_serialize(
                "GET", f"{path}/exec?{urlencode(query)}", auth_settings=["BearerToken"]
            )
        except (ConfigException, OSError, ValueError):
            # The cause may quote the token.
            raise Misconfigured(SYSTEM, "the credentials of the Job cannot be used") from None
        token = {key: text for key, text in headers.items() if key.lower() == "authorization"}
        return f"ws{url.removeprefix('http')}", token

    def _trust(self) -> ssl.SSLContext:
        """Return whom the client trusts, and who it is."""
        configuration = self._client.configuration
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if not configuration.verify_ssl:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
        return context


class _Session:
    """One command that runs.

    It must read all of its input before it writes: what it writes is not read until then.
    """

    def __init__(self, socket: WebSocket, outputs: tuple[Sink, Sink], deadline: Deadline) -> None:
        self._socket = socket
        self._outputs = outputs
        self._deadline = deadline
        self._status = b""
        self._open = True

    def run(self, stdin: bytes) -> Ended:
        delivered = False
        try:
            for start in range(0, len(stdin), _CHUNK):
                self._socket.send_binary(bytes([_STDIN]) + stdin[start : start + _CHUNK])
            delivered = True
            while self._open and self._deadline.left():
                self._receive()
        except (WebSocketException, OSError):
            pass  # what is known by now is what there is to know
        return Ended(exit_code(self._status), delivered=delivered)

    def _receive(self) -> None:
        self._socket.settimeout(min(_QUIET, max(self._deadline.left(), 0.1)))
        try:
            kind, frame = self._socket.recv_data_frame(True)  # noqa: FBT003  the client's own
        except WebSocketTimeoutException:
            self._socket.ping()
            return
        if kind == ABNF.OPCODE_CLOSE:
            self._open = False
        elif kind in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) and frame is not None and frame.data:
            self._take(frame.data[0], frame.data[1:])

    def _take(self, channel: int, data: bytes) -> None:
        if channel == _STDOUT:
            self._outputs[0](data)
        elif channel == _STDERR:
            self._outputs[1](data)
        elif channel == _ERROR:
            self._status = (self._status + data)[:_MAX_STATUS]


def exit_code(status: bytes) -> int | None:
    """Read an exit code from what the error channel said, None when it did not say it.

    A container that cannot run the program at all answers what a shell would: 126.
    """
    try:
        said = json.loads(status)
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    if said.get("status") == "Success":
        return 0
    if "unable to start container process" in str(said.get("message")):
        return 126
    return _cause(said) if said.get("reason") == "NonZeroExitCode" else None


def _cause(said: Manifest) -> int | None:
    for cause in (said.get("details") or {}).get("causes") or ():
        text = str(cause.get("message"))
        if cause.get("reason") == "ExitCode" and text.isascii() and text.isdigit():
            return int(text)
    return None


def _refused(question: Question, error: WebSocketBadStatusException) -> EffectError:
    status = error.status_code
    if status == HTTPStatus.NOT_FOUND:
        return NotFound(SYSTEM, f"there is no Pod {question.name}", code=str(int(status)))
    try:
        Answer(question, status, {}, None).accepted()
    except EffectError as refusal:
        return refusal
    return Unavailable(SYSTEM, "the answer to pods/exec is no WebSocket")
