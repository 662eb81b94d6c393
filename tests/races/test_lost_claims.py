"""A running attempt whose claim somebody takes away: told, logged, counted, and nothing of it is written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.journal import Journal
from tests.support.stored import ask, stored_jobs
from tests.support.waiting import until_async

from semel import App
from semel.operate import cancel, carry_out
from semel.queue.worker.embedded import EmbeddedWorker
from semel.queue.worker.slots import Slot
from semel.store.session import open_session


def cancels(url: str, job_id: int) -> None:
    with open_session(url) as session:
        carry_out(cancel(job_id, who="a person"), session)


def sets(assignment: str) -> Callable[[str, int], None]:
    return lambda url, job_id: ask(url, f"UPDATE semel.jobs SET {assignment} WHERE id = %s", job_id) and None


CRASHED = """
    INSERT INTO semel.jobs (kind, status, attempts, locked_until)
    VALUES ('quick', 'running', 1, now() - interval '1 second') RETURNING id
"""

TAKEN_AWAY: dict[str, Callable[[str, int], None]] = {
    "cancelled by a person": cancels,
    "cancelled by plain SQL": sets("status = 'cancelled'"),
    "set to failed by plain SQL": sets("status = 'failed'"),
    "re-queued by plain SQL": sets("status = 'pending', attempts = 0, run_at = 'infinity'"),
}


@pytest.mark.parametrize("how", TAKEN_AWAY)
def test_what_ends_after_its_claim_was_taken_away_is_lost(
    app: App,
    journal: Journal,
    database_url: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    how: str,
) -> None:
    """Its lease is long, so that nobody tells it before it ends."""
    release = tmp_path / "release"
    job = app.jobs["wait_for"].enqueue(str(release))

    async def work() -> None:
        async with app.worker(lease=60, upkeep=False, schedules=False):
            await until_async(lambda: journal.count("start") == 1, "it runs")
            await asyncio.to_thread(TAKEN_AWAY[how], database_url, job.id)
            release.touch()
            await until_async(lambda: journal.count("end") == 1, "it has ended")

    with caplog.at_level(logging.INFO, "semel.worker"):
        asyncio.run(work())
    (stored,) = stored_jobs(database_url)
    assert stored.result is None
    assert stored.status in how.replace("re-queued", "pending")
    outcomes = [getattr(record, "outcome", None) for record in caplog.records]
    assert [outcome for outcome in outcomes if outcome] == ["claim lost"]


def test_one_that_loses_its_claim_while_it_waits_to_run_alone_is_passed_over(
    app: App, journal: Journal, database_url: str, tmp_path: Path
) -> None:
    """And the worker goes on with the next."""
    release = tmp_path / "release"
    app.jobs["wait_for"].enqueue(str(release))

    async def work() -> None:
        async with app.worker(lease=6, concurrency=4, upkeep=False, schedules=False) as worker:
            await until_async(lambda: journal.count("start") == 1, "one runs")
            ((crashed,),) = await asyncio.to_thread(ask, database_url, CRASHED)
            held = await until_held(worker, crashed)
            await asyncio.to_thread(cancels, database_url, crashed)
            worker._slots.mark_lost(held.index, held.claim)
            release.touch()
            await until_async(lambda: journal.count("end") == 1, "the first has ended")
            await app.jobs["quick"].aenqueue()
            await until_async(lambda: journal.count("end") == 2, "the next has run", 10)

    asyncio.run(work())
    assert sorted(job.status for job in stored_jobs(database_url)) == ["cancelled", "done", "done"]


async def until_held(worker: EmbeddedWorker, job_id: int) -> Slot:
    """The slot of a job, once the worker holds it."""
    found: list[Slot] = []

    def look() -> bool:
        found[:] = [slot for slot in worker._slots.read() if slot.job_id == job_id]
        return bool(found)

    await until_async(look, f"job {job_id} is held")
    return found[0]


def test_a_long_attempt_is_told_that_it_was_cancelled(app: App, journal: Journal, database_url: str) -> None:
    job = app.jobs["wait_for"].enqueue("/nowhere")

    async def work() -> None:
        async with app.worker(upkeep=False, schedules=False):
            await until_async(lambda: journal.count("start") == 1, "it runs")
            await asyncio.to_thread(cancels, database_url, job.id)
            await until_async(lambda: journal.count("broken") == 1, "it was told", 5)

    asyncio.run(work())
    (stored,) = stored_jobs(database_url)
    assert (stored.status, stored.result) == ("cancelled", None)


def test_a_worker_takes_a_new_number_after_each_lost_connection(
    app: App, journal: Journal, database_url: str, tmp_path: Path
) -> None:
    """A claim may come back after a crash of the database, with the same number: never under the same worker."""
    release = tmp_path / "release"
    app.jobs["wait_for"].enqueue(str(release))
    end = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE application_name = 'semel worker' AND datname = current_database()"""

    async def work() -> None:
        async with app.worker(lease=60, upkeep=False, schedules=False):
            await until_async(lambda: journal.count("start") == 1, "the first runs")
            await asyncio.to_thread(ask, database_url, end)
            await app.jobs["wait_for"].aenqueue(str(release))
            await until_async(lambda: journal.count("start") == 2, "the second runs")
            workers = await asyncio.to_thread(ask, database_url, "SELECT DISTINCT worker FROM semel.jobs")
            assert len(workers) == 2
            release.touch()

    asyncio.run(work())
    assert [job.status for job in stored_jobs(database_url)] == ["done", "done"]
