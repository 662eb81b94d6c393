"""WAL of a job's whole life, without the full page images, whose share is a matter of when a checkpoint was."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, Reading, only
from benchmarks.measuring import Contest, Measure, each_of
from benchmarks.peers import GRAPHILE, PGBOSS, PGQUEUER, SEMEL, Peer


def contests(bench: Bench) -> Mapping[str, Contest]:
    def bytes_a_job(peer: Peer) -> Reading:
        bench.cluster.set("full_page_writes", "off")
        try:
            found = bench.drain(peer, bench.count(20_000, 1_000))
        finally:
            bench.cluster.set("full_page_writes", "on")
        return Reading(found.also["wal"], found.noise)

    return each_of(bench, (SEMEL, GRAPHILE, PGBOSS, PGQUEUER), bytes_a_job)


MEASURE = Measure(
    "wal",
    "WAL from a job's insert to its end, full_page_writes off",
    "bytes a job",
    contests,
    (Figure("WAL a job, insert to done", only("semel"), 1_250, 1_000, most=True, unit="bytes"),),
    {},
)
