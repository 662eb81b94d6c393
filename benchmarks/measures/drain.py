"""No-op async jobs, drained by one worker process (semel: one child); beside it pgbench with the textbook statements."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, only, ratio
from benchmarks.limits import claim_in_batches
from benchmarks.measuring import Contest, Measure, each_of
from benchmarks.peers import DRAINED, PYTHON_PEERS


def contests(bench: Bench) -> Mapping[str, Contest]:
    found = each_of(bench, DRAINED, lambda peer: bench.drain(peer, bench.count(peer.drained)))
    return {**found, "pgbench": lambda: claim_in_batches(bench, bench.count(80_000, 8_000), clients=8)}


MEASURE = Measure(
    "drain",
    "no-op async jobs, one worker process",
    "jobs/s",
    contests,
    (
        Figure("drain, one child, against Graphile Worker tuned", ratio("semel", "graphile"), 1.2, 1.6),
        Figure("drain, one child, against the best Python peer", ratio("semel", *PYTHON_PEERS), 3, 5),
        Figure("drain, one child, against pgbench with the textbook statements", ratio("semel", "pgbench"), 0.7, 1.0),
        Figure("processor a job, whole worker", only("semel", "processor"), 30, 18, most=True, unit="µs"),
    ),
    {"wal": "WAL bytes a job", "processor": "worker µs a job", "server": "server µs a job", "megabytes": "MB at most"},
)  # fmt: skip
