"""A claim of twenty jobs while ten thousand run elsewhere, against none: as a worker claims, which sweeps now and then."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, Reading, Refused, ratio
from benchmarks.measuring import Contest, Measure
from benchmarks.peers import SEMEL
from benchmarks.processes import Meter
from semel.core.settings import Settings
from semel.queue.worker.lanes import Lanes
from semel.sql import Catalogue
from semel.store.connect import connect
from semel.store.drivers.psycopg3 import PsycopgSession
from semel.store.marks import sweep
from semel.store.run import run
from semel.store.sleep import Serves

CLAIMS = 200
JOBS = 20
SWEEP = 0.25
"""Seconds from one sweep to the next, as in a worker that is at work."""


def contests(bench: Bench) -> Mapping[str, Contest]:
    return {
        "none": lambda: claims(bench, 0),
        "running": lambda: claims(bench, bench.count(10_000)),
    }


def claims(bench: Bench, running: int) -> Reading:
    """Milliseconds of one claim, its commit with it: the median. Sweeps are timed by themselves."""
    bench.prepare(SEMEL)
    if running:
        bench.cluster.lay(SEMEL.name, "lay_running", running)
    bench.call(SEMEL, "many", CLAIMS * JOBS)
    bench.cluster.settle_down(SEMEL.name)
    session = connect(bench.cluster.url(SEMEL.name), Catalogue("semel"), name="benchmark")
    meter = Meter()
    try:
        times, sweeps = timed_claims(session)
    finally:
        session.connection.close()
    return Reading(statistics.median(times), meter.read(), {"sweep": statistics.median(sweeps)})


def timed_claims(session: PsycopgSession) -> tuple[list[float], list[float]]:
    """Milliseconds of each claim and of each sweep, by a worker's own choice between the two kinds of claim."""
    lanes = Lanes(Serves(None))
    times: list[float] = []
    sweeps = [timed_sweep(lanes, session), timed_sweep(lanes, session)]  # it has been at work for a moment
    swept = time.monotonic()
    taken: set[int] = set()
    for _ in range(CLAIMS):
        if time.monotonic() > swept + SWEEP:
            sweeps.append(timed_sweep(lanes, session))
            swept = time.monotonic()
        began = time.monotonic()
        found = run(lanes.take(2, JOBS, Settings()), session)
        times.append((time.monotonic() - began) * 1_000)
        taken.update(job.id for job in found.taken)
    if len(taken) != CLAIMS * JOBS:
        raise Refused(f"{CLAIMS * JOBS} jobs were to be claimed, {len(taken)} were")
    return times, sweeps


def timed_sweep(lanes: Lanes, session: PsycopgSession) -> float:
    """Sweep as a worker does; answers the milliseconds it took."""
    began = time.monotonic()
    lanes.learn(run(sweep(lanes.serves), session))
    return (time.monotonic() - began) * 1_000


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
    {"sweep": "ms of a sweep"},
)
