"""A snapshot held from before: claims after 600,000 jobs against those at the start, and the pace of a drain under it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from benchmarks.driving import SETTLE, Bench
from benchmarks.figures import Figure, Reading, Refused, only
from benchmarks.measuring import Contest, Measure
from benchmarks.peers import SEMEL
from benchmarks.processes import Meter

A_SECOND = 500
SECONDS = 60
LOGGED = re.compile(
    r"\[(\d+)\] LOG:  duration: ([\d.]+) ms  (parse|bind|execute) [^:]*: /\* semel queue/claim(?:_marked)? \*/"
)


def contests(bench: Bench) -> Mapping[str, Contest]:
    return {
        "claims": lambda: claims(bench, bench.count(600_000, 1_000)),
        "drain": lambda: drain(bench, bench.count(200_000, 1_000)),
    }


def claims(bench: Bench, burnt: int) -> Reading:
    """The p99 of a claim in milliseconds, after; and against that of a minute at the start."""
    bench.prepare(SEMEL)
    with bench.cluster.held_snapshot(SEMEL.name):
        meter = Meter()
        before = p99(bench)
        bench.call(SEMEL, "many", burnt)
        bench.burn(SEMEL, burnt)
        after = p99(bench)
        return Reading(after, meter.read(), {"before": before, "grown": after / before})


def p99(bench: Bench) -> float:
    """A minute at 500 jobs a second; parsing, planning and executing, by the server's log."""
    count = bench.count(A_SECOND * SECONDS, 500)
    bench.cluster.log_statements(SEMEL.name)
    with bench.counting(SEMEL) as remaining, bench.working(SEMEL, count) as (run, seen):
        time.sleep(SETTLE)
        seen_before = len(bench.cluster.log.read_bytes())
        bench.call(SEMEL, "fed", count, A_SECOND)
        run.until_all_ran(seen, remaining)
        run.stop()
        seen.check()
    bench.cluster.log_statements(SEMEL.name, on=False)
    times = sorted(durations(bench.cluster.log.read_bytes()[seen_before:].decode(errors="replace")))
    if not times:
        raise Refused("the server's log has no claim")
    return times[int(len(times) * 0.99)]


def durations(log: str) -> list[float]:
    """Of each claim, its parts added up."""
    found: list[float] = []
    open_parts: dict[str, float] = {}
    for process, duration, part in LOGGED.findall(log):
        open_parts[process] = open_parts.get(process, 0.0) + float(duration)
        if part == "execute":
            found.append(open_parts.pop(process))
    return found


def drain(bench: Bench, count: int) -> Reading:
    """The last fifth of its jobs, against the first."""
    bench.prepare(SEMEL)
    with bench.cluster.held_snapshot(SEMEL.name):
        return bench.drain(SEMEL, count, fresh=False)


MEASURE = Measure(
    "snapshot",
    "a snapshot held from before: p99 of claims (ms) after 600,000 jobs; a drain of 200,000 (jobs/s)",
    "ms, jobs/s",
    contests,
    (
        Figure(
            "held snapshot: p99 of claims after 600,000 jobs, against before",
            only("claims", "grown"),
            2,
            1.2,
            most=True,
        ),
        Figure(
            "held snapshot: last fifth of a drain of 200,000, against the first",
            only("drain", "fifths"),
            0.85,
            0.97,
        ),
    ),
    {"before": "p99 at the start", "grown": "after / before", "fifths": "last fifth / first"},
    turns=1,
)
