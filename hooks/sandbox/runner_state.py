"""What the parts of the runner share: errors, counts, and the faults that a test injects."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Deed = Literal["sync", "finalize", "customize", "child", "parent", "status", "error"]
Fault = Literal["stale_parent", "stale_children", "duplicate_call", "lost_answer"]

_WRITES: tuple[Deed, ...] = ("child", "parent", "status")
_CALLS: tuple[Deed, ...] = ("sync", "finalize", "customize")


class SyncError(Exception):
    """A sync failed: the parent gets an Event and is tried again later."""


class TooManyRequests(Exception):
    """A hook answered 429."""

    def __init__(self, after: float) -> None:
        super().__init__(f"too many requests, retry after {after:g} s")
        self.after = after


class RunnerCrashed(Exception):
    """Metacontroller's process would have died here, with every controller in it."""


class NotSettled(Exception):
    """There is no end to the syncs: a hot loop, or a limit that is too low."""


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """What the queue holds: a parent of a controller, or (without a name) all of them."""

    controller: str
    kind: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.controller.rpartition('/')[2]} {self.namespace}/{self.name}"


class Statistics:
    """Counts of hook calls, write requests and failed syncs, per parent.

    A write request counts when it is sent, even if it changes nothing or is refused.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[Item, Deed]] = Counter()

    def count(self, item: Item, deed: Deed) -> None:
        """Count one more."""
        with self._lock:
            self._counts[item, deed] += 1

    def of(self, namespace: str | None, name: str) -> Mapping[Deed, int]:
        """Return the counts of a parent, without those that are zero."""
        with self._lock:
            found: Counter[Deed] = Counter()
            for (item, deed), number in self._counts.items():
                if (item.namespace, item.name) == (namespace or "", name):
                    found[deed] += number
            return dict(found)

    @property
    def total(self) -> Mapping[Deed, int]:
        """Return the counts of all parents, without those that are zero."""
        with self._lock:
            found: Counter[Deed] = Counter()
            for (_, deed), number in self._counts.items():
                found[deed] += number
            return dict(found)

    @property
    def writes(self) -> int:
        """Return the number of write requests: children, statuses, finalizers."""
        return sum(self.total.get(deed, 0) for deed in _WRITES)

    @property
    def calls(self) -> int:
        """Return the number of hook calls."""
        return sum(self.total.get(deed, 0) for deed in _CALLS)


class Faults:
    """What shall go wrong, and how many times.

    stale_parent, stale_children: a sync sees the version before the newest one; as it would with
        a late watch, the parent is synced again afterwards.
    duplicate_call: a hook is called twice with the same body, and the second answer counts.
    lost_answer: a hook is called, but its answer does not arrive in time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: Counter[Fault] = Counter()

    def inject(self, fault: Fault, times: int = 1) -> None:
        """Let it happen at the next `times` opportunities."""
        with self._lock:
            self._pending[fault] += times

    def take(self, fault: Fault) -> bool:
        """Say whether it happens now."""
        with self._lock:
            if self._pending[fault] <= 0:
                return False
            self._pending[fault] -= 1
            return True
