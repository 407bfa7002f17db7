"""One request's time, handed into every remote call.

Metacontroller gives up on us after its webhook time-out while our thread goes on, so a call that
cannot end in time must not begin.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hooks.core.errors import OutOfTime

REQUEST_SECONDS = 20.0
CALL_SECONDS = 5.0
CALL_FLOOR_SECONDS = 1.0


class Deadline:
    """The moment at which this request must have answered."""

    def __init__(
        self, seconds: float = REQUEST_SECONDS, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def left(self) -> float:
        """Return the seconds that are left, never below zero."""
        return max(0.0, self._end - self._clock())

    def timeout(
        self,
        system: str,
        *,
        cap: float = CALL_SECONDS,
        floor: float = CALL_FLOOR_SECONDS,
    ) -> float:
        """Return the time-out for a call that begins now, in seconds.

        Raises:
            OutOfTime: less than `floor` seconds are left; the call must not begin.
        """
        left = self.left()
        if left < floor:
            raise OutOfTime(system, "not asked, the time of this call was spent")
        return min(cap, left)
