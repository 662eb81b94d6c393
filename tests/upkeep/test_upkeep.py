"""House-keeping on a real database: the history's days, retention, and a word about what is stuck."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.worker.helpers import LIMIT, ask, drain, make_app, perform, show, until, wait_until

from semel import Settings
from semel.queue.worker.links import Link
from semel.queue.worker.messages import Numbers
from semel.queue.worker.upkeep import Chore, Upkeep
from semel.sql import Catalogue
from semel.store.connect import connect_async
from semel.store.drivers.psycopg3 import AsyncPsycopgSession
from semel.store.upkeep import BATCH, finish_kept, make_history_days

DAY = "SELECT 'jobs_done_' || to_char((now() AT TIME ZONE 'UTC')::date - %s, 'YYYYMMDD')"
ATTACHED = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'jobs_done'::regclass AND NOT inhdetachpending"
NUMBERS = Numbers(**{name: getattr(Settings(), name) for name in Numbers.__struct_fields__})


@pytest.fixture
def keep_house(database_url: str) -> Callable[..., None]:
    """Run upkeep until a condition holds, in so many supervisors."""

    async def connect() -> AsyncPsycopgSession:
        return await connect_async(database_url, Catalogue())

    def keep_house(condition: Callable[[], Any], *, supervisors: int = 1) -> None:
        async def work() -> None:
            links = [Link(connect, "upkeep") for _ in range(supervisors)]
            tasks = [asyncio.create_task(Upkeep(link, "semel", NUMBERS, 0.001).run()) for link in links]
            try:
                await until(lambda: asyncio.get_running_loop() and condition(), "upkeep")
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for link in links:
                    await link.close()

        asyncio.run(work())

    return keep_house


def day_name(url: str, ago: int) -> str:
    return str(ask(url, DAY, ago)[0][0])


def make_old_day(url: str, ago: int, jobs: int = 1) -> str:
    """A day of the history so many days ago, with jobs in it."""
    ask(url, "SELECT make_history_day((now() AT TIME ZONE 'UTC')::date - %s)", ago)
    ask(
        url,
        """INSERT INTO jobs_done (id, kind, payload, status, attempts, max_attempts, run_at, created_at, queue,
                                  priority, claim, crashes, finished_at, errors)
           SELECT n, 'charge', '{}', 'done', 1, 8, now(), now(), 'default', 0, n, 0,
                  now() - %s * interval '1 day', '[]' FROM generate_series(1, %s) AS n""",
        ago,
        jobs,
    )
    return day_name(url, ago)


def is_trouble(record: logging.LogRecord) -> bool:
    return record.name.startswith("semel") and record.levelno >= logging.WARNING


def exists(url: str, table: str) -> bool:
    return bool(ask(url, "SELECT to_regclass(%s) IS NOT NULL", table)[0][0])


def test_days_are_made_ahead(database_url: str, keep_house: Callable[..., None]) -> None:
    for ahead in (2, 5, 7):
        ask(database_url, f"DROP TABLE {day_name(database_url, -ahead)}")
    keep_house(lambda: ask(database_url, ATTACHED) == [(8,)])
    assert all(exists(database_url, day_name(database_url, -ahead)) for ahead in range(8))


def test_old_days_are_detached_and_dropped_and_others_kept(
    database_url: str, keep_house: Callable[..., None]
) -> None:
    """keep_done is three days: a day goes when its last job is older."""
    kept = [make_old_day(database_url, ago) for ago in (1, 2, 3)]
    old = [make_old_day(database_url, ago) for ago in (4, 5, 40)]
    keep_house(lambda: not any(exists(database_url, table) for table in old))
    assert all(exists(database_url, table) for table in kept)
    assert ask(database_url, "SELECT count(*) FROM jobs_done") == [(3,)]


def test_several_supervisors_end_the_days_together(
    database_url: str, keep_house: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """No leader: who comes second finds nothing to do, which is no error."""
    old = [make_old_day(database_url, ago) for ago in range(5, 15)]
    with caplog.at_level(logging.INFO, "semel.worker"):
        keep_house(lambda: not any(exists(database_url, table) for table in old), supervisors=3)
    assert ask(database_url, ATTACHED) == [(8,)]
    assert [record.message for record in caplog.records if is_trouble(record)] == []


def test_an_interrupted_detach_is_finished(database_url: str, keep_house: Callable[..., None]) -> None:
    """A reader holds the history open; whoever detaches is cut off while waiting for it."""
    old = make_old_day(database_url, 10)
    with psycopg.connect(database_url) as reader:
        reader.execute("SELECT count(*) FROM semel.jobs_done")

        def detach() -> None:
            with suppress(psycopg.OperationalError):
                ask(database_url, f"ALTER TABLE jobs_done DETACH PARTITION {old} CONCURRENTLY")

        cut_off = threading.Thread(target=detach)
        cut_off.start()
        pending = "SELECT count(*) FROM pg_inherits WHERE inhdetachpending"
        wait_until(lambda: ask(database_url, pending) == [(1,)], "the detach to wait for the reader")
        sql = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                  WHERE query LIKE 'ALTER TABLE jobs_done DETACH%%' AND datname = current_database()"""
        ask(database_url, sql)
        cut_off.join(LIMIT)
        reader.rollback()
    assert ask(database_url, pending) == [(1,)]
    keep_house(lambda: not exists(database_url, old))
    assert ask(database_url, pending) == [(0,)]


def test_a_day_that_was_detached_and_not_dropped_is_dropped(
    database_url: str, keep_house: Callable[..., None]
) -> None:
    old, young = make_old_day(database_url, 10), make_old_day(database_url, 1)
    for table in (old, young):
        ask(database_url, f"ALTER TABLE jobs_done DETACH PARTITION {table}")
    keep_house(lambda: not exists(database_url, old))
    assert exists(database_url, young), "somebody has detached it by hand: it is not upkeep's to drop yet"


def test_completions_do_not_wait_while_a_reader_holds_up_the_end_of_a_day(
    database_url: str, keep_house: Callable[..., None]
) -> None:
    old = make_old_day(database_url, 10)
    app = make_app(database_url)

    @app.job
    async def charge() -> None: ...

    with psycopg.connect(database_url) as reader:
        reader.execute("SELECT count(*) FROM semel.jobs_done")
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%%DETACH%%' AND wait_event_type = 'Lock'"
        )

        def work_meanwhile() -> bool:
            if ask(database_url, waiting) != [(0,)]:
                done.append(charge.enqueue().id)
            return len(done) > 20 and all(show(database_url, each).in_history for each in done)

        async def settle() -> None:
            async with app.worker(upkeep=False), asyncio.timeout(LIMIT):
                await asyncio.to_thread(finished.wait, LIMIT)

        done: list[int] = []
        finished = threading.Event()
        worker = threading.Thread(target=lambda: asyncio.run(settle()))
        worker.start()
        try:
            keep_house(work_meanwhile)
        finally:
            finished.set()
            worker.join(LIMIT)
        assert exists(database_url, old)


def test_a_completion_that_meets_a_missing_day_makes_it(database_url: str) -> None:
    for ahead in range(8):
        ask(database_url, f"DROP TABLE {day_name(database_url, -ahead)}")
    app = make_app(database_url)

    @app.job
    async def charge() -> int:
        return 7

    jobs = charge.enqueue_many([()] * 50)
    drain(app, upkeep=False)
    assert all(show(database_url, job.id).job.attempts == 1 for job in jobs)
    assert ask(database_url, "SELECT count(*) FROM jobs_done WHERE status = 'done'") == [(50,)]


def test_two_make_the_same_day_at_once(database_url: str) -> None:
    for ahead in range(8):
        ask(database_url, f"DROP TABLE {day_name(database_url, -ahead)}")
    made: list[int] = []
    threads = [
        threading.Thread(target=lambda: made.append(perform(database_url, make_history_days())))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert sum(made) == 8
    assert len(made) == 4


def test_what_a_foreign_program_ended_moves_in_batches_and_the_rest_stays(
    database_url: str, keep_house: Callable[..., None]
) -> None:
    ask(
        database_url,
        "INSERT INTO jobs (kind, status) SELECT 'alien', 'done' FROM generate_series(1, %s)",
        BATCH * 2 + 1,
    )
    for state in ("pending", "failed", "held", "running"):
        ask(database_url, "INSERT INTO jobs (kind, status) VALUES ('alien', %s)", state)
    keep_house(lambda: ask(database_url, "SELECT count(*) FROM jobs_done") == [(BATCH * 2 + 1,)])
    assert sorted(ask(database_url, "SELECT status FROM jobs")) == [
        ("failed",),
        ("held",),
        ("pending",),
        ("running",),
    ]


def test_moving_skips_what_somebody_has_locked(database_url: str) -> None:
    ask(database_url, "INSERT INTO jobs (kind, status) VALUES ('alien', 'done'), ('alien', 'done')")
    with psycopg.connect(database_url) as other:
        other.execute("SELECT id FROM semel.jobs ORDER BY id LIMIT 1 FOR UPDATE")
        assert perform(database_url, finish_kept(remember=timedelta(days=3))) == 1
    assert perform(database_url, finish_kept(remember=timedelta(days=3))) == 1


def test_dead_letters_go_after_their_retention_and_held_ones_never(
    database_url: str, keep_house: Callable[..., None]
) -> None:
    for state, age in (("failed", 31), ("failed", 29), ("held", 400)):
        sql = "INSERT INTO jobs (kind, status, finished_at) VALUES (%s, %s, now() - %s * interval '1 day')"
        ask(database_url, sql, f"{state} {age}", state, age)
    keep_house(lambda: ask(database_url, "SELECT count(*) FROM jobs") == [(2,)])
    assert sorted(ask(database_url, "SELECT kind FROM jobs")) == [("failed 29",), ("held 400",)]


def test_ticks_are_kept_as_long_as_said_and_a_schedule_s_newest_for_ever(
    database_url: str, keep_house: Callable[..., None]
) -> None:
    for schedule, age in (("nightly", 89), ("nightly", 91), ("yearly", 200), ("yearly", 565)):
        sql = "INSERT INTO schedule_ticks VALUES (%s, now() - %s * interval '1 day')"
        ask(database_url, sql, schedule, age)
    keep_house(lambda: ask(database_url, "SELECT count(*) FROM schedule_ticks") == [(2,)])
    left = ask(database_url, "SELECT schedule, (now()::date - tick::date) FROM schedule_ticks ORDER BY 1")
    assert left == [("nightly", 89), ("yearly", 200)]


def test_old_progress_of_ended_jobs_goes(database_url: str, keep_house: Callable[..., None]) -> None:
    ask(database_url, "INSERT INTO jobs (id, kind) OVERRIDING SYSTEM VALUE VALUES (1, 'long')")
    ask(
        database_url,
        """INSERT INTO job_progress (job_id, attempt, updated_at)
           VALUES (1, 1, now() - interval '2 days'), (2, 1, now() - interval '2 days'), (3, 1, now())""",
    )
    keep_house(lambda: ask(database_url, "SELECT job_id FROM job_progress ORDER BY 1") == [(1,), (3,)])


def test_what_is_stuck_is_reported(
    database_url: str, keep_house: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """A queue that nobody serves, and leases that ended long ago; delayed and running jobs are not stuck."""
    ask(
        database_url,
        """INSERT INTO jobs (kind, queue, run_at, status, locked_until) VALUES
           ('a', 'mail', now() - interval '1 hour', 'pending', NULL),
           ('a', 'mail', now() - interval '2 hours', 'pending', NULL),
           ('a', 'mail', now() - interval '2 hours', 'running', now() - interval '1 hour'),
           ('a', 'fine', now() + interval '1 hour', 'pending', NULL),
           ('a', 'fine', now() - interval '1 minute', 'pending', NULL),
           ('a', 'fine', now() - interval '2 hours', 'running', now() + interval '1 minute')""",
    )
    with caplog.at_level(logging.WARNING, "semel.worker"):
        keep_house(lambda: "stuck" in caplog.text)
    (line,) = {record.message for record in caplog.records if record.message.startswith("stuck")}
    assert "queue mail has 2 due jobs and 1 with a lease that ended, the oldest due for 2:00:0" in line


def test_a_chore_that_fails_does_not_end_the_others(
    database_url: str, keep_house: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    ask(database_url, "ALTER TABLE schedule_ticks RENAME TO elsewhere")
    old = make_old_day(database_url, 10)
    keep_house(lambda: not exists(database_url, old))
    assert "_purge failed" in caplog.text


def test_a_chore_that_finds_nothing_comes_seldomer_and_as_often_as_before_once_it_finds_something() -> None:
    async def nothing() -> bool:
        return False

    waits = []
    chore, steady = Chore(nothing, 10, 60), Chore(nothing, 10)
    for found in (False, False, False, False, True, False):
        chore.done(found=found)
        steady.done(found=found)
        waits.append(chore.wait)
        assert steady.wait == 10
    assert waits == [10, 20, 40, 60, 10, 20]
