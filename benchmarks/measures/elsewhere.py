"""A claim of twenty jobs while ten thousand run elsewhere, against none."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from datetime import timedelta

from benchmarks.driving import Bench
from benchmarks.figures import Figure, Reading, Refused, ratio
from benchmarks.measuring import Contest, Measure
from benchmarks.peers import SEMEL
from benchmarks.processes import Meter
from semel.sql import Catalogue
from semel.store.connect import connect
from semel.store.jobs import claim
from semel.store.run import run

CLAIMS = 200
JOBS = 20


def contests(bench: Bench) -> Mapping[str, Contest]:
    return {
        "none": lambda: claims(bench, 0),
        "running": lambda: claims(bench, bench.count(10_000)),
    }


def claims(bench: Bench, running: int) -> Reading:
    """Milliseconds of one claim, its commit with it: the median."""
    bench.prepare(SEMEL)
    if running:
        bench.cluster.lay(SEMEL.name, "lay_running", running)
    bench.call(SEMEL, "many", CLAIMS * JOBS)
    bench.cluster.settle_down(SEMEL.name)
    session = connect(bench.cluster.url(SEMEL.name), Catalogue("semel"), name="benchmark")
    meter = Meter()
    times: list[float] = []
    taken: set[int] = set()
    for _ in range(CLAIMS):
        operation = claim(worker=2, limit=JOBS, lease=timedelta(minutes=5), max_crashes=3, queues=None)
        began = time.monotonic()
        found = run(operation, session)
        times.append((time.monotonic() - began) * 1_000)
        taken.update(job.id for job in found.taken)
    session.connection.close()
    if len(taken) != CLAIMS * JOBS:
        raise Refused(f"{CLAIMS * JOBS} jobs were to be claimed, {len(taken)} were")
    return Reading(statistics.median(times), meter.read())


MEASURE = Measure(
    "elsewhere",
    "a claim of 20 jobs while 10,000 run elsewhere",
    "ms",
    contests,
    (
        Figure(
            "a claim while 10,000 run elsewhere, against none", ratio("running", "none"), 2, 1.2, most=True
        ),
    ),
    {},
)
