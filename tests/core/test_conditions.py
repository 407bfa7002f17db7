"""When a condition's time, generation and verdict move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hooks.core.conditions import Condition, backoff, settle
from hooks.core.manifests import Manifest

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def written(status: str, reason: str = "Ready", **extra: object) -> Manifest:
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": "before",
        "lastTransitionTime": "2026-03-01T10:00:00Z",
        "observedGeneration": 1,
        **extra,
    }


def test_nothing_new_writes_the_same_bytes() -> None:
    before = written("True")
    same = Condition("Ready", "True", "Ready", "before")
    assert settle([before], [same], generation=1, now=NOW) == [before]


def test_the_time_moves_only_when_the_status_flips() -> None:
    other = Condition("Ready", "False", "Conflict", "new")
    assert settle([written("False", "InvalidSpec")], [other], generation=2, now=NOW) == [
        written("False", "Conflict", message="new", observedGeneration=2)
    ]
    assert settle([written("True")], [other], generation=2, now=NOW) == [
        written(
            "False",
            "Conflict",
            message="new",
            observedGeneration=2,
            lastTransitionTime="2026-03-01T12:00:00Z",
        )
    ]


def test_an_inconclusive_look_carries_the_last_judged_generation_on() -> None:
    working = Condition("Ready", "Unknown", "Reconciling", "working")
    settled = settle([written("Unknown", "Reconciling")], [working], generation=5, now=NOW)
    assert settled == [written("Unknown", "Reconciling", message="working")]


def test_the_first_inconclusive_look_has_no_generation() -> None:
    working = Condition("Ready", "Unknown", "Reconciling", "working")
    (settled,) = settle([], [working], generation=5, now=NOW)
    assert "observedGeneration" not in settled
    assert settled["lastTransitionTime"] == "2026-03-01T12:00:00Z"


@pytest.mark.parametrize(
    ("before", "reasons", "expected"),
    [
        pytest.param(
            written("False", "ProvisioningFailed"),
            {"ProvisioningFailed"},
            Condition("Ready", "False", "ProvisioningFailed", "before", judged=False),
            id="same-gate-still-failing",
        ),
        pytest.param(
            written("False", "InvalidSpec"),
            {"ProvisioningFailed"},
            Condition("Ready", "Unknown", "Reconciling", "working"),
            id="a-further-gate",
        ),
        pytest.param(
            written("True"),
            {"ProvisioningFailed"},
            Condition("Ready", "Unknown", "Reconciling", "working"),
            id="was-ready",
        ),
    ],
)
def test_work_in_flight_keeps_a_failure_of_the_same_gate(
    before: Manifest, reasons: set[str], expected: Condition
) -> None:
    working = Condition("Ready", "Unknown", "Reconciling", "working")
    assert working.or_still(before, frozenset(reasons)) == expected


@pytest.mark.parametrize(
    ("lasted", "cap", "expected"),
    [(0, 60, 2), (1, 60, 2), (30, 60, 30), (3600, 60, 60), (3600, 300, 300)],
)
def test_the_delay_is_as_long_as_the_condition_has_lasted(
    lasted: int, cap: float, expected: float
) -> None:
    now = datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC) + timedelta(seconds=lasted)
    assert backoff(written("False"), now=now, cap=cap) == expected
