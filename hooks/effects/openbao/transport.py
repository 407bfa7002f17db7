"""One HTTP call to OpenBao: it ends in time, goes where it was sent, and fails as an EffectError.

What a 400, 403 or 404 means depends on the question, so these answers go back to the caller.

The time-out bounds connecting and every silence of the server, not an answer that trickles.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any

import requests
import urllib3
from hvac.adapters import RawAdapter
from requests.adapters import HTTPAdapter

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError, Misconfigured, Refused, Unavailable

SYSTEM = "OpenBao"

_CONNECTIONS = 32
_FOR_THE_CALLER = frozenset({200, 204, 400, 403, 404})
_LATER = frozenset({412, 429})
_FIRST_REDIRECT, _FIRST_CLIENT_ERROR, _FIRST_SERVER_ERROR = 300, 400, 500


class Transport:
    """The connections to one server, shared by all threads."""

    def __init__(self, address: str, ca_file: Path | None, namespace: str) -> None:
        self._address = address
        self._namespace = namespace
        self._session = requests.Session()
        # Neither proxies nor netrc nor a CA bundle of the environment.
        self._session.trust_env = False
        self._session.verify = str(ca_file) if ca_file else True
        # A load balancer's cookie would be the only state that requests share.
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        # An HTTPAdapter retries nothing unless it is told to.
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=_CONNECTIONS))

    def adapter(self, deadline: Deadline, token: str = "") -> Adapter:
        """Return what hvac sends requests with, for one thread."""
        adapter = Adapter(
            base_uri=self._address,
            token=token or None,
            allow_redirects=False,
            session=self._session,
            namespace=self._namespace or None,
        )
        adapter.deadline = deadline
        return adapter


class Adapter(RawAdapter):
    """hvac's adapter with a time-out per call and our errors."""

    deadline: Deadline

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        raise_exception: bool = True,  # noqa: ARG002, FBT001, FBT002  hvac's signature
        **kwargs: Any,  # noqa: ANN401  hvac's signature
    ) -> requests.Response:
        """Send one request and return an answer that the caller can judge."""
        kwargs["timeout"] = urllib3.Timeout(total=self.deadline.timeout(SYSTEM))
        try:
            response = super().request(method, url, headers, raise_exception=False, **kwargs)
        except requests.RequestException as error:
            raise _unanswered(error) from error
        except OSError as error:
            raise Misconfigured(SYSTEM, "the CA file cannot be read") from error
        if response.status_code not in _FOR_THE_CALLER:
            raise _unwanted(response)
        return response


def body(response: requests.Response) -> dict[str, Any]:
    """Return the JSON object of an answer.

    Raises:
        Misconfigured: there is none, so something else than OpenBao answered.
    """
    try:
        found = json.loads(response.content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Misconfigured(
            SYSTEM,
            "the answer is not OpenBao's: check its address",
            code=str(response.status_code),
        )
    return found


def _unanswered(error: requests.RequestException) -> EffectError:
    if isinstance(error, requests.exceptions.SSLError):
        if _cut_short(error):
            return Unavailable(SYSTEM, "it closed the connection")
        return Refused(
            SYSTEM,
            "no trusted TLS connection: check its address, its certificate's names and the CA file",
        )
    if isinstance(error, requests.Timeout):
        return Unavailable(SYSTEM, "no answer in time")
    if isinstance(error, ValueError):
        return Misconfigured(SYSTEM, "its address is not a URL")
    return Unavailable(SYSTEM, "no connection")


def _cut_short(error: BaseException) -> bool:
    """Say whether TLS ended since the peer went away, as a server that restarts does."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return True
        cause = cause.__context__
    return False


def _unwanted(response: requests.Response) -> EffectError:
    status = response.status_code
    code = str(status)
    if status in _LATER or status >= _FIRST_SERVER_ERROR:
        return Unavailable(
            SYSTEM, _why_later(response), code=code, retry_after=_retry_after(response)
        )
    if _FIRST_REDIRECT <= status < _FIRST_CLIENT_ERROR:
        return Unavailable(
            SYSTEM, "a standby answered: let the address lead to the active server", code=code
        )
    return Misconfigured(SYSTEM, "it does not understand the request: check its address", code=code)


def _why_later(response: requests.Response) -> str:
    texts: Mapping[int, str] = {
        412: "it is not up to date yet",
        429: "too many requests",
        501: "it is not initialised",
    }
    if response.status_code == 503 and b"sealed" in response.content:  # noqa: PLR2004  as above
        return "it is sealed: unseal it"
    return texts.get(response.status_code, "it cannot answer now")


def _retry_after(response: requests.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() and int(text) > 0 else None
