"""Sync handlers on eight threads of one process, against Dramatiq on Redis."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, ratio
from benchmarks.measuring import Contest, Measure, each_of
from benchmarks.peers import DRAMATIQ, SEMEL

ON_THREADS = SEMEL.with_settings("semel-threads", job="on_thread", concurrency="8")
COUNT = 20_000


def contests(bench: Bench) -> Mapping[str, Contest]:
    return each_of(bench, (ON_THREADS, DRAMATIQ), lambda peer: bench.drain(peer, bench.count(COUNT)))


MEASURE = Measure(
    "threads",
    "no-op sync jobs, one process, eight threads",
    "jobs/s",
    contests,
    (
        Figure(
            "sync handlers on threads, against Dramatiq on Redis", ratio("semel-threads", "dramatiq"), 3, 6
        ),
    ),
    {"processor": "µs of processor a job", "megabytes": "MB at most"},
)
