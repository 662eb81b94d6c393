"""What is done with every queue alike: enqueue, drain, pick up. semel is one of them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from benchmarks.cluster import Cluster, sql
from benchmarks.figures import Reading, Refused
from benchmarks.installing import ROOT, Environments
from benchmarks.peers import Peer
from benchmarks.processes import Meter, started
from benchmarks.running import LIMIT, Run
from benchmarks.seen import Seen

LOOK = 0.01
SLEEPING = "SELECT count(*) FROM semel.sleepers WHERE until > now()"
WARM_UP = 1_000
"""Jobs a child that are run beforehand where children wait for what is measured."""
SETTLE = 4.0
"""Seconds that a worker has before it counts as idle."""


@dataclass(frozen=True)
class Bench:
    """What a measure works with."""

    cluster: Cluster
    redis: str | None
    environments: Environments
    scale: float
    left_out: dict[str, str]
    """Peers that cannot take part, and why."""
    patience: float = 0.0
    """Seconds to wait for a quiet machine before each reading."""

    def count(self, full: int, least: int = 200) -> int:
        """So many, made smaller by the scale; whole hundreds."""
        return max(least, round(full * self.scale / 100) * 100)

    def takes_part(self, peer: Peer) -> bool:
        return (peer.installation or "semel") not in self.left_out and not (
            peer.on_redis and self.redis is None
        )

    # -- programs ------------------------------------------------------------------------------------------------

    def prepare(self, peer: Peer) -> None:
        """An empty database with the queue's own tables."""
        if not peer.on_redis:
            self.cluster.fresh(peer.name)
        self.call(peer, "setup")

    def call(self, peer: Peer, *words: object) -> dict[str, Any]:
        """Run a queue's program to its end; its answer."""
        command = [*self.environments.command(peer.installation, peer.program), *map(str, words)]
        done = subprocess.run(
            command,
            env=self.environment(peer),
            capture_output=True,
            text=True,
            timeout=2 * LIMIT,
            check=False,
        )
        if done.returncode:
            raise Refused(f"{' '.join(map(str, words))} failed: {done.stderr.strip()[-800:]}")
        return dict(json.loads(done.stdout)) if done.stdout.strip() else {}

    def environment(self, peer: Peer, marks: Path | None = None, jobs: int = 0) -> dict[str, str]:
        settings = {f"BENCHMARK_{name.upper()}": value for name, value in peer.settings.items()}
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "BENCHMARK_URL": self.cluster.url(peer.name),
            "BENCHMARK_REDIS": self.redis or "",
            "BENCHMARK_MARKS": str(marks),
            "BENCHMARK_JOBS": str(jobs),
            **settings,
        }

    @contextmanager
    def working(self, peer: Peer, jobs: int, workers: int = 1) -> Iterator[tuple[Run, Seen]]:
        """Workers, and what their handlers note."""
        if peer.worker:
            name, *words = peer.worker
            command = [str(self.environments.program(str(peer.installation), name)), *words]
        else:
            command = [*self.environments.command(peer.installation, peer.program), "work"]
        with tempfile.TemporaryDirectory(prefix="benchmark-") as directory:
            marks = Path(directory) / "marks"
            marks.mkdir()
            log = Path(directory) / "log"
            with started(command, self.environment(peer, marks, jobs), log, workers) as processes:
                yield Run(processes, log), Seen(marks, jobs)

    # -- measures ------------------------------------------------------------------------------------------------

    def enqueue(self, peer: Peer, how: str, count: int) -> Reading:
        """Jobs a second stored, ``one`` a commit or ``many`` a call. Refused unless all are there."""
        self.prepare(peer)
        meter = Meter()
        found = self.call(peer, how, count)
        noise = meter.read()
        with self.counting(peer) as remaining:
            stored = remaining()
        if stored != found["jobs"]:
            raise Refused(f"{found['jobs']} jobs were enqueued, {stored} are there")
        return Reading(found["per_second"], noise)

    def drain(self, peer: Peer, count: int, *, fresh: bool = True) -> Reading:
        """Enqueue, settle down, and run them all; see `burn`. WAL is counted from the first insert on."""
        if fresh:
            self.prepare(peer)
        before = self.cluster.written_ahead()
        self.call(peer, "many", count)
        inserted = self.cluster.written_ahead() - before
        if not peer.on_redis:
            self.cluster.settle_down(peer.name)
        found = self.burn(peer, count)
        wal = inserted / count + found.also["wal"]
        return Reading(found.value, found.noise, {**found.also, "wal": wal})

    def drain_at_once(self, peer: Peer, count: int, workers: int = 1) -> Reading:
        """Of semel: all children have worked before, and are asleep when the jobs become due, in one moment."""
        self.prepare(peer)
        children = workers * int(peer.settings.get("children", "1"))

        def begin(run: Run) -> int:
            warm_up = WARM_UP * children
            for job, jobs in (("warming", warm_up), (peer.settings.get("job", "nothing"), count)):
                self._until_asleep(run, peer, children)
                due = time.time() + 10 + jobs / 4_000
                self.call(peer.with_settings(peer.name, job=job, due=str(due)), "many", jobs)
                if time.time() > due:
                    raise Refused("the jobs were due before all were stored")
            return warm_up

        return self.burn(peer, count, workers, begin)

    def _until_asleep(self, run: Run, peer: Peer, children: int) -> None:
        while self.cluster.ask(SLEEPING, peer.name) != children or self.cluster.ask(
            peer.remaining, peer.name
        ):
            run.check()
            time.sleep(0.1)

    def burn(
        self, peer: Peer, count: int, workers: int = 1, begin: Callable[[Run], int] = lambda run: 0
    ) -> Reading:
        """Jobs a second from the start of the first handler until the database shows none left.

        Refused unless each of the jobs 0 to ``count`` ran once. ``begin`` is called once the workers are started; it answers
        how many others it let them finish.
        """
        meter, before, finished = Meter(), self.cluster.written_ahead(), self._finished(peer)
        used = self.cluster.processor_seconds()
        with self.counting(peer) as remaining, self.working(peer, count, workers) as (run, seen):
            finished += begin(run)
            run.until_all_ran(seen, remaining)
            while remaining():
                run.check()
                time.sleep(LOOK)
            ended = time.monotonic()
            also = {
                "processor": run.microseconds_a_job(count),
                "server": (self.cluster.processor_seconds() - used) / count * 1e6,
                "megabytes": run.largest_megabytes(),
                "fifths": run.last_over_first_fifth(count),
            }
            noise = meter.read()
            also["wal"] = (self.cluster.written_ahead() - before) / count
            run.stop()  # nobody is left that could run one twice
            seen.check()
            seconds = ended - seen.first()
        if peer.finished is not None and (ended_well := self._finished(peer) - finished) != count:
            raise Refused(f"of {count} jobs {ended_well} are finished in the database")
        return Reading(count / seconds, noise, also)

    def pick_up(self, peer: Peer, count: int) -> Reading:
        """Milliseconds from the return of the enqueuing call, after its commit, to the handler's start: median and p99.

        Where the machine is busy a caller may hear of its commit after the handler has started. From the beginning of the
        call, ``called`` is the median.
        """
        self.prepare(peer)
        with self.counting(peer) as remaining, self.working(peer, count) as (run, seen):
            time.sleep(SETTLE)
            run.check()
            meter = Meter()
            told = self.call(peer, "pickup", count)
            run.until_all_ran(seen, remaining)
            noise = meter.read()
            starts = seen.starts(count)
            run.stop()
            seen.check()
        called, waits = (
            sorted((start - at) * 1_000 for start, at in zip(starts, told[since], strict=True))
            for since in ("called", "committed")
        )
        p99 = waits[min(len(waits) - 1, int(len(waits) * 0.99))]
        also = {"p99": p99, "most": waits[-1], "called": statistics.median(called)}
        return Reading(statistics.median(waits), noise, also)

    @contextmanager
    def counting(self, peer: Peer) -> Iterator[Callable[[], int]]:
        """Asks, on one connection, how many jobs are not finished."""
        if peer.on_redis:
            with redis.Redis.from_url(str(self.redis)) as client:
                yield lambda: int(client.hlen(peer.remaining))
        else:
            with self.cluster.connect(peer.name) as connection:
                yield lambda: int(connection.execute(sql(peer.remaining)).fetchall()[0][0])

    def _finished(self, peer: Peer) -> int:
        return 0 if peer.finished is None else int(self.cluster.ask(peer.finished, peer.name))
