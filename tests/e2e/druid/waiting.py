"""Waiting for what a server does in its own time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_PAUSE = 0.2


class NotInTime(Exception):
    """It did not happen."""


def until(happened: Callable[[], object], *, within: float = 120) -> None:
    """Look until something has happened.

    Raises:
        NotInTime: It has not, within so many seconds.
    """
    end, pause = time.monotonic() + within, threading.Event()
    while not happened():
        if time.monotonic() > end:
            raise NotInTime(f"not within {within:g} s")
        pause.wait(_PAUSE)
