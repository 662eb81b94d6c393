"""Forty workers of one child each on one database, against four. All are up and idle when the jobs become due, at once."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, ratio
from benchmarks.measuring import Contest, Measure
from benchmarks.peers import SEMEL


def contests(bench: Bench) -> Mapping[str, Contest]:
    count = bench.count(20_000)
    many = 40 if bench.scale >= 0.5 else 6
    return {
        "four": lambda: bench.drain_at_once(SEMEL, count, 4),
        "forty": lambda: bench.drain_at_once(SEMEL, count, many),
    }


MEASURE = Measure(
    "workers",
    "no-op async jobs, workers of one child each",
    "jobs/s",
    contests,
    (Figure("forty workers, against four", ratio("forty", "four"), 0.8, 1.0),),
    {"processor": "µs of processor a job"},
)
