"""Faults at Druid's port: any write may be cut off before or after, lost, refused or done twice.

A port method is a write unless it is listed as a read, so a new write is covered without a new
test; `test_faults` holds the list against the port.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from hooks.core.errors import EffectError
from hooks.effects.ports import Druid, Login, Services
from hooks.effects.ports.druid import Cluster, DruidUnavailable, Router
from hooks.sandbox.druid import Conduct

Fault = Literal["killed before", "killed after", "not done", "reply lost", "done twice"]
FAULTS: tuple[Fault, ...] = (
    "killed before",
    "killed after",
    "not done",
    "reply lost",
    "done twice",
)

READS = frozenset(
    {
        "version",
        "task",
        "payload",
        "report",
        "supervisor",
        "supervisor_spec",
        "past_specs",
        "compaction",
        "rules",
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
    """

    at: int | None = None
    fault: Fault = "killed before"
    writes: list[str] = field(default_factory=list)

    def services(self, services: Services) -> Services:
        """Return the services with this fuse in each write."""
        return replace(services, druid=_Druid(services.druid, self))

    def blow(self, name: str, write: Callable[[], Any]) -> Any:  # noqa: ANN401  any port's result
        """Do a write as this fuse lets it be done."""
        number = len(self.writes)
        self.writes.append(name)
        if number != self.at:
            return write()
        match self.fault:
            case "killed before":
                raise Killed(name)
            case "not done":
                raise DruidUnavailable("the fuse", "not done")
            case "done twice":
                write()
                return write()
            case "killed after":
                _quietly(write)
                raise Killed(name)
            case "reply lost":
                _quietly(write)
                raise DruidUnavailable("the fuse", "done, but nobody said so")


def _quietly(write: Callable[[], Any]) -> None:
    try:
        write()
    except EffectError:
        return


@dataclass
class _Druid:
    target: Druid
    fuse: Fuse

    def cluster(self, router: Router, login: Login | None) -> Cluster:
        return cast("Cluster", _Cluster(self.target.cluster(router, login), self.fuse))


class _Cluster:
    def __init__(self, target: Cluster, fuse: Fuse) -> None:
        self._target = target
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  any port's method
        method = getattr(self._target, name)
        if name in READS:
            return method
        return lambda *args, **kwargs: self._fuse.blow(name, lambda: method(*args, **kwargs))


@dataclass
class Healing:
    """Druid whose trouble with new supervisors ends after the next refusal."""

    target: Druid
    conduct: Conduct

    def cluster(self, router: Router, login: Login | None) -> Cluster:
        """Return a cluster that heals after a submission."""
        return cast("Cluster", _Healing(self.target.cluster(router, login), self.conduct))


class _Healing:
    def __init__(self, target: Cluster, conduct: Conduct) -> None:
        self._target = target
        self._conduct = conduct

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  any port's method
        method = getattr(self._target, name)
        if name != "submit":
            return method

        def submit(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  the port's
            answer = method(*args, **kwargs)
            self._conduct.creation_error = ""
            return answer

        return submit
