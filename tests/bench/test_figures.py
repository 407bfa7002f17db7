"""The arithmetic of the bench: what is printed has to be what was measured."""

from __future__ import annotations

import pytest

from bench.figures import Figure, Series, compared, in_turn, percentiles, table


def test_actions_run_in_turn_and_every_second_turn_runs_back() -> None:
    order: list[str] = []

    def action(name: str, seconds: float) -> float:
        order.append(name)
        return seconds

    found = in_turn(3, lambda: action("a", 1.0), lambda: action("b", 2.0))

    assert order == ["a", "b", "b", "a", "a", "b"]
    assert found == [Series([1.0, 1.0, 1.0]), Series([2.0, 2.0, 2.0])]


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        pytest.param(0.5, 51.0, id="middle"),
        pytest.param(0.99, 100.0, id="slowest-hundredth"),
        pytest.param(1.0, 100.0, id="slowest"),
    ],
)
def test_a_percentile_is_one_of_the_measured_times(share: float, expected: float) -> None:
    assert Series([float(100 - n) for n in range(100)]).percentile(share) == expected


@pytest.mark.parametrize(
    ("most", "verdict"),
    [
        pytest.param(2.0, ("<= 2x", True), id="met"),
        pytest.param(1.25, ("<= 1.25x", False), id="missed"),
        pytest.param(None, ("", None), id="no-target"),
    ],
)
def test_a_comparison_divides_the_medians(
    most: float | None, verdict: tuple[str, bool | None]
) -> None:
    figure = compared("sync", Series([0.25, 0.75, 1.5]), Series([0.5]), most)

    assert figure == Figure("sync", "750 ms (250 to 1500, n=3)", "500 ms", 1.5, *verdict)


def test_the_slowest_hundredth_decides_whether_a_latency_is_met() -> None:
    measured = Series([0.001] * 98 + [0.006] * 2)

    figure = percentiles("customize", measured, Series([0.001]), 5.0)

    assert (figure.target, figure.met) == ("p99 < 5 ms", False)


def test_the_table_is_markdown() -> None:
    figures = [Figure("a", "1", "2", 0.5, "<= 1x", met=True), Figure("b", "3", met=False)]

    assert table(figures).splitlines() == [
        "| what | measured: median (min to max) | bare | ratio | target | met |",
        "| --- | --- | --- | --- | --- | --- |",
        "| a | 1 | 2 | 0.50 | <= 1x | yes |",
        "| b | 3 |  |  |  | **no** |",
    ]
