"""A lone job, enqueued by another process while the worker is idle: until its handler starts."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, ratio
from benchmarks.measuring import Contest, Measure, each_of
from benchmarks.peers import GRAPHILE, GRAPHILE_DEFAULT, PGBOSS, PGQUEUER, PROCRASTINATE, SEMEL

PEERS = (SEMEL, GRAPHILE, GRAPHILE_DEFAULT, PGBOSS, PGQUEUER, PROCRASTINATE)


def contests(bench: Bench) -> Mapping[str, Contest]:
    return each_of(bench, PEERS, lambda peer: bench.pick_up(peer, bench.count(500, 20)))


MEASURE = Measure(
    "pickup",
    "from a lone job's commit to its handler's start: 500 jobs, one each 50 ms",
    "ms",
    contests,
    (
        Figure(
            "pick-up, median, against Graphile Worker tuned", ratio("semel", "graphile"), 1.0, 0.8, most=True
        ),
        Figure(
            "pick-up, p99, against Graphile Worker tuned",
            ratio("semel", "graphile", also="p99"),
            1.0,
            0.8,
            most=True,
        ),
        Figure(
            "pick-up, median, against Graphile Worker at its defaults", ratio("semel", "graphile-default")
        ),
        Figure(
            "pick-up, p99, against Graphile Worker at its defaults",
            ratio("semel", "graphile-default", also="p99"),
        ),
    ),
    {"p99": "p99", "most": "most", "called": "median from the call's beginning"},
)
