"""OpenBao KV v2 as the place where tenants' passwords are.

One `OpenBao` lives as long as the process and is shared by its threads: it keeps the connections
and the login. `bind` gives what one request works with, under that request's deadline.

Standby servers are not followed and no call is repeated, with one exception: a token that is not
accepted any more is replaced once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from hooks.core.deadline import Deadline
from hooks.effects.openbao.auth import AppRole, Auth, KubernetesAuth, TokenFile, tokens
from hooks.effects.openbao.store import KvStore
from hooks.effects.openbao.transport import Transport
from hooks.effects.ports.openbao import CredentialStore

__all__ = ["AppRole", "Auth", "KubernetesAuth", "OpenBao", "TokenFile"]


class OpenBao:
    """One KV v2 mount of one server."""

    def __init__(
        self,
        *,
        address: str,
        mount: str,
        auth: Auth,
        ca_file: Path | None = None,
        namespace: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the settings; nothing is asked of the server yet.

        Args:
            address: such as "https://openbao.openbao.svc:8200".
            mount: where KV v2 is mounted.
            auth: how to log in.
            ca_file: who signed the server's certificate; None trusts what requests trusts.
            namespace: an OpenBao namespace, "" for the root.
            clock: seconds that only grow.
        """
        self._transport = Transport(address, ca_file, namespace)
        self._tokens = tokens(auth, self._transport, clock)
        self._mount = mount.strip("/")

    def bind(self, deadline: Deadline) -> CredentialStore:
        """Return the mount as one request may use it."""
        return KvStore(self._transport, self._tokens, self._mount, deadline)
