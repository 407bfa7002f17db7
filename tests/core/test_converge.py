"""The loop: when it looks, writes, stops, and what it then says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pytest

from hooks.core.converge import Loop, Outcome, converge
from hooks.core.decision import Act, Decision, Gate, Met, Stuck, Verdict, Wait, decide
from hooks.core.errors import (
    Blocked,
    EffectError,
    Misconfigured,
    OutOfTime,
    Taken,
    Unavailable,
)

STEPS = ("row", "role", "database")


@dataclass
class World:
    """A world of three things to make, and what may go wrong while they are made."""

    made: list[str] = field(default_factory=list)
    free: bool = True
    faults: dict[str, Callable[[], None]] = field(default_factory=dict)
    effects: list[tuple[str, str]] = field(default_factory=list)
    looks: list[bool] = field(default_factory=list)
    lasting: bool = True

    def run(self) -> Outcome[tuple[str, ...], str]:
        return converge(
            Loop(
                gather=self.gather,
                decide=lambda facts: decide(GATES, facts),
                act=self.act,
                lock=self.lock,
                on_effect=lambda action, outcome: self.effects.append((action, outcome)),
            )
        )

    def gather(self, locked: bool) -> tuple[str, ...]:  # noqa: FBT001  Loop.gather's shape
        self.looks.append(locked)
        return tuple(self.made)

    def act(self, action: str, _facts: tuple[str, ...]) -> None:
        if action in self.faults:
            self.faults.pop(action)()
        if self.lasting:
            self.made.append(action)

    @contextmanager
    def lock(self) -> Iterator[bool]:
        yield self.free


def gate(step: str) -> Gate[tuple[str, ...], str]:
    def judge(facts: tuple[str, ...]) -> Verdict[str]:
        return Met() if step in facts else Act(step, "ProvisioningFailed", f"making {step}")

    return Gate(step, judge, phase=step.title())


GATES = tuple(gate(step) for step in STEPS)


def fail(error: EffectError) -> Callable[[], None]:
    def raise_it() -> None:
        raise error

    return raise_it


def test_a_finished_world_is_looked_at_once_without_the_lock() -> None:
    world = World(made=list(STEPS))
    assert world.run() == Outcome(STEPS, Decision("Database", "", Met()))
    assert world.looks == [False]


def test_each_write_is_made_under_the_lock_on_facts_read_under_it() -> None:
    world = World()
    outcome = world.run()
    assert outcome == Outcome(STEPS, Decision("Database", "", Met()), acted=3)
    assert world.looks == [False, True, True, True, True]
    assert world.effects == [("row", "ok"), ("role", "ok"), ("database", "ok")]


def test_nothing_is_written_while_another_call_holds_the_lock() -> None:
    world = World(free=False)
    outcome = world.run()
    assert (outcome.busy, world.made) == (True, [])


def test_a_write_that_fails_ends_the_loop_with_its_reason() -> None:
    world = World(faults={"role": fail(Unavailable("PostgreSQL", "timed out"))})
    assert world.run().decision == Decision(
        "Row",
        "role",
        Wait("DependencyUnavailable", "making role: PostgreSQL: timed out"),
    )
    assert world.effects == [("row", "ok"), ("role", "Unavailable")]


def test_a_write_that_is_refused_keeps_the_reason_of_its_gate() -> None:
    world = World(faults={"role": fail(Blocked("PostgreSQL", "it is in use", code="55006"))})
    assert world.run().decision.verdict == Wait(
        "ProvisioningFailed", "making role: PostgreSQL: it is in use (55006)"
    )


def test_a_write_that_changes_nothing_is_not_made_twice() -> None:
    world = World(lasting=False)
    assert world.run().decision.verdict == Stuck("ProvisioningFailed", "making row")
    assert world.effects == [("row", "ok")]


def test_a_lost_race_is_judged_after_reading_again() -> None:
    world = World()

    def somebody_else_did() -> None:
        world.made.append("role")
        raise Taken("PostgreSQL", "the role exists")

    world.faults["role"] = somebody_else_did
    assert world.run().decision == Decision("Database", "", Met())
    assert world.made == list(STEPS)


def test_a_race_that_is_lost_again_and_again_ends() -> None:
    world = World()
    world.lasting = False
    world.faults["row"] = fail(Taken("PostgreSQL", "the row exists"))
    assert world.run().decision.verdict == Stuck("ProvisioningFailed", "making row")


def test_spent_time_leaves_the_work_in_flight() -> None:
    world = World(faults={"role": fail(OutOfTime("PostgreSQL", "not asked"))})
    assert world.run().decision.verdict == Act("role", "ProvisioningFailed", "making role")


def test_a_deployment_fault_needs_a_person() -> None:
    world = World(faults={"row": fail(Misconfigured("OpenBao", "no such mount"))})
    decision = world.run().decision
    assert decision.verdict == Stuck("ProvisioningFailed", "making row: OpenBao: no such mount")
    assert decision.cap == 300


def test_a_lock_that_cannot_be_asked_for_is_a_failure() -> None:
    world = World()

    def broken() -> AbstractContextManager[bool]:
        raise Unavailable("PostgreSQL", "the connection is gone")

    outcome = converge(
        Loop(
            gather=world.gather,
            decide=lambda facts: decide(GATES, facts),
            act=world.act,
            lock=broken,
            on_effect=lambda _action, _outcome: None,
        )
    )
    assert outcome.decision.verdict == Wait(
        "DependencyUnavailable", "making row: PostgreSQL: the connection is gone"
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(
            Unavailable("OpenBao", "sealed", retry_after=7),
            Wait("DependencyUnavailable", "OpenBao: sealed", unread=True, recheck=7),
            id="unavailable",
        ),
        pytest.param(
            OutOfTime("OpenBao", "not asked"),
            Wait("Reconciling", "OpenBao: not asked", unread=True),
            id="out-of-time",
        ),
    ],
)
def test_a_failed_read_is_waited_on(error: EffectError, expected: Wait) -> None:
    assert Wait.on(error) == expected
