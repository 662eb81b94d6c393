"""The drain again, over five million finished jobs and a million that are due tomorrow, of a higher priority."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, Reading, ratio
from benchmarks.measuring import Contest, Measure
from benchmarks.peers import SEMEL

FULL = dataclasses.replace(
    SEMEL,
    name="semel-full",
    remaining="SELECT count(*) FROM semel.jobs WHERE live AND queue = 'default' AND priority = 0 AND run_at <= now()",
    finished="SELECT count(*) FROM semel.jobs_done WHERE status = 'done' AND kind = 'nothing'",
)


def contests(bench: Bench) -> Mapping[str, Contest]:
    laid: set[str] = set()
    count = bench.count(SEMEL.drained)

    def full() -> Reading:
        """Laid once: the repetitions go on top of one another."""
        if FULL.name not in laid:
            bench.prepare(FULL)
            bench.cluster.lay(FULL.name, "lay_finished", bench.count(5_000_000))
            bench.cluster.lay(FULL.name, "lay_future", bench.count(1_000_000))
            laid.add(FULL.name)
        return bench.drain(FULL, count, fresh=False)

    return {"semel": lambda: bench.drain(SEMEL, count), FULL.name: full}


MEASURE = Measure(
    "full",
    "no-op async jobs over 5,000,000 finished ones and 1,000,000 that are due tomorrow",
    "jobs/s",
    contests,
    (
        Figure(
            "drain over 5 M finished and 1 M future jobs, against empty tables",
            ratio("semel-full", "semel"),
            0.9,
            1.0,
        ),
    ),
    {"processor": "µs of processor a job"},
)
