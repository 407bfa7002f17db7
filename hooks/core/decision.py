"""Decide what to do next: an ordered list of gates over one set of facts.

A gate judges facts and nothing else. The first gate that is not met says what is wrong and, at
most, one action. Deciding is pure; `converge` acts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from hooks.core.conditions import HEALS_ITSELF, NEEDS_A_PERSON, RECONCILING
from hooks.core.errors import EffectError, Misconfigured, OutOfTime, Unavailable

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Met:
    """The gate is open."""


@dataclass(frozen=True, slots=True)
class Act(Generic[A_co]):
    """One write would bring this gate nearer.

    Attributes:
        action: the write, as data without secrets.
        reason: the condition reason, should the action not help.
        message: what is not yet true.
    """

    action: A_co
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do here now; it may heal by itself.

    Attributes:
        reason: the condition reason.
        message: what we wait for and what to do, for people.
        unread: the facts could not be read, so nothing is known to have changed.
        recheck: seconds after which to look again, or None for the usual back-off.
    """

    reason: str
    message: str
    unread: bool = False
    recheck: float | None = None

    @classmethod
    def on(cls, error: EffectError, *, reason: str | None = None, subject: str = "") -> Wait:
        """Wait for a read that failed."""
        text = f"{subject}: {error}" if subject else str(error)
        if isinstance(error, OutOfTime):
            return cls(RECONCILING, text, unread=True)
        return cls(reason or error.reason, text, unread=True, recheck=error.retry_after)


@dataclass(frozen=True, slots=True)
class Stuck:
    """Somebody must change something first."""

    reason: str
    message: str


Verdict = Met | Act[A] | Wait | Stuck


@dataclass(frozen=True, slots=True)
class Gate(Generic[F, A]):
    """One thing that must be true.

    Attributes:
        name: adjective or past tense, as a condition type would be.
        judge: facts in, verdict out; pure.
        phase: the phase that is reached when it is met; empty when it marks none.
        reasons: the failures it can report.
    """

    name: str
    judge: Callable[[F], Verdict[A]]
    phase: str = ""
    reasons: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Decision(Generic[A_co]):
    """What the gates say together.

    Attributes:
        phase: the phase of the last gate that was met; empty when none was.
        gate: the name of the first unmet gate; empty when all are met.
        verdict: its verdict, or Met.
        reasons: the failures that the unmet gate can report.
    """

    phase: str
    gate: str
    verdict: Verdict[A_co]
    reasons: frozenset[str] = frozenset()

    @property
    def action(self) -> A_co | None:
        """Return the write that is wanted, if any."""
        return self.verdict.action if isinstance(self.verdict, Act) else None

    @property
    def cap(self) -> float:
        """Return the longest time between two looks, in seconds."""
        return NEEDS_A_PERSON if isinstance(self.verdict, Stuck) else HEALS_ITSELF


def decide(gates: Sequence[Gate[F, A]], facts: F) -> Decision[A]:
    """Walk the gates and stop at the first that is not met."""
    phase = ""
    for gate in gates:
        verdict = gate.judge(facts)
        if not isinstance(verdict, Met):
            return Decision(phase, gate.name, verdict, gate.reasons)
        phase = gate.phase or phase
    return Decision(phase, "", Met())


def failed(error: EffectError, *, reason: str, message: str) -> Wait | Stuck:
    """Turn a write that failed into a verdict.

    Args:
        error: what the write raised; a peer that nobody reaches is that, whatever was asked.
        reason: the condition reason of every other error; empty for the error's own.
        message: what is not yet true.
    """
    text = f"{message}: {error}"
    if isinstance(error, OutOfTime):
        return Wait(RECONCILING, text)
    if isinstance(error, Unavailable):
        reason = error.reason
    reason = reason or error.reason
    if isinstance(error, Misconfigured):
        return Stuck(reason, text)
    return Wait(reason, text, recheck=error.retry_after)
