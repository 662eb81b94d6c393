"""Statements of a worker that has nothing to do, as the server's log has them."""

from __future__ import annotations

import time
from collections.abc import Mapping

from benchmarks.driving import SETTLE, Bench
from benchmarks.figures import Figure, Reading, only
from benchmarks.measuring import Contest, Measure, each_of
from benchmarks.peers import GRAPHILE, SEMEL, Peer
from benchmarks.processes import Meter

SECONDS = 60.0
START = 30.0
"""Seconds after which a start is over, on a loaded machine too: it has statements of its own."""


def contests(bench: Bench) -> Mapping[str, Contest]:
    def a_minute(peer: Peer) -> Reading:
        seconds = max(5.0, SECONDS * bench.scale)
        bench.prepare(peer)
        bench.cluster.log_statements(peer.name)
        with bench.working(peer, 1) as (run, _):
            time.sleep(max(SETTLE, START * bench.scale))
            run.check()
            meter, before = Meter(), len(bench.cluster.logged())
            time.sleep(seconds)
            run.check()
            statements = len(bench.cluster.logged()) - before
            return Reading(statements * 60 / seconds, meter.read())

    return each_of(bench, (SEMEL, GRAPHILE), a_minute)


MEASURE = Measure(
    "idle",
    "statements of an idle worker, all its processes",
    "a minute",
    contests,
    (Figure("statements a minute of an idle worker", only("semel"), 15, 7, most=True, unit=""),),
    {},
)
