"""What is asked of Apache Druid, through the Router of one cluster.

Druid's own words matter to who wrote the ingestion, so they are values here (`Answer.text`,
`Task.error`) and no exceptions. They may quote the specification, passwords included: whoever
shows them masks them first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from hooks.core.errors import Denied, Misconfigured, Refused, Unavailable
from hooks.effects.ports.server import Login

Document = dict[str, Any]
"""A JSON object as Druid or a user writes it; integers exact, other numbers as Decimal."""

Endpoint = Literal["task", "sql", "supervisor"]
TaskState = Literal["RUNNING", "SUCCESS", "FAILED"]


class DruidUnavailable(Unavailable):
    """Nobody answers, or the answer is "later"."""

    reason = "DruidUnavailable"


class NoLeader(DruidUnavailable):
    """The Router lives and knows no leading Coordinator or Overlord, or that one is not ready."""

    reason = "NoLeader"


class TooManyRequests(DruidUnavailable):
    """429: the task queue is full, or a limit of requests is reached."""

    reason = "TooManyRequests"


class Redirected(DruidUnavailable):
    """307: a Coordinator or Overlord that does not lead answered; credentials are not sent on."""

    reason = "NotARouter"


class Unauthorized(Refused):
    """401: the user name or password is wrong, or one is needed and there is none."""

    reason = "Unauthorized"


class Untrusted(Refused):
    """The Router's certificate is not trusted, or ours is not."""

    reason = "UntrustedCertificate"


class Forbidden(Denied):
    """403: the user is known and lacks a permission."""

    reason = "Forbidden"


class ProxyDisabled(Misconfigured):
    """404 or 405 of a path that Druid has: no management proxy, or no extension that serves it."""

    reason = "ManagementProxyDisabled"


class ProtocolError(Misconfigured):
    """An answer that is none of Druid's: another program, or a proxy in between."""

    reason = "ProtocolError"


@dataclass(frozen=True, slots=True)
class Router:
    """Where a Router listens and how it is trusted.

    Attributes:
        url: scheme, host and port, without a path.
        ca_pem: the CA that its certificate must come from; None: the deployment's, or the
            system's.
        client_pem: a certificate chain and its key, both PEM, when it wants to know us by one.
        verify: False only when the user asked for no proof.
    """

    url: str
    ca_pem: bytes | None = field(default=None, repr=False)
    client_pem: tuple[bytes, bytes] | None = field(default=None, repr=False)
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What Druid said to a submission: accepted, or not for reasons of its content.

    Attributes:
        code: the HTTP status.
        id: the task or supervisor that was accepted; None for a refusal and for an answer that
            names none.
        text: the body, at most 64 KiB of it; not masked.
        exists: Druid refused since there is a task of this id, whatever words it used.
    """

    code: int
    id: str | None
    text: str = field(repr=False)
    exists: bool = False

    @property
    def accepted(self) -> bool:
        """Say whether Druid took it."""
        return self.id is not None


@dataclass(frozen=True, slots=True)
class Task:
    """A task as GET /task/{id}/status shows it.

    Attributes:
        id, type, datasource: as Druid wrote them; empty when it does not say.
        state: statusCode; runnerStatusCode is a hint that lies and is not read.
        error: errorMsg, cut by Druid to 100 or 1,024 characters; not masked.
        created: createdTime as Druid wrote it; empty for none.
        duration_ms: None while it runs, and when Druid does not know.
    """

    id: str
    state: TaskState
    type: str = ""
    datasource: str = ""
    error: str = field(default="", repr=False)
    created: str = ""
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Row counts of a task's report; SQL reports know `processed` only."""

    processed: int
    with_error: int = 0
    unparseable: int = 0
    thrown_away: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What the report of an ended task says; not masked.

    Attributes:
        error: the whole error, without the stack trace; empty for none.
        parse_errors: the first few, in Druid's words.
        rows: of the phase that was reached; None when the report has no counts.
    """

    error: str = field(default="", repr=False)
    parse_errors: tuple[str, ...] = field(default=(), repr=False)
    rows: Rows | None = None


@dataclass(frozen=True, slots=True)
class Supervisor:
    """A supervisor as GET /supervisor/{id}/status shows it.

    Attributes:
        state, detailed_state: in Druid's words; empty when it does not say.
        healthy: None when Druid does not say (schedules have no health).
        suspended: payload.suspended, whatever the state says.
        errors: messages of recentErrors, newest first; not masked.
    """

    id: str
    state: str
    detailed_state: str = ""
    healthy: bool | None = None
    suspended: bool = False
    datasource: str = ""
    stream: str = ""
    errors: tuple[str, ...] = field(default=(), repr=False)


class Cluster(Protocol):
    """One Druid cluster, as one request may use it.

    Raises of every method: the classes above. None always means that Druid itself said
    "there is no such task or supervisor".
    """

    def version(self) -> str:
        """Read the Router's version, "33.0.0"."""
        ...

    def submit(self, endpoint: Endpoint, body: bytes, *, id: str = "") -> Answer:  # noqa: A002
        """Send a specification, once.

        A supervisor goes with skipRestartIfUnmodified. A time-out is Unavailable and means that
        nobody knows; look before sending it again.

        Args:
            endpoint: where it goes.
            body: JSON, sent as it is.
            id: the task id that we chose, to know "already exists" by; empty for none.
        """
        ...

    def task(self, id: str) -> Task | None:  # noqa: A002
        """Read a task's state."""
        ...

    def payload(self, id: str) -> Document | None:  # noqa: A002
        """Read a task as Druid holds it: the object under `payload`."""
        ...

    def report(self, id: str) -> Report | None:  # noqa: A002
        """Read an ended task's report.

        None when there is none, as for a task that never began. One above 8 MiB is empty.
        """
        ...

    def shut_down(self, id: str) -> None:  # noqa: A002
        """Ask a task to end; it still runs for a while. Unknown or ended is success."""
        ...

    def supervisor(self, id: str) -> Supervisor | None:  # noqa: A002
        """Read a supervisor's state."""
        ...

    def supervisor_spec(self, id: str) -> Document | None:  # noqa: A002
        """Read a supervisor's specification as Druid holds it, defaults filled in."""
        ...

    def past_specs(self, id: str) -> tuple[Document, ...]:  # noqa: A002
        """Read the specifications that a supervisor had, newest first, without tombstones."""
        ...

    def suspend(self, id: str) -> None:  # noqa: A002
        """Suspend a supervisor; suspended already is success."""
        ...

    def resume(self, id: str) -> None:  # noqa: A002
        """Resume a supervisor; running already is success."""
        ...

    def terminate(self, id: str) -> None:  # noqa: A002
        """End a supervisor; unknown is success. It may take longer than our time: look again."""
        ...

    def compaction(self, datasource: str) -> Document | None:
        """Read the automatic compaction of a datasource."""
        ...

    def set_compaction(self, config: Mapping[str, object]) -> Answer:
        """Write the automatic compaction of the datasource that `dataSource` names."""
        ...

    def delete_compaction(self, datasource: str) -> None:
        """Remove the automatic compaction of a datasource; none is success."""
        ...

    def rules(self, datasource: str) -> list[Document]:
        """Read the retention rules of a datasource; empty: the cluster's defaults apply."""
        ...

    def set_rules(self, datasource: str, rules: Sequence[Mapping[str, object]]) -> Answer:
        """Write the retention rules of a datasource; an empty list takes them away."""
        ...


class Druid(Protocol):
    """Druid clusters, each through its Router."""

    def cluster(self, router: Router, login: Login | None) -> Cluster:
        """Return a cluster; nothing is asked yet."""
        ...
