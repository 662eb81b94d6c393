"""Jobs stored one a commit, on one connection; pgbench's INSERT beside it."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, ratio
from benchmarks.limits import insert_one
from benchmarks.measuring import Contest, Measure, each_of
from benchmarks.peers import AWA, DRAMATIQ, GRAPHILE, PGBOSS, PGQUEUER, PROCRASTINATE, SEMEL

PEERS = (SEMEL, GRAPHILE, PGBOSS, PGQUEUER, PROCRASTINATE, AWA, DRAMATIQ)


def contests(bench: Bench) -> Mapping[str, Contest]:
    count = bench.count(2_000)
    found = each_of(bench, PEERS, lambda peer: bench.enqueue(peer, "one", count))
    return {**found, "pgbench": lambda: insert_one(bench, count)}


MEASURE = Measure(
    "enqueue",
    "enqueued one a commit, one connection",
    "jobs/s",
    contests,
    (Figure("enqueue one a commit, against pgbench's INSERT", ratio("semel", "pgbench"), 0.75, 0.9),),
    {},
)
