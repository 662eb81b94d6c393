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
from semel.store.session import open_session


def cancels(url: str, job_id: int) -> None:
    with open_session(url) as session:
        carry_out(cancel(job_id, who="a person"), session)


def sets(assignment: str) -> Callable[[str, int], None]:
    return lambda url, job_id: ask(url, f"UPDATE semel.jobs SET {assignment} WHERE id = %s", job_id) and None


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
        before: list[object] = []
        asyncio.run(work())
        before = stored_jobs(database_url)
    (stored,) = before
    assert stored.result is None
    assert stored.status in how.replace("re-queued", "pending")
    assert [record.message for record in caplog.records if "claim lost" in record.message] != []


def test_a_long_attempt_is_told_that_it_was_cancelled(
    app: App, journal: Journal, database_url: str
) -> None:
    job = app.jobs["wait_for"].enqueue("/nowhere")

    async def work() -> None:
        async with app.worker(upkeep=False, schedules=False):
            await until_async(lambda: journal.count("start") == 1, "it runs")
            await asyncio.to_thread(cancels, database_url, job.id)
            await until_async(lambda: journal.count("broken") == 1, "it was told", 5)

    asyncio.run(work())
    (stored,) = stored_jobs(database_url)
    assert (stored.status, stored.result) == ("cancelled", None)
