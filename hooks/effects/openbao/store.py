"""The credential store on KV v2.

KV answers 404 for a path that was never written, one whose version was deleted, a mount that is
not there and, below a KV v1 mount, nearly everything. Only the first may be called absent, so it
takes an empty 404 of data and of metadata, and the mount's own word that it is KV v2. The same
word is asked for before every write: KV v1 would store the envelope as if it were the secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import requests
from hvac.api.secrets_engines.kv_v2 import KvV2
from hvac.utils import format_url

from hooks.core.deadline import Deadline
from hooks.core.errors import Denied, Misconfigured, Taken, Unavailable
from hooks.effects.openbao.auth import Tokens
from hooks.effects.openbao.transport import SYSTEM, Adapter, Transport, body
from hooks.effects.ports.openbao import Credential
from hooks.effects.ports.server import Login

_OK, _NO_CONTENT, _BAD_REQUEST, _FORBIDDEN, _NOT_FOUND = 200, 204, 400, 403, 404

_Send = Callable[[Adapter], requests.Response]


class KvStore:
    """One KV v2 mount, for one request."""

    def __init__(
        self, transport: Transport, tokens: Tokens, mount: str, deadline: Deadline
    ) -> None:
        self._transport = transport
        self._tokens = tokens
        self._mount = mount
        self._deadline = deadline
        self._is_kv2 = False

    def read(self, path: str) -> Credential | None:
        """Read the current version: one request when there is one, three to call it absent."""
        url = self._url("data", path)
        found = self._answer(lambda adapter: adapter.get(url))
        if found is not None:
            return self._versioned(found)
        reserved = self._metadata(path)
        if reserved is None:
            self._require_kv2()
            return None
        if _number(reserved.get("current_version")):
            raise Unavailable(SYSTEM, "the credential changed while it was read")
        return Credential(0, _owner(reserved), login=None)

    def reserve(self, path: str, owner: Mapping[str, str]) -> None:
        """Write custom metadata where there is none.

        Servers without metadata_cas ignore it, hence the look before.
        """
        self._require_kv2()
        if self._metadata(path) is not None:
            raise _taken()
        envelope = {"custom_metadata": dict(owner), "metadata_cas": 0}
        url = self._url("metadata", path)
        self._written(lambda adapter: adapter.post(url, json=envelope))

    def reassign(self, path: str, owner: Mapping[str, str], *, was: str) -> None:
        """Write custom metadata over that of another Tenant."""
        self._require_kv2()
        found = self._metadata(path)
        if found is None or _owner(found).get("tenant-uid") != was:
            raise _taken()
        envelope: dict[str, Any] = {"custom_metadata": dict(owner)}
        version = found.get("current_metadata_version")
        # Servers that do not count versions of metadata cannot compare them either.
        if isinstance(version, int):
            envelope["metadata_cas"] = version
        url = self._url("metadata", path)
        self._written(lambda adapter: adapter.post(url, json=envelope))

    def store(self, path: str, login: Login, *, after: int) -> None:
        """Write the next version."""
        self._require_kv2()
        values = {"username": login.username, "password": login.password}
        response = self._written(
            lambda adapter: KvV2(adapter).create_or_update_secret(
                path, values, cas=after, mount_point=self._mount
            )
        )
        if response.status_code != _OK or not _number(_data(body(response)).get("version")):
            raise self._not_kv2()

    def destroy(self, path: str) -> None:
        """Delete metadata and all versions; the server answers the same when nothing is there."""
        self._require_kv2()
        self._written(
            lambda adapter: KvV2(adapter).delete_metadata_and_all_versions(
                path, mount_point=self._mount
            )
        )

    def _url(self, kind: str, path: str) -> str:
        url: str = format_url("/v1/{mount}/{kind}/{path}", mount=self._mount, kind=kind, path=path)
        return url

    def _metadata(self, path: str) -> dict[str, Any] | None:
        url = self._url("metadata", path)
        found = self._answer(lambda adapter: adapter.get(url))
        if found is None:
            return None
        if not isinstance(_data(found).get("current_version"), int):
            raise self._not_kv2()
        return _data(found)

    def _versioned(self, found: dict[str, Any]) -> Credential:
        data = _data(found)
        metadata = data.get("metadata")
        if not isinstance(metadata, dict) or not _number(metadata.get("version")):
            raise self._not_kv2()
        values = data.get("data")
        return Credential(
            metadata["version"],
            _owner(metadata),
            _login(values),
            lost=values is None,
            created=str(metadata.get("created_time") or ""),
        )

    def _answer(self, send: _Send) -> dict[str, Any] | None:
        """Return what a GET found, or None for an empty 404.

        A version that was deleted is a 404 as well, one that has data.
        """
        response = self._sent(send)
        if response.status_code == _FORBIDDEN:
            raise self._denied()
        found = body(response)
        if response.status_code == _OK or (response.status_code == _NOT_FOUND and "data" in found):
            return found
        if response.status_code == _NOT_FOUND and found.get("errors") == []:
            return None
        raise self._not_kv2()

    def _written(self, send: _Send) -> requests.Response:
        response = self._sent(send)
        if response.status_code == _FORBIDDEN:
            raise self._denied()
        if response.status_code in {_OK, _NO_CONTENT}:
            return response
        text = str(body(response).get("errors"))
        if response.status_code == _BAD_REQUEST and "check-and-set" in text and "match" in text:
            raise _taken()
        raise self._not_kv2()

    def _require_kv2(self) -> None:
        """Ask what is mounted, once a request; any token with some right on the mount may."""
        if self._is_kv2:
            return
        url = format_url("/v1/sys/internal/ui/mounts/{mount}", mount=self._mount)
        response = self._sent(lambda adapter: adapter.get(url))
        # The server forbids this for a mount that is not there.
        if response.status_code != _OK:
            raise self._not_kv2()
        data = _data(body(response))
        options = data.get("options") or {}
        if data.get("type") != "kv" or options.get("version") != "2":
            raise self._not_kv2()
        self._is_kv2 = True

    def _sent(self, send: _Send) -> requests.Response:
        """Send a request; when it is forbidden, once more with another token."""
        token = self._tokens.current(self._deadline)
        response = send(self._transport.adapter(self._deadline, token))
        if response.status_code == _FORBIDDEN:
            fresh = self._tokens.after_refusal(token, self._deadline)
            if fresh is not None:
                response = send(self._transport.adapter(self._deadline, fresh))
        return response

    def _denied(self) -> Denied:
        return Denied(
            SYSTEM,
            f"permission denied on {self._mount}: check the policy of the hooks",
            code=str(_FORBIDDEN),
        )

    def _not_kv2(self) -> Misconfigured:
        return Misconfigured(
            SYSTEM,
            f"there is no KV v2 mount {self._mount} that the hooks may use: "
            "check the mount and the policy of the hooks",
        )


def _taken() -> Taken:
    return Taken(SYSTEM, "the credential was written by somebody else in the meantime")


def _data(found: Mapping[str, Any]) -> dict[str, Any]:
    data = found.get("data")
    return data if isinstance(data, dict) else {}


def _number(value: object) -> bool:
    """Say whether this is the number of a version that exists."""
    return isinstance(value, int) and value > 0


def _owner(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in (metadata.get("custom_metadata") or {}).items()}


def _login(values: object) -> Login | None:
    if not isinstance(values, dict):
        return None
    username, password = values.get("username"), values.get("password")
    if isinstance(username, str) and isinstance(password, str) and username and password:
        return Login(username, password)
    return None
