"""Jobs that sleep 10 ms, 200 at once: ideally 20,000 a second."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, only
from benchmarks.measuring import Contest, Measure, each_of
from benchmarks.peers import SEMEL

SLEEPING = SEMEL.with_settings("semel-sleeping", job="sleeping", concurrency="200")
IDEAL = 200 / 0.010


def contests(bench: Bench) -> Mapping[str, Contest]:
    return each_of(bench, (SLEEPING,), lambda peer: bench.drain(peer, bench.count(60_000)))


MEASURE = Measure(
    "sleeping",
    "jobs that sleep 10 ms, 200 at once",
    "jobs/s",
    contests,
    (
        Figure(
            "jobs that sleep 10 ms, 200 at once: share of the ideal",
            only("semel-sleeping", divide=IDEAL),
            0.6,
            0.85,
            unit="",
        ),
    ),
    {"processor": "µs of processor a job"},
)
