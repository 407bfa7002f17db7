"""Series of measured seconds, taken in turn, and the table that shows them.

What is compared runs in turn (A, B, A, B ...) and the medians are divided, so that a machine that
slows down for a while slows both sides. Nothing here judges by exit code: a figure is shown beside
its target, and that is all.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

MILLI = 1000.0


@dataclass(slots=True)
class Series:
    """Seconds that one thing took, each time."""

    seconds: list[float] = field(default_factory=list)

    def add(self, seconds: float) -> None:
        """Take note of one more time."""
        self.seconds.append(seconds)

    @property
    def median(self) -> float:
        """Return the median in seconds."""
        return statistics.median(self.seconds)

    def percentile(self, share: float) -> float:
        """Return the smallest time that so large a share of all does not exceed."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    def __str__(self) -> str:
        least, most = min(self.seconds), max(self.seconds)
        if least == most:
            return f"{_ms(most)} ms"
        return f"{_ms(self.median)} ms ({_ms(least)} to {_ms(most)}, n={len(self.seconds)})"


def _ms(seconds: float) -> str:
    return f"{seconds * MILLI:.{2 if seconds < 0.1 else 0}f}"  # noqa: PLR2004  100 ms


def timed(action: Callable[[], object]) -> float:
    """Return how many seconds a call takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def in_turn(times: int, *actions: Callable[[], float]) -> list[Series]:
    """Run actions in turn; each says how many seconds of it count. Every second turn runs back."""
    found = [Series() for _ in actions]
    for turn in range(times):
        order = list(zip(actions, found, strict=True))
        for action, series in order if turn % 2 == 0 else reversed(order):
            series.add(action())
    return found


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    Attributes:
        met: whether the target is met; None for a line without a target.
    """

    what: str
    measured: str
    bare: str = ""
    ratio: float | None = None
    target: str = ""
    met: bool | None = None


def compared(what: str, measured: Series, bare: Series, most: float | None) -> Figure:
    """Return a line that compares two series, with the ratio that the target allows at most."""
    ratio = measured.median / bare.median
    if most is None:
        return Figure(what, str(measured), str(bare), ratio)
    return Figure(what, str(measured), str(bare), ratio, f"<= {most:g}x", ratio <= most)


def percentiles(what: str, measured: Series, bare: Series, below_ms: float) -> Figure:
    """Return a line about the slowest hundredth."""
    shown = [
        f"p50 {_ms(series.percentile(0.5))}, p99 {_ms(series.percentile(0.99))} ms"
        f" (max {_ms(max(series.seconds))}, n={len(series.seconds)})"
        for series in (measured, bare)
    ]
    ratio = measured.median / bare.median
    met = measured.percentile(0.99) * MILLI < below_ms
    return Figure(what, shown[0], shown[1], ratio, f"p99 < {below_ms:g} ms", met)


def table(figures: Sequence[Figure]) -> str:
    """Return all lines as Markdown."""
    head = ("what", "measured: median (min to max)", "bare", "ratio", "target", "met")
    lines = [head, tuple("---" for _ in head)]
    for figure in figures:
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        met = {None: "", True: "yes", False: "**no**"}[figure.met]
        lines.append((figure.what, figure.measured, figure.bare, ratio, figure.target, met))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
