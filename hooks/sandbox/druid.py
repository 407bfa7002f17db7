"""A double of Apache Druid: a Router on loopback that remembers and ingests nothing.

Idea: what a request means is druid_rest.py; here it may go wrong on its way. It answers as
Druid 33 with SQL-based ingestion and basic authentication does for what the hooks ask, and keeps
tasks and supervisors as Druid would. It obeys the contract tests that real servers obey.

Limits: no data, no queries, no metrics; a test, or in a demo the clock, says how tasks end.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hooks.sandbox.druid_conduct import Conduct, Submission, User
from hooks.sandbox.druid_replies import Reply
from hooks.sandbox.druid_rest import Api, Request
from hooks.sandbox.druid_sockets import Server, server_context

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from hooks.sandbox.certificates import CertificateFiles

__all__ = ["Conduct", "DruidServer", "Fault", "Submission", "User"]

_POLL_SECONDS = 0.02
_LONGEST_SILENCE = 30.0


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to requests instead of being answered.

    Attributes:
        method, path: which ones; parts of what was sent, "" is part of all.
        times: how many of them.
        acted: Druid does what it was asked all the same.
        status: answer with this; None closes the connection without an answer.
        silent: keep the connection open until `release`; `status` then does not count.
    """

    method: str = ""
    path: str = ""
    times: int = 1
    acted: bool = False
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    silent: bool = False


class DruidServer:
    """The double as a server; a context manager.

    Attributes:
        conduct: what it does and what it fails at; may be changed at any time.
        tasks, supervisors, coordinator: what is there, and how to let it go on.
        submissions: everything that was taken, oldest first.
        seen: "METHOD /path" of every request that arrived, oldest first.
        faults: what goes wrong next; the first that fits counts.
    """

    def __init__(
        self,
        conduct: Conduct | None = None,
        *,
        certificate: CertificateFiles | None = None,
        client_ca: Path | None = None,
    ) -> None:
        """Prepare a server.

        Args:
            conduct: how it behaves; None is a healthy 33.0.0 that asks nobody who he is.
            certificate: what it shows; None is plain HTTP.
            client_ca: who must have signed a client's certificate; None asks for none.
        """
        self._api = Api(conduct or Conduct())
        self.conduct = self._api.conduct
        self.tasks = self._api.tasks
        self.supervisors = self._api.supervisors
        self.coordinator = self._api.coordinator
        self.submissions = self._api.submissions
        self.seen: list[str] = []
        self.faults: list[Fault] = []
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._server = Server(self.respond, server_context(certificate, client_ca))
        self._scheme = "https" if certificate else "http"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True
        )

    @property
    def url(self) -> str:
        """The address of the Router."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def release(self) -> None:
        """Let go of all requests that are kept waiting."""
        self._released.set()

    def close(self) -> None:
        """Stop, and drop every connection."""
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._server.drop_connections()
        self._thread.join()

    def respond(self, request: Request) -> tuple[Reply, Mapping[str, str]] | None:
        """Answer a request; None means that the connection is dropped instead."""
        with self._lock:
            self.seen.append(f"{request.method} {request.path}")
            fault = self._fault(request)
            if fault is None:
                return self._api.answer(request), {}
            if fault.acted:
                self._api.answer(request)
        if fault.silent:
            self._released.wait(_LONGEST_SILENCE)
            return None
        if fault.status is None:
            return None
        return Reply(fault.status, fault.body.encode()), fault.headers

    def _fault(self, request: Request) -> Fault | None:
        for at, fault in enumerate(self.faults):
            if fault.method in request.method and fault.path in request.path:
                left = replace(fault, times=fault.times - 1)
                self.faults[at : at + 1] = [left] if left.times else []
                return fault
        return None
