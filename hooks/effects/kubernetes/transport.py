"""One GET of the Kubernetes API: it ends in time and fails as an EffectError.

What the client raises or prints may carry bodies and headers, so neither gets further than this
module; an EffectError's text names the verb, the kind and the place.

The time-out bounds connecting and every silence of the server, not an answer that trickles.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException

from hooks.core.errors import Denied, EffectError, Misconfigured, Refused, Unavailable
from hooks.core.manifests import Manifest
from hooks.effects.ports.kubernetes import Resource

SYSTEM = "Kubernetes"

_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 200, 401, 403, 404
_TOO_MANY, _FIRST_SERVER_ERROR = 429, 500


@dataclass(frozen=True, slots=True)
class Question:
    """A request in the words of RBAC."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.kind}{where}"

    @property
    def kind(self) -> str:
        """The plural with its group, as kubectl takes it."""
        resource = self.resource
        return f"{resource.plural}.{resource.group}" if resource.group else resource.plural

    @property
    def path(self) -> str:
        """Where the API server answers it."""
        resource = self.resource
        parts = ["apis", resource.group] if resource.group else ["api"]
        parts.append(resource.version)
        if self.namespace:
            parts += ["namespaces", self.namespace]
        parts.append(resource.plural)
        if self.name:
            parts.append(self.name)
        return "".join(f"/{quote(part, safe='')}" for part in parts)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; the body is empty when it is no JSON object."""

    question: Question
    status: int
    body: Manifest = field(repr=False)
    retry_after: float | None

    def accepted(self) -> Manifest:
        """Return the body of a good answer, or raise what the answer means."""
        code = str(self.status)
        if self.status == _OK and self.body:
            return self.body
        if self.status == _TOO_MANY or self.status >= _FIRST_SERVER_ERROR:
            raise Unavailable(
                SYSTEM, "it cannot answer now", code=code, retry_after=self.retry_after
            )
        if self.status == _UNAUTHORIZED:
            raise Refused(SYSTEM, "the token of the hooks is not accepted", code=code)
        if self.status == _FORBIDDEN:
            raise Denied(SYSTEM, f"the hooks may not {self.question}", code=code)
        if self.status == _NOT_FOUND:
            detail = f"the kind {self.question.kind} is not installed"
            raise Misconfigured(SYSTEM, detail, code=code)
        raise Misconfigured(SYSTEM, f"no usable answer to {self.question}", code=code)


def ask(
    client: ApiClient,
    question: Question,
    accept: str,
    query: Mapping[str, str],
    timeout: float,
) -> Answer:
    """Send a GET and read all of the answer, whatever its status."""
    path = f"{question.path}?{urlencode(query)}" if query else question.path
    try:
        # Reads the token anew when it is time.
        method, url, headers, _, _ = client.param_serialize(
            "GET", path, header_params={"Accept": accept}, auth_settings=["BearerToken"]
        )
        response = client.call_api(method, url, headers, _request_timeout=timeout)
        content = response.read()  # type: ignore[no-untyped-call]  # the client's own
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        raise _unanswered(error) from error
    except (ConfigException, OSError, ValueError):
        # The cause may quote the token.
        raise Misconfigured(SYSTEM, "the credentials of the hooks cannot be used") from None
    return Answer(question, response.status, _object(content), _retry_after(response.headers))


def _object(content: bytes) -> Manifest:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    text = headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def _unanswered(error: Exception) -> EffectError:
    cause: BaseException | None = error
    while cause is not None:
        # A server that restarts ends a handshake early; anything else needs an administrator.
        if isinstance(cause, ssl.SSLError) and not isinstance(
            cause, ssl.SSLEOFError | ssl.SSLZeroReturnError
        ):
            return Refused(SYSTEM, "no trusted TLS connection: check its address and its CA")
        cause = cause.__context__
    # For urllib3 a connection that is refused is a time-out as well.
    if isinstance(error, urllib3.exceptions.TimeoutError) and not isinstance(
        error, urllib3.exceptions.NewConnectionError
    ):
        return Unavailable(SYSTEM, "no answer in time")
    return Unavailable(SYSTEM, "no connection")
