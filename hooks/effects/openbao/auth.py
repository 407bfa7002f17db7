"""Who we are to OpenBao, and the token that it gave us.

A token is kept in memory and replaced after two thirds of its life, or when it is not accepted.
Files are read at each login, since the kubelet and administrators replace them. A token from a
file is read for each call: whoever writes the file keeps the token alive.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, assert_never

import requests
from hvac.api.auth_methods.approle import AppRole as AppRoleApi
from hvac.api.auth_methods.kubernetes import Kubernetes as KubernetesApi

from hooks.core.deadline import Deadline
from hooks.core.errors import Misconfigured, Refused, Unavailable
from hooks.effects.openbao.transport import SYSTEM, Adapter, Transport, body

_SHARE_OF_LIFE = 2 / 3
_OK = 200


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A token in a file that something else renews."""

    path: Path


@dataclass(frozen=True, slots=True)
class AppRole:
    """An AppRole, its two halves in files."""

    role_id_file: Path
    secret_id_file: Path
    mount: str = "approle"


@dataclass(frozen=True, slots=True)
class KubernetesAuth:
    """The ServiceAccount of this Pod."""

    role: str
    mount: str = "kubernetes"
    jwt_file: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


Auth = TokenFile | AppRole | KubernetesAuth


@dataclass(frozen=True, slots=True)
class _Token:
    text: str = field(repr=False)
    until: float


class Tokens(Protocol):
    """The current token, shared by all threads."""

    def current(self, deadline: Deadline) -> str:
        """Return a token that should be good."""
        ...

    def after_refusal(self, refused: str, deadline: Deadline) -> str | None:
        """Return another token than the one that was refused, or None when there is none."""
        ...


def tokens(auth: Auth, transport: Transport, clock: Callable[[], float]) -> Tokens:
    """Return where tokens come from; nothing is read or asked yet."""
    if isinstance(auth, TokenFile):
        return _FileTokens(auth.path)
    return _LoginTokens(auth, transport, clock)


class _FileTokens:
    def __init__(self, path: Path) -> None:
        self._path = path

    def current(self, deadline: Deadline) -> str:  # noqa: ARG002  a file answers at once
        return _secret(self._path, "token file")

    def after_refusal(self, refused: str, deadline: Deadline) -> str | None:
        again = self.current(deadline)
        return again if again != refused else None


class _LoginTokens:
    """One thread logs in, the others wait for it."""

    def __init__(
        self, auth: AppRole | KubernetesAuth, transport: Transport, clock: Callable[[], float]
    ) -> None:
        self._auth = auth
        self._transport = transport
        self._clock = clock
        self._lock = threading.Lock()
        self._token = _Token("", -math.inf)

    def current(self, deadline: Deadline) -> str:
        token = self._token
        return token.text if self._clock() < token.until else self._replaced(token.text, deadline)

    def after_refusal(self, refused: str, deadline: Deadline) -> str | None:
        return self._replaced(refused, deadline)

    def _replaced(self, old: str, deadline: Deadline) -> str:
        if not self._lock.acquire(timeout=deadline.timeout(SYSTEM)):
            raise Unavailable(SYSTEM, "no answer to the login in time")
        try:
            # Unless another thread was here while this one waited.
            if self._token.text == old:
                began = self._clock()
                text, seconds = _login(self._auth, self._transport.adapter(deadline))
                life = seconds * _SHARE_OF_LIFE if seconds else math.inf
                self._token = _Token(text, began + life)
            return self._token.text
        finally:
            self._lock.release()


def _login(auth: AppRole | KubernetesAuth, adapter: Adapter) -> tuple[str, int]:
    """Log in and return the token and its life in seconds, 0 when it does not end."""
    response = _asked(auth, adapter)
    if response.status_code != _OK:
        raise Refused(
            SYSTEM,
            "the login was refused: check the hooks' auth mount, role and credentials",
            code=str(response.status_code),
        )
    found = body(response).get("auth") or {}
    token, seconds = found.get("client_token"), found.get("lease_duration")
    if not isinstance(token, str) or not token or not isinstance(seconds, int):
        raise Refused(SYSTEM, "the login gave no token: check the hooks' auth mount and role")
    return token, seconds


def _asked(auth: AppRole | KubernetesAuth, adapter: Adapter) -> requests.Response:
    response: requests.Response
    match auth:
        case AppRole():
            response = AppRoleApi(adapter).login(
                _secret(auth.role_id_file, "role ID file"),
                _secret(auth.secret_id_file, "secret ID file"),
                use_token=False,
                mount_point=auth.mount,
            )
        case KubernetesAuth():
            response = KubernetesApi(adapter).login(
                auth.role,
                _secret(auth.jwt_file, "ServiceAccount token file"),
                use_token=False,
                mount_point=auth.mount,
            )
        case _:
            assert_never(auth)
    return response


def _secret(path: Path, what: str) -> str:
    """Read a credential. It becomes a header or JSON text, so it must be one printable word."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text.isprintable() or not text or " " in text:
        raise Misconfigured(SYSTEM, f"the {what} is missing, empty or holds something else")
    return text
