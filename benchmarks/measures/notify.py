"""Sixteen connections store a job a commit while the workers are busy, with the trigger that wakes sleepers and without."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.driving import Bench
from benchmarks.figures import Figure, Reading, Refused, ratio
from benchmarks.limits import SCRIPTS, pgbench
from benchmarks.measuring import Contest, Measure
from benchmarks.peers import SEMEL

BUSY = SEMEL.with_settings("semel-busy", job="sleeping", sleep="600", concurrency="4", grace="0.1")
CLIENTS = 16
HELD = 4


def contests(bench: Bench) -> Mapping[str, Contest]:
    each = bench.count(16_000, 800) // CLIENTS
    return {"on": lambda: inserts(bench, each, "ENABLE"), "off": lambda: inserts(bench, each, "DISABLE")}


def inserts(bench: Bench, each: int, how: str) -> Reading:
    """The worker's four places are taken by jobs that sleep."""
    bench.prepare(BUSY)
    with bench.cluster.connect(BUSY.name) as connection:
        connection.execute(b"ALTER TABLE semel.jobs %b TRIGGER jobs_stored" % how.encode())
    bench.call(BUSY, "many", HELD)
    with bench.working(BUSY, HELD) as (run, seen):
        run.until_all_ran(seen, lambda: HELD)
        found = pgbench(bench, SCRIPTS / "insert_semel.sql", CLIENTS, each, BUSY.name)
        run.check()
    stored = bench.cluster.ask("SELECT count(*) FROM semel.jobs WHERE kind = 'elsewhere'", BUSY.name)
    if stored != each * CLIENTS:
        raise Refused(f"pgbench stored {stored} jobs of {each * CLIENTS}")
    return found


MEASURE = Measure(
    "notify",
    "a job a commit on 16 connections, workers busy",
    "jobs/s",
    contests,
    (
        Figure(
            "enqueue on 16 connections, workers busy: notify on, against off", ratio("on", "off"), 0.95, 1.0
        ),
    ),
    {},
)
