"""What a child has in memory after a million jobs."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, only
from benchmarks.measuring import Contest, Measure, each_of
from benchmarks.peers import SEMEL


def contests(bench: Bench) -> Mapping[str, Contest]:
    return each_of(bench, (SEMEL,), lambda peer: bench.drain(peer, bench.count(1_000_000)))


MEASURE = Measure(
    "memory",
    "a million jobs through one child",
    "jobs/s",
    contests,
    (
        Figure(
            "memory of a child after a million jobs, at most",
            only("semel", "megabytes"),
            80,
            55,
            most=True,
            unit="MB",
        ),
    ),
    {"megabytes": "MB at most"},
    turns=1,
)
