"""One HTTP call to a Router: it ends in time, goes where it was sent, and reads only so much.

What an answer means is not judged here. Nobody's redirect is followed, and no proxy, netrc or CA
bundle of the environment counts.

The time-out bounds connecting and every silence of the server, and a body that trickles.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path

import requests
import urllib3
from requests.adapters import HTTPAdapter

from hooks.core.errors import EffectError
from hooks.effects.druid.trust import SYSTEM, Trust
from hooks.effects.ports.druid import DruidUnavailable, ProtocolError, Router, Untrusted

_CONNECTIONS = 32
_TRUSTS = 64
_PIECE = 65536
_LONGEST_WAIT = 300.0
"""Seconds; whoever answers is not trusted with more."""
_NO_TLS = (
    "no trusted TLS connection: check the Router's port, its certificate's names, the CA and "
    "whether it wants a client certificate"
)

# Whoever asks for no proof is told so once, by the documentation, and not with every call.
urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)


@dataclass(frozen=True, slots=True)
class Call:
    """What is sent, and how much of the answer is wanted."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)
    limit: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    Attributes:
        content: at most as much of the body as was wanted.
        whole: that is all of it.
        retry_after: seconds that we were asked to wait.
    """

    status: int
    content: bytes = field(repr=False)
    whole: bool
    retry_after: float | None


class Transport:
    """The connections to all Routers, shared by all threads."""

    def __init__(self, ca_file: Path | None) -> None:
        self._ca_file = ca_file
        self._lock = threading.Lock()
        self._sessions: OrderedDict[Trust | None, requests.Session] = OrderedDict()

    def send(self, router: Router, call: Call, seconds: float) -> Reply:
        """Send one request and read its answer.

        Raises:
            EffectError: there is none.
        """
        session = self._session(Trust.of(router, self._ca_file))
        end = time.monotonic() + seconds
        try:
            with session.request(
                call.method,
                call.url,
                data=call.body,
                headers=dict(call.headers),
                timeout=urllib3.Timeout(total=seconds),  # type: ignore[arg-type]  # taken, but not in its types
                allow_redirects=False,
                stream=True,
            ) as response:
                content, whole = _read(response, call.limit, end)
                retry_after = _retry_after(response.headers.get("Retry-After", ""))
                return Reply(response.status_code, content, whole, retry_after)
        except (requests.RequestException, urllib3.exceptions.HTTPError, ssl.SSLError) as error:
            raise _unanswered(error) from error

    def _session(self, trust: Trust | None) -> requests.Session:
        with self._lock:
            session = self._sessions.pop(trust, None) or _session(trust)
            self._sessions[trust] = session
            if len(self._sessions) > _TRUSTS:
                # Calls under way keep the connection that they have.
                self._sessions.popitem(last=False)[1].close()
            return session


class _Adapter(HTTPAdapter):
    """An HTTPAdapter with our TLS context."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(pool_maxsize=_CONNECTIONS)

    def init_poolmanager(self, *args: object, **kwargs: object) -> None:
        """Give the context to every pool."""
        super().init_poolmanager(*args, **kwargs, ssl_context=self._context)  # type: ignore[arg-type]  # requests' own arguments

    def cert_verify(self, *_: object) -> None:
        """Add nothing: requests would have the context trust its own CA bundle as well."""


def _session(trust: Trust | None) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    # A load balancer's cookie would be the only state that requests share.
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    # An HTTPAdapter retries nothing unless it is told to.
    session.mount("http://", HTTPAdapter(pool_maxsize=_CONNECTIONS))
    if trust:
        session.verify = trust.verify
        session.mount("https://", _Adapter(trust.context()))
    return session


def _read(response: requests.Response, limit: int, end: float) -> tuple[bytes, bool]:
    """Read as much as is wanted, and say whether that is all."""
    pieces: list[bytes] = []
    size = 0
    while size <= limit:
        piece = response.raw.read1(_PIECE, decode_content=True)
        if not piece:
            return b"".join(pieces), True
        if time.monotonic() > end:
            raise DruidUnavailable(SYSTEM, "no whole answer in time")
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)[:limit], False


def _unanswered(error: Exception) -> EffectError:
    causes = _causes(error)

    def by(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if any(map(_is_distrust, causes)):
        return Untrusted(SYSTEM, _NO_TLS)
    # For urllib3 a connection that cannot be made is a time-out as well.
    if by(urllib3.exceptions.NewConnectionError):
        return DruidUnavailable(SYSTEM, "no connection")
    if by(TimeoutError, urllib3.exceptions.TimeoutError):
        return DruidUnavailable(SYSTEM, "no answer in time")
    if by(ConnectionError, http.client.IncompleteRead, ssl.SSLError):
        return DruidUnavailable(SYSTEM, "it closed the connection")
    return ProtocolError(SYSTEM, _not_http(error))


def _is_distrust(cause: BaseException) -> bool:
    """Say whether one side rejects the other; a server that restarts just ends a handshake."""
    ended = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
    return isinstance(cause, ssl.SSLError) and not isinstance(cause, ended)


def _not_http(error: Exception) -> str:
    if isinstance(error, ValueError):
        return "its address is not a URL"
    return "the answer is not HTTP: check the Router's address and port"


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and what it came from; urllib3 keeps some causes as arguments only."""
    found: list[BaseException] = []
    left: list[object] = [error]
    while left:
        one = left.pop()
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            left += [one.__cause__, one.__context__, *one.args]
    return found


def _retry_after(text: str) -> float | None:
    seconds = float(text) if text.isascii() and text.isdigit() else 0.0
    return min(seconds, _LONGEST_WAIT) if seconds else None
