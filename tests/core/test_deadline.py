"""A call that cannot end in time does not begin."""

from __future__ import annotations

import pytest

from hooks.core.deadline import Deadline
from hooks.core.errors import OutOfTime


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_call_gets_what_is_left_and_at_most_the_cap() -> None:
    clock = Clock()
    deadline = Deadline(20, clock=clock)
    assert deadline.timeout("OpenBao") == 5
    clock.now += 17
    assert deadline.timeout("OpenBao") == 3
    assert deadline.timeout("PostgreSQL", cap=60) == 3


def test_no_call_begins_with_less_than_the_floor_left() -> None:
    clock = Clock()
    deadline = Deadline(20, clock=clock)
    clock.now += 19.5
    with pytest.raises(OutOfTime, match="OpenBao"):
        deadline.timeout("OpenBao")
    with pytest.raises(OutOfTime, match="PostgreSQL"):
        Deadline(2, clock=clock).timeout("PostgreSQL", floor=3)


def test_time_never_runs_below_zero() -> None:
    clock = Clock()
    deadline = Deadline(20, clock=clock)
    clock.now += 60
    assert deadline.left() == 0
