"""Observe, decide, act, observe again: the loop that every sync and finalize runs.

The first look takes no lock, so that an idle sync writes nothing and waits for nobody. Once a
write is wanted the object's lock is taken and everything is read again: a write happens only
under the lock and on facts read under it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from hooks.core.decision import Act, Decision, Stuck, failed
from hooks.core.errors import EffectError, OutOfTime, Taken

A = TypeVar("A")
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[F, A]):
    """Where the loop ended.

    Attributes:
        facts: what was last observed.
        decision: what the gates say of it; its verdict may still be an Act when time ran out.
        busy: another call holds the lock: nothing was written and nothing is known.
        acted: writes that were made.
    """

    facts: F
    decision: Decision[A]
    busy: bool = False
    acted: int = 0


@dataclass(frozen=True, slots=True)
class Loop(Generic[F, A]):
    """The four parts of a reconciliation.

    Attributes:
        gather: reads the world; its argument says whether the lock is held.
        decide: judges what was read.
        act: performs one write, raising EffectError.
        lock: a context manager that says whether the lock was got; raises EffectError.
        on_effect: told of each write and its outcome ("ok" or an error's class name).
    """

    gather: Callable[[bool], F]
    decide: Callable[[F], Decision[A]]
    act: Callable[[A, F], None]
    lock: Callable[[], AbstractContextManager[bool]]
    on_effect: Callable[[A, str], None]


def converge(loop: Loop[F, A]) -> Outcome[F, A]:
    """Run the loop until nothing is wanted, a write fails, repeats, or time is spent."""
    facts = loop.gather(False)  # noqa: FBT003  the parameter's name is on Loop.gather
    decision = loop.decide(facts)
    if decision.action is None:
        return Outcome(facts, decision)
    try:
        with loop.lock() as held:
            if not held:
                return Outcome(facts, decision, busy=True)
            return _under_lock(loop)
    except EffectError as error:
        return Outcome(facts, _failed(decision, error))


def _under_lock(loop: Loop[F, A]) -> Outcome[F, A]:
    done: list[A] = []
    while True:
        facts = loop.gather(True)  # noqa: FBT003  the parameter's name is on Loop.gather
        decision = loop.decide(facts)
        action = decision.action
        if action is None:
            return Outcome(facts, decision, acted=len(done))
        if action in done:
            return Outcome(facts, _repeated(decision), acted=len(done))
        try:
            loop.act(action, facts)
        except OutOfTime:
            return Outcome(facts, decision, acted=len(done))
        except EffectError as error:
            loop.on_effect(action, type(error).__name__)
            if isinstance(error, Taken):
                done.append(action)
                continue  # somebody was first: read again and judge who
            return Outcome(facts, _failed(decision, error), acted=len(done))
        loop.on_effect(action, "ok")
        done.append(action)


def _failed(decision: Decision[A], error: EffectError) -> Decision[A]:
    verdict = decision.verdict
    if not isinstance(verdict, Act):
        return decision
    return replace(decision, verdict=failed(error, reason=verdict.reason, message=verdict.message))


def _repeated(decision: Decision[A]) -> Decision[A]:
    verdict = decision.verdict
    if not isinstance(verdict, Act):
        return decision
    return replace(decision, verdict=Stuck(verdict.reason, verdict.message))
