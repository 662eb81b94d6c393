"""SIGKILL of a child, of its supervisor, of both, before, after and past the commit of every statement.

A first run, in which nobody is killed, lists the statements; so a new one is covered by itself. The scenario claims
ahead, runs, settles, extends a long job's lease, loses a child to a job that kills it once (so that the supervisor gives
back what waited and ends the leases of what ran), and is told to stop while the long job runs (so that the child gives back).
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.child import MARKED
from tests.support.deaths import Death
from tests.support.journal import Journal, Run
from tests.support.stored import StoredJob, stored_jobs, unfinished
from tests.support.waiting import until_async
from tests.support.workers import LEASE, Worker

from semel import App

AT_ONCE = 4
CONCURRENCY = 4
GRACE = 1.0
NOTICE = 2.0
"""Seconds within which a supervisor sees that a child has died, on a busy machine."""

MARGIN = 40.0
"""Seconds for jobs that have crashed to run one by one, on a machine that is busy with other cases."""

OTHER_STATEMENTS = frozenset(
    {"installation", "applied_steps", "find_migrations", "schema_state"}
    | {"make_history_days", "find_history_days", "finish_kept", "set_lock_timeout"}
    | {"purge_failed", "purge_ticks", "purge_progress", "find_stuck"}
    | {"purge_completed", "purge_released", "events_window", "purge_events", "count_stale"}
    | {"backend", "is_direct", "purge_sleepers"}
)
"""Before the first claim, and the house-keeping: about no job that is claimed."""

BY_CHANCE = frozenset(
    {"find_held", "find_settled"} | {"listen", "fall_asleep", "look_ahead", "wake_up"} | {"sweep"}
)
"""A lease to be extended while its row is locked, a settlement that found rows gone; a child with nothing to claim, or
none that lives so long."""

EXPECTED = {
    ("child", "claim"),
    ("child", "settle"),
    ("child", "give_back"),
    ("supervisor", "extend"),
    ("supervisor", "give_back"),
    ("supervisor", "expire"),
}


@dataclass
class Scenario:
    """One worker's life on a queue of its own, and what becomes of the queue's jobs."""

    app: App
    url: str
    directory: Path
    journal: Journal
    queue: str
    death: Death | None = None
    told_to_stop: float = math.inf

    async def run(self) -> Worker:
        """To the end: every job finished, by this worker or by the one that comes after it."""
        release = self.directory / f"{self.queue}.release"
        await asyncio.to_thread(self._enqueue, str(release))
        options = {"concurrency": CONCURRENCY, "stop_grace": GRACE, "queues": [self.queue]}
        with Worker(self.url, self.directory, name=self.queue, death=self.death, **options) as worker:
            what = f"the long job of {self.queue} runs, or its worker is dead"
            await until_async(lambda: worker.ended or self._long_runs(), what)
            if not worker.ended:
                self.told_to_stop = time.monotonic()
                worker.process.terminate()
            await asyncio.to_thread(worker.wait)
            release.touch()
            await self._let_another_finish()
        return worker

    def _enqueue(self, release: str) -> None:
        quick, killer, long = (self.app.jobs[kind] for kind in ("quick", "kill_worker", "wait_for"))
        quick.using(queue=self.queue).enqueue_many([(0.002,)] * 15)
        killer.using(queue=self.queue).enqueue(1)
        quick.using(queue=self.queue).enqueue_many([(0.002,)] * 15)
        (self.long,) = long.using(queue=self.queue).enqueue_many([(release,)])

    def _long_runs(self) -> bool:
        return any(entry.job == self.long.id for entry in self.journal.entries())

    async def _let_another_finish(self) -> None:
        options = {"queues": (self.queue,), "schedules": False, "upkeep": False, "lease": LEASE}
        async with self.app.worker(**options):
            what = f"every job of {self.queue} finished, {self.death}"
            await until_async(lambda: unfinished(self.url, self.queue) == 0, what, LEASE + MARGIN)

    def check(self, worker: Worker) -> None:
        """Every job is done, once in the books, no attempt charged, and the crashes counted that were."""
        jobs, runs = stored_jobs(self.url, self.queue), self.journal.runs()
        assert len(jobs) == 32, self.death
        assert {(job.status, job.attempts) for job in jobs} == {("done", 1)}, self.death
        deaths = 1 if worker.mark is None else 2
        pardoned = self._pardoned(worker, [run for job in jobs for run in runs[job.id]])
        wrong = [job for job in jobs if not right_crashes(job, runs[job.id], deaths, pardoned)]
        seen = [f"{job} {runs[job.id]}" for job in wrong]
        assert wrong == [], "\n".join(
            [f"{self.death}, told to stop at {self.told_to_stop}", *seen, worker.log]
        )
        if self.death is None:
            assert sum(job.crashes >= len(runs[job.id]) for job in jobs) <= CONCURRENCY

    def _pardoned(self, worker: Worker, runs: list[Run]) -> set[int]:
        """The children whose deaths came with the stop, as the supervisor saw it, or with what ran when it was told."""
        if worker.mark is None or worker.mark.at < self.told_to_stop - NOTICE:
            return set()
        seen = {int(child) for child in re.findall(r" INFO .*child (\d+) ended with code -9", worker.log)}
        if worker.mark.at > self.told_to_stop:
            seen |= {run.process for run in runs if run.end is None}
        return seen


def right_crashes(job: StoredJob, runs: list[Run], deaths: int, pardoned: set[int]) -> bool:
    """At most one for each death; and one for each run after the first, but for runs that a stop had interrupted.

    Without a run it counts where the kill met it between its claim and its handler's first line. What a pardoned child
    ran is given back, its end too where that was not written yet.
    """
    again = len(runs) - 1
    interrupted = sum(run.broken or run.process in pardoned for run in runs)
    return again - interrupted <= job.crashes <= deaths


def deaths(statements: list[str]) -> list[Death]:
    """Every victim before and after each statement that a run passed; the second time, where there is one.

    Past the commit only both at once: an operation of one statement has committed when the statement has its answer.
    """
    turns: Counter[tuple[str, ...]] = Counter()
    for (role, _, *point), count in Counter(tuple(line.split()) for line in statements).items():
        turns[role, *point] = max(count, turns[role, *point])
    return [
        Death(role, moment, name, victim, min(2, count))
        for (role, moment, name), count in sorted(turns.items())
        if name.rpartition("/")[2] not in OTHER_STATEMENTS
        for victim in (("both",) if moment == "committed" else ("child", "supervisor", "both"))
    ]


def place(death: Death | None) -> tuple[str, str]:
    """Whose statement it is. One life may pass it and the next not; of all its deaths some must come."""
    assert death is not None
    return death.role, death.name.rpartition("/")[2]


@pytest.mark.timeout(900)
def test_every_job_survives_a_kill_at_every_statement(
    app: App, database_url: str, tmp_path: Path, journal: Journal
) -> None:
    check_kills(app, database_url, tmp_path, journal, EXPECTED)


@pytest.mark.timeout(900)
def test_and_where_claims_go_from_marks(
    app: App, database_url: str, tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARKED, "1")
    expected = {("child", "claim_marked"), ("child", "sweep")}
    check_kills(app, database_url, tmp_path, journal, expected, only={"claim_marked", "sweep"})


def check_kills(
    app: App,
    database_url: str,
    tmp_path: Path,
    journal: Journal,
    expected: set[tuple[str, str]],
    only: Container[str] | None = None,
) -> None:
    """A life without a death; then one for each death at the statements it passed, or at ``only`` some of them."""

    def scenario(queue: str, death: Death | None = None) -> Scenario:
        return Scenario(app, database_url, tmp_path, journal, queue, death)

    async def one_after_another(cases: list[Death]) -> None:
        turn = asyncio.Semaphore(AT_ONCE)

        async def case(number: int, death: Death) -> tuple[Scenario, Worker]:
            async with turn:
                staged = scenario(f"case_{number}", death)
                return staged, await staged.run()

        ended = await asyncio.gather(*[case(number, death) for number, death in enumerate(cases)])
        for staged, worker in ended:
            staged.check(worker)
        died = {place(staged.death) for staged, worker in ended if worker.mark is not None}
        assert {place(death) for death in cases if place(death)[1] not in BY_CHANCE} <= died

    normal = scenario("normal")
    worker = asyncio.run(normal.run())
    normal.check(worker)
    statements = Path(worker.record + ".statements").read_text("utf-8").splitlines()
    cases = [death for death in deaths(statements) if only is None or place(death)[1] in only]
    assert {place(death) for death in cases} >= expected
    asyncio.run(one_after_another(cases))
