"""The work queue of the runner, and its time.

Idea: an item waits at most once and is worked on by one worker at a time; a later time never
replaces an earlier one; failures of an item double its delay. Time can be skipped, so that a test
sees an hour pass at once.

Limits: the overall rate limit of the real queue (10 failures a second) is left out.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hooks.sandbox.runner_state import Item

_MOST_DOUBLINGS = 20


class Time:
    """Seconds that pass by themselves and can be skipped; share it with what must agree."""

    def __init__(self, source: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._skipped = 0.0

    def now(self) -> float:
        """Return the seconds since some moment in the past."""
        return self._source() + self._skipped

    def skip_to(self, moment: float) -> None:
        """Let all time until then pass now; the past is no place to go to."""
        self._skipped += max(moment - self.now(), 0.0)


class WorkQueue:
    """Items to work on, now or later."""

    def __init__(
        self, clock: Time, *, first_delay: float = 0.005, longest_delay: float = 1000.0
    ) -> None:
        """Use the delays after the first and after many failures in a row."""
        self._time = clock
        self._first_delay = first_delay
        self._longest_delay = longest_delay
        self._changed = threading.Condition()
        self._ready: dict[Item, None] = {}
        self._working: set[Item] = set()
        self._again: dict[Item, None] = {}
        self._later: dict[Item, float] = {}
        self._failures: Counter[Item] = Counter()
        self._closed = False

    def add(self, item: Item) -> None:
        """Have an item worked on as soon as possible."""
        with self._changed:
            self._add(item)

    def add_after(self, item: Item, delay: float) -> None:
        """Have an item worked on after a delay, if no earlier time is set."""
        with self._changed:
            if delay <= 0:
                self._add(item)
                return
            due = self._time.now() + delay
            self._later[item] = min(due, self._later.get(item, due))
            self._changed.notify()

    def add_failed(self, item: Item) -> None:
        """Have an item worked on again, later with each failure."""
        with self._changed:
            doublings = min(self._failures[item], _MOST_DOUBLINGS)
            self._failures[item] += 1
        self.add_after(item, min(self._first_delay * 2**doublings, self._longest_delay))

    def forget(self, item: Item) -> None:
        """Take an item's failures back."""
        with self._changed:
            self._failures.pop(item, None)

    def take(self) -> Item | None:
        """Return an item that is due and not worked on by anyone, None when there is none."""
        with self._changed:
            return self._take()

    def wait(self) -> Item | None:
        """Wait for an item that is due; None when the queue is closed."""
        with self._changed:
            while not self._closed:
                if (item := self._take()) is not None:
                    return item
                due = min(self._later.values(), default=None)
                pause = None if due is None else max(due - self._time.now(), 0.0)
                self._changed.wait(pause)
            return None

    def done(self, item: Item) -> None:
        """Say that the work on an item has ended; it is due again if it was added meanwhile."""
        with self._changed:
            self._working.discard(item)
            if item in self._again:
                del self._again[item]
                self._add(item)

    @property
    def next_due(self) -> float | None:
        """Return when the next item will be due, None when no item waits for a time."""
        with self._changed:
            return min(self._later.values(), default=None)

    def close(self) -> None:
        """Let all who wait go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _add(self, item: Item) -> None:
        if item in self._working:
            self._again[item] = None
        else:
            self._ready[item] = None
            self._changed.notify()

    def _take(self) -> Item | None:
        now = self._time.now()
        for late in sorted(item for item, due in self._later.items() if due <= now):
            del self._later[late]
            self._add(late)
        item = next(iter(self._ready), None)
        if item is not None:
            del self._ready[item]
            self._working.add(item)
        return item
