"""Every measure: who takes part, and that its figures are of those."""

from __future__ import annotations

import pytest

from benchmarks.catalogue import MEASURES
from benchmarks.driving import Bench
from benchmarks.figures import Reading, judge
from benchmarks.peers import SEMEL


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_needs_semel_alone_and_judges_who_takes_part(bench: Bench, name: str) -> None:
    measure = MEASURES[name]
    contests = measure.contests(bench)
    assert contests
    assert not {"graphile", "pgqueuer", "dramatiq"} & set(contests)  # left out here
    turn = {each: Reading(1.0, also=dict.fromkeys(measure.also, 1.0)) for each in contests}
    for figure in measure.figures:
        assert judge(figure, [turn]).verdict in {
            "aim",
            "enough",
            "SHORT",
            "",
            "not measured: nobody to compare with",
        }


def test_jobs_are_enqueued_one_by_one_and_many_at_once(bench: Bench) -> None:
    assert bench.enqueue(SEMEL, "one", 30).value > 0
    assert bench.enqueue(SEMEL, "many", 2_000).value > 0


def test_a_lone_job_is_picked_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.driving.SETTLE", 1.0)
    found = bench.pick_up(SEMEL, 10)
    assert found.value <= found.also["p99"] <= found.also["most"]
    assert max(0.0, found.value) < found.also["called"]
