"""Jobs stored by the thousand, by each queue's bulk call; a bare COPY from Python beside it."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, ratio
from benchmarks.limits import copy_in_batches
from benchmarks.measuring import Contest, Measure, each_of
from benchmarks.peers import AWA, GRAPHILE, PGBOSS, PGQUEUER, PROCRASTINATE, SEMEL


def contests(bench: Bench) -> Mapping[str, Contest]:
    count = bench.count(50_000, 1_000)
    peers = (SEMEL, GRAPHILE, PGBOSS, PGQUEUER, PROCRASTINATE, AWA)
    found = each_of(bench, peers, lambda peer: bench.enqueue(peer, "many", count))
    return {**found, "copy": lambda: copy_in_batches(bench, count)}


MEASURE = Measure(
    "bulk",
    "enqueued a thousand a call, one connection",
    "jobs/s",
    contests,
    (Figure("bulk enqueue, against a bare COPY from Python", ratio("semel", "copy"), 0.6, 0.85),),
    {},
)
