"""Requests to a real API server, by the Kubernetes client's generic calls.

Idea: manifests in and out, as dicts; every refusal is the `ApiError` that the server's Status is,
and a server that does not answer is one with status 503.

Limits: nothing is tried again. A watch has no time-out of its own: the server ends it.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import load_kube_config

from hooks.sandbox.kinds import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from kubernetes.client.rest import RESTResponse

    from hooks.core.manifests import Manifest

_CONNECTIONS = 64
_TIMEOUT = 30.0
_FAILURE = 400


class KubeClient:
    """One API server, as whom a kubeconfig says."""

    def __init__(self, kubeconfig: Path) -> None:
        configuration = Configuration()
        # Neither a proxy of the environment nor a silent second try has a say.
        configuration.proxy = None
        configuration.retries = False
        configuration.connection_pool_maxsize = _CONNECTIONS
        load_kube_config(  # type: ignore[no-untyped-call]  # the client's own
            str(kubeconfig), client_configuration=configuration, persist_config=False
        )
        self._client = ApiClient(configuration)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Manifest | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        """Send a request and return the object that is answered.

        Raises:
            ApiError: It is refused, or there is no answer.
        """
        headers = {"Accept": "application/json", "Content-Type": content_type}
        with _translated():
            response = self._send(method, path, query, headers, body, timeout=_TIMEOUT)
            found = _object(response.read())  # type: ignore[no-untyped-call]  # the client's own
        if response.status >= _FAILURE:
            raise failure(found, response.status)
        return found

    def watch(self, path: str, version: str) -> Watch:
        """Open a watch of what happens after a resourceVersion.

        Raises:
            ApiError: It is refused, or there is no answer.
        """
        query = {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
        headers = {"Accept": "application/json"}
        with _translated():
            response = self._send("GET", path, query, headers, None, timeout=(_TIMEOUT, None))
            if response.status >= _FAILURE:
                raise failure(_object(response.read()), response.status)  # type: ignore[no-untyped-call]  # the client's own
        return Watch(response.response)

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        headers: dict[str, str],
        body: Manifest | None,
        *,
        timeout: float | tuple[float, None],
    ) -> RESTResponse:
        target = f"{path}?{urlencode(query)}" if query else path
        # Reads the token anew when it is time.
        method, url, sent, _, _ = self._client.param_serialize(
            method, target, header_params=headers, auth_settings=["BearerToken"]
        )
        return self._client.call_api(method, url, sent, body, _request_timeout=timeout)


class Watch:
    """An open watch, read in one thread; `interrupt`, from any other, ends it."""

    def __init__(self, response: urllib3.HTTPResponse) -> None:
        self._response = response

    def events(self) -> Iterator[Manifest]:
        """Yield events, with `type` and `object`, until the server ends the watch.

        Raises:
            ApiError: It cannot go on, 410 when its place is forgotten; or it was interrupted.
        """
        rest = b""
        try:
            with _translated():
                for chunk in self._response.stream(None):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield _event(line)
        finally:
            self._response.close()

    def interrupt(self) -> None:
        """Wake the thread that waits for an event; closing is its own business."""
        with contextlib.suppress(ValueError, RuntimeError, OSError):
            self._response.shutdown()


def failure(status: Manifest, code: int) -> ApiError:
    """Return the refusal that a Status object describes; it may be empty."""
    return ApiError(
        int(status.get("code") or code),
        str(status.get("reason") or "Unknown"),
        str(status.get("message") or f"the server answered {code}"),
        details=status.get("details"),
    )


def _event(line: bytes) -> Manifest:
    event = _object(line)
    if event.get("type") == "ERROR":
        raise failure(event["object"], _FAILURE)
    return event


def _object(content: bytes) -> Manifest:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Turn what a connection may end with into an ApiError."""
    try:
        yield
    except (ApiException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        text = f"no answer of the API server: {type(error).__name__}"
        raise ApiError(503, "ServiceUnavailable", text) from error
