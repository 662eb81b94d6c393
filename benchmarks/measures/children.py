"""The same drain by two children of one worker, against one. All are up before the jobs are due: none starts alone."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, ratio
from benchmarks.measuring import Contest, Measure, each_of
from benchmarks.peers import SEMEL

TWO = SEMEL.with_settings("semel-two", children="2")


def contests(bench: Bench) -> Mapping[str, Contest]:
    return each_of(bench, (SEMEL, TWO), lambda peer: bench.drain_at_once(peer, bench.count(peer.drained)))


MEASURE = Measure(
    "children",
    "no-op async jobs, two children against one",
    "jobs/s",
    contests,
    (Figure("two children against one", ratio("semel-two", "semel"), 1.0, 1.2),),
    {"processor": "µs of processor a job"},
)
