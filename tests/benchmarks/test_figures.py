"""Ratios within a turn, medians over turns, verdicts."""

from __future__ import annotations

import pytest

from benchmarks.figures import Figure, Noise, Reading, Refused, judge, only, ratio


def turns(*pairs: tuple[float, float]) -> list[dict[str, Reading | Refused]]:
    return [{"semel": Reading(own, Noise(0.5)), "other": Reading(other)} for own, other in pairs]


def test_a_ratio_is_of_one_turn_and_the_median_counts() -> None:
    line = judge(Figure("x", ratio("semel", "other"), 1.2, 1.6), turns((200, 100), (100, 10), (150, 100)))
    assert line.turns == [2.0, 10.0, 1.5]
    assert (line.measured, line.verdict) == (2.0, "aim")
    assert line.noise.foreign == 0.25


def test_the_best_of_several_is_compared_with() -> None:
    turn = {"semel": Reading(100), "slow": Reading(10), "fast": Reading(50)}
    assert judge(Figure("x", ratio("semel", "slow", "fast", "absent")), [turn]).measured == 2.0


@pytest.mark.parametrize(("own", "verdict"), [(110, "SHORT"), (120, "enough"), (160, "aim")])
def test_verdicts(own: float, verdict: str) -> None:
    assert judge(Figure("x", ratio("semel", "other"), 1.2, 1.6), turns((own, 100))).verdict == verdict


@pytest.mark.parametrize(("own", "verdict"), [(31, "SHORT"), (30, "enough"), (18, "aim")])
def test_verdicts_of_what_should_be_small(own: float, verdict: str) -> None:
    assert judge(Figure("x", only("semel"), 30, 18, most=True), turns((own, 100))).verdict == verdict


def test_one_refusal_refuses_the_figure() -> None:
    measured = turns((200, 100), (200, 100))
    measured[1]["semel"] = Refused("of 9 jobs 1 never ran")
    line = judge(Figure("x", ratio("semel", "other"), 1.2, 1.6), measured)
    assert (line.measured, line.verdict) == (None, "refused: semel: of 9 jobs 1 never ran")


def test_a_figure_without_anybody_to_compare_with_is_not_measured() -> None:
    line = judge(Figure("x", ratio("semel", "absent"), 1.2, 1.6), turns((200, 100)))
    assert line.verdict == "not measured: nobody to compare with"
