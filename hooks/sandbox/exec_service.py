"""Commands in Pods, from an admitted request to the end of the connection.

`containers` is what runs, `protocols` what is served, `faults` what goes wrong; all may be
exchanged any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hooks.sandbox import exec_request
from hooks.sandbox.containers import NotExecutable
from hooks.sandbox.exec_request import ExecRequest
from hooks.sandbox.exec_stream import Stream

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from hooks.sandbox.containers import Container, Containers
    from hooks.sandbox.exec_stream import Fault
    from hooks.sandbox.port import Cluster
    from hooks.sandbox.rest import Api


@dataclass(frozen=True, slots=True)
class Session:
    """A command that may be run, as soon as the handshake is done."""

    request: ExecRequest
    container: Container
    protocol: str
    fault: Fault | None

    def serve(self, connection: ssl.SSLSocket) -> None:
        """Run the command and talk to the client until it has ended."""
        if self.fault == "cut_before":
            return
        half_close = self.protocol == exec_request.PROTOCOLS[0]
        stream = Stream(connection, half_close=half_close, fault=self.fault)
        try:
            process = self.container.start(self.request.command, stdin=self.request.stdin)
        except NotExecutable as error:
            stream.refuse(str(error))
        else:
            stream.serve(process)


class ExecService:
    """pods/exec of one cluster."""

    def __init__(self, cluster: Cluster, api: Api) -> None:
        self.containers: Containers = {}
        self.protocols: Sequence[str] = exec_request.PROTOCOLS
        self.faults: Callable[[ExecRequest], Fault | None] = lambda _request: None
        self._cluster = cluster
        self._api = api

    def admit(self, user: str, path: str, query: str, offered: Sequence[str]) -> Session:
        """Judge a request for a WebSocket.

        Raises:
            ApiError: It is refused.
        """
        request = exec_request.parse(path, query)
        exec_request.authorize(request, user, self._api.allow)
        container = exec_request.container_of(request, self._cluster, self.containers)
        protocol = exec_request.protocol(offered, self.protocols)
        return Session(request, container, protocol, self.faults(request))

    def close(self) -> None:
        """Kill every command."""
        for container in list(self.containers.values()):
            container.kill()
