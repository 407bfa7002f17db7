"""What is asked of OpenBao."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hooks.effects.ports.server import Login


@dataclass(frozen=True, slots=True)
class Credential:
    """What KV v2 holds at a path.

    Attributes:
        version: the current version; 0 when only metadata was written.
        owner: custom metadata.
        login: the values, or None when there is no readable version.
        lost: the current version was deleted or destroyed.
        created: when that version was written, in the server's words; empty for none.
    """

    version: int
    owner: Mapping[str, str]
    login: Login | None
    lost: bool = False
    created: str = field(default="", compare=False)


class CredentialStore(Protocol):
    """One KV v2 mount. Paths are relative to the mount: base/namespace/name."""

    def read(self, path: str) -> Credential | None:
        """Read the current version and its custom metadata.

        None only when KV itself says that nothing was ever written. A missing mount or a KV v1
        mount is Misconfigured.
        """
        ...

    def reserve(self, path: str, owner: Mapping[str, str]) -> None:
        """Write custom metadata where there is none. Raises Taken when there is some."""
        ...

    def store(self, path: str, login: Login, *, after: int) -> None:
        """Write the next version. Raises Taken when `after` is not the current version."""
        ...

    def reassign(self, path: str, owner: Mapping[str, str], *, was: str) -> None:
        """Write custom metadata over that of another Tenant.

        Raises Taken when the tenant-uid that is there is not `was`.
        """
        ...

    def destroy(self, path: str) -> None:
        """Delete metadata and all versions; nothing there is success."""
        ...
