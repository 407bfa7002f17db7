"""What can go wrong when we talk to something, as values with a closed set of classes.

EffectError
├── Unavailable      nobody answers, or says "later": time-out, refused, sealed, 5xx, 429
│   └── OutOfTime    we did not ask, since this call's time is spent
├── Refused          the peer does not accept who we are: password, certificate
├── Denied           the peer knows us and we may not: SQLSTATE 42501, HTTP 403
├── Misconfigured    the deployment is wrong: no such mount, KV v1, a pooler in between
├── Blocked          the statement failed for a state of the peer that may change
└── Taken            somebody was first: unique violation, check-and-set mismatch

Adapters translate once, `gather` turns a failed read into a value, `converge` a failed write
into a condition. The text of an EffectError is shown to users: it never holds a credential, an
admin's name, an address that the user did not write, or a sentence of the peer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class EffectError(Exception):
    """A remote call that did not do what was asked.

    Attributes:
        system: who was asked, in the words of the user: "PostgreSQL", "OpenBao", "Kubernetes".
        detail: what happened and what to do, safe to show.
        code: the peer's stable code, when there is one: a SQLSTATE, an HTTP status.
        retry_after: seconds the peer asked us to wait, or None.
    """

    reason = "DependencyUnavailable"

    def __init__(
        self,
        system: str,
        detail: str,
        *,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(system, detail)
        self.system = system
        self.detail = detail
        self.code = code
        self.retry_after = retry_after

    def __str__(self) -> str:
        suffix = f" ({self.code})" if self.code else ""
        return f"{self.system}: {self.detail}{suffix}"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((type(self), str(self)))


class Unavailable(EffectError):
    """Nobody answered, or the answer was "later"."""


class OutOfTime(Unavailable):
    """The call was not begun: too little of this request's time is left."""


class Refused(EffectError):
    """The peer does not accept who we are, or we do not accept who it is."""

    reason = "AuthenticationFailed"


class Denied(EffectError):
    """The peer knows us and forbids it."""

    reason = "InsufficientPrivileges"


class Misconfigured(EffectError):
    """The deployment must be changed by its administrator; asking again does not help."""


class Blocked(EffectError):
    """The peer's state forbids it now; the code says which state."""

    reason = "ProvisioningFailed"


class Taken(EffectError):
    """Somebody else was first. Read again before judging: it may have been us."""

    reason = "Conflict"


def attempt(read: Callable[[], T]) -> T | EffectError:
    """Return what a read gives, or its failure as a value."""
    try:
        return read()
    except EffectError as error:
        return error
