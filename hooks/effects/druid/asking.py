"""One question to Druid: who asks, where, and the answers that speak of neither.

Whatever is asked, a login may be refused, a leader missing or something else than a Router may
answer. These become exceptions here, so that whoever asked sees only answers to the question.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from hooks.core.deadline import Deadline
from hooks.effects.druid.text import document, title
from hooks.effects.druid.transport import Call, Reply, Transport
from hooks.effects.druid.trust import SYSTEM
from hooks.effects.ports.druid import (
    DruidUnavailable,
    Forbidden,
    NoLeader,
    ProtocolError,
    ProxyDisabled,
    Redirected,
    Router,
    TooManyRequests,
    Unauthorized,
)
from hooks.effects.ports.server import Login

SHORT, LONG = 64 * 1024, 8 * 1024 * 1024
"""How much of an answer is read: of one that only says yes or no, and of a document."""

NO_PROXY = "the Router has no such path: set druid.router.managementProxy.enabled=true on it"
NO_SQL = "it has no SQL-based ingestion: load the extension druid-multi-stage-query"

_NO_DESTINATION = "Unable to determine destination"
_FIRST_REDIRECT, _FIRST_CLIENT_ERROR, _FIRST_SERVER_ERROR = 300, 400, 500
_THROWN = 500


@dataclass(frozen=True, slots=True)
class Question:
    """A request.

    Attributes:
        right: the permission it needs, in Druid's words.
        body: JSON; None for none.
        limit: how much of the answer is wanted.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    right: str
    body: bytes | None = field(default=None, repr=False)
    limit: int = LONG


class Asker:
    """One cluster and one login, within one request's time."""

    def __init__(
        self, transport: Transport, deadline: Deadline, router: Router, login: Login | None
    ) -> None:
        self._transport = transport
        self._deadline = deadline
        self._router = router
        self._headers = {"User-Agent": "database-hooks", "Accept-Encoding": "identity"}
        if login:
            pair = f"{login.username}:{login.password}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"

    def ask(self, question: Question) -> Reply:
        """Send a question and return an answer to it.

        A 500 is one, since Druid refuses with it what it cannot read.

        Raises:
            EffectError: there is none, or it is about something else.
        """
        headers = dict(self._headers)
        if question.body is not None:
            headers["Content-Type"] = "application/json"
        url = self._router.url.rstrip("/") + question.path
        call = Call(question.method, url, headers, question.body, question.limit)
        reply = self._transport.send(self._router, call, self._deadline.timeout(SYSTEM))
        self._check(question, reply)
        return reply

    def _check(self, question: Question, reply: Reply) -> None:
        status, code = reply.status, str(reply.status)
        if _FIRST_REDIRECT <= status < _FIRST_CLIENT_ERROR:
            text = "it redirects, as an Overlord does: let the Service lead to the Router"
            raise Redirected(SYSTEM, text, code=code)
        match status:
            case 401 if "Authorization" in self._headers:
                raise Unauthorized(SYSTEM, "user name or password are not accepted", code=code)
            case 401:
                raise Unauthorized(SYSTEM, "it wants a user name and a password", code=code)
            case 403:
                text = f"the user lacks a permission: {question.right}"
                raise Forbidden(SYSTEM, text, code=code)
            case 429:
                wait = reply.retry_after
                text = "too many tasks or requests"
                raise TooManyRequests(SYSTEM, text, code=code, retry_after=wait)
            case 408:
                raise DruidUnavailable(SYSTEM, "no answer in time", code=code)
            case _:
                pass
        if status >= _FIRST_SERVER_ERROR and status != _THROWN:
            raise _later(reply)


def part(name: str) -> str:
    """Return an id or a datasource as a part of a path.

    Raises:
        ProtocolError: Druid can have nothing of this name, and the path would lead elsewhere.
    """
    try:
        encoded = quote(name, safe="")
    except UnicodeEncodeError:
        encoded = ""
    if encoded in {"", ".", ".."} or "/" in name:
        raise ProtocolError(SYSTEM, "no task, supervisor or datasource can have this name")
    return encoded


def not_found(reply: Reply) -> ProxyDisabled:
    """Return what a 404 means that is not Druid's."""
    return ProxyDisabled(SYSTEM, NO_PROXY, code=str(reply.status))


def _later(reply: Reply) -> DruidUnavailable:
    code, wait = str(reply.status), reply.retry_after
    if reply.status == 503 and (not reply.content or _NO_DESTINATION in str(document(reply))):  # noqa: PLR2004  as above
        text = "the Router knows no leading Coordinator or Overlord that is ready"
        return NoLeader(SYSTEM, text, code=code, retry_after=wait)
    if reply.status == 502 and title(reply).startswith("Error 502"):  # noqa: PLR2004  as above
        text = "the Router does not reach the leading Coordinator or Overlord"
        return NoLeader(SYSTEM, text, code=code, retry_after=wait)
    return DruidUnavailable(SYSTEM, "it cannot answer now", code=code, retry_after=wait)
