"""Faults at the ports: any write may be cut off before or after, lost, refused or done twice.

A port method is a write unless it is listed as a read, so a new write is covered without a new
test; `test_faults` holds the list of reads against the ports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from hooks.core.errors import EffectError, Taken, Unavailable
from hooks.effects.ports import Admin, CredentialStore, Endpoint, Login, Postgres, Services

Fault = Literal["killed before", "killed after", "refused", "reply lost", "done twice"]
FAULTS: tuple[Fault, ...] = ("killed before", "killed after", "refused", "reply lost", "done twice")

READS = frozenset(
    {
        "try_lock",
        "server",
        "registry",
        "row",
        "claims",
        "candidates",
        "role",
        "database",
        "available",
        "names_of",
        "certificate",
        "administer",
        "log_in",
        "read",
    }
)


class Killed(BaseException):
    """The process ended here; nothing of ours catches it."""


@dataclass
class Fuse:
    """Counts writes, and lets one of them go wrong.

    Attributes:
        at: the number of the write that goes wrong, from 0; None for none.
        fault: how.
        writes: the names of the writes that were begun.
        before: called before each write, for what others do meanwhile.
    """

    at: int | None = None
    fault: Fault = "killed before"
    writes: list[str] = field(default_factory=list)
    before: Callable[[int], None] = lambda _number: None

    def services(self, services: Services) -> Services:
        """Return the services with this fuse in each of their writes."""
        return replace(
            services,
            postgres=cast("Postgres", _Postgres(services.postgres, self)),
            credentials=cast("CredentialStore", _Proxy(services.credentials, self)),
        )

    def blow(self, name: str, write: Callable[[], Any]) -> Any:  # noqa: ANN401  any port's result
        """Do a write as this fuse lets it be done."""
        number = len(self.writes)
        self.writes.append(name)
        self.before(number)
        if number != self.at:
            return write()
        match self.fault:
            case "killed before":
                raise Killed(name)
            case "refused":
                raise Unavailable("the fuse", "not done")
            case "done twice":
                write()
                try:
                    return write()
                except Taken:
                    return None
            case "killed after":
                _quietly(write)
                raise Killed(name)
            case "reply lost":
                _quietly(write)
                raise Unavailable("the fuse", "done, but nobody said so")


def _quietly(write: Callable[[], Any]) -> None:
    try:
        write()
    except EffectError:
        return


class _Proxy:
    def __init__(self, target: object, fuse: Fuse) -> None:
        self._target = target
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  any port's method
        method = getattr(self._target, name)
        if name in READS:
            return method
        return lambda *args, **kwargs: self._fuse.blow(name, lambda: method(*args, **kwargs))


class _Postgres(_Proxy):
    def administer(self, endpoint: Endpoint, login: Login) -> AbstractContextManager[Admin]:
        target = cast("Postgres", self._target)

        @contextmanager
        def session() -> Iterator[Admin]:
            with target.administer(endpoint, login) as admin:
                yield cast("Admin", _Proxy(admin, self._fuse))

        return session()
