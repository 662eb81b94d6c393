"""Workers whose claims go from marks lose no job, and see all that is due before they call themselves idle."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from tests.support.child import MARKED
from tests.support.journal import Journal
from tests.support.stored import ask, unfinished
from tests.support.waiting import until
from tests.support.workers import Worker

from semel import App

LEASE_ENDS = 30.0
"""Seconds within which a dead worker's lease has ended, and somebody has looked, on a busy machine."""


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of this test claim from marks, from their second sweep on."""
    monkeypatch.setenv(MARKED, "1")


def test_no_job_is_left_behind_however_long_the_transactions_are(
    app: App,
    journal: Journal,
    start_worker: Callable[..., Worker],
    database_url: str,
    marked: None,
) -> None:
    """They commit up to 3 s after the time that their jobs are due, in lanes that come and go."""
    workers = [start_worker(f"worker_{number}", concurrency=5).started() for number in range(2)]
    ends = time.monotonic() + 6

    def enqueue(longest: float, seed: int) -> int:
        chance, count = random.Random(seed), 0
        with closing(psycopg.connect(database_url)) as connection:
            while time.monotonic() < ends:
                with connection.transaction():
                    for _ in range(3):
                        connection.execute(
                            "INSERT INTO semel.jobs (kind, queue, priority) VALUES ('quick', %s, %s)",
                            (chance.choice("ab"), chance.choice((0, 5))),
                        )
                    time.sleep(chance.uniform(0, longest))
                count += 3
        return count

    with ThreadPoolExecutor(6) as threads:
        count = sum(threads.map(enqueue, [0.05, 0.05, 0.2, 0.2, 3.0, 3.0], range(6)))
    until(lambda: unfinished(database_url, "a") + unfinished(database_url, "b") == 0, "all are done")
    runs = journal.runs()
    assert [len(each) for each in runs.values()] == [1] * count
    for worker in workers:
        assert worker.passed("queue/claim_marked") > 10
        assert worker.stop() == 0


def test_what_a_dead_worker_held_is_found_by_one_that_claims_from_marks(
    app: App,
    journal: Journal,
    start_worker: Callable[..., Worker],
    database_url: str,
    marked: None,
) -> None:
    quick = app.jobs["quick"]
    first = start_worker("first", concurrency=5)
    quick.enqueue_many([(0.01,)] * 50)
    long = app.jobs["wait_for"].enqueue("/nowhere")
    until(lambda: unfinished(database_url) == 1, "one is left, which runs")
    second = start_worker("second", concurrency=5).started()

    def turned() -> bool:
        quick.enqueue_many([(0.01,)] * 5)
        return second.passed("queue/claim_marked") > 0

    until(turned, "the second one works, from marks")
    first.close()
    until(lambda: len(journal.runs()[long.id]) == 2, "the long one runs again", LEASE_ENDS)
    ((crashes,),) = ask(database_url, "SELECT crashes FROM semel.jobs WHERE id = %s", long.id)
    assert crashes == 1


def test_a_drain_from_marks_ends_when_nothing_is_due(
    app: App,
    start_worker: Callable[..., Worker],
    database_url: str,
    marked: None,
) -> None:
    """The late ones lie before every mark, and a sweep must find them before the worker may call itself idle."""
    quick = app.jobs["quick"]
    quick.enqueue_many([(0.02,)] * 400)
    with closing(psycopg.connect(database_url)) as connection, connection.transaction():
        connection.execute(
            "INSERT INTO semel.jobs (kind, run_at) VALUES ('quick', now() - interval '1 hour')"
        )
        worker = start_worker(concurrency=4, drain=True)
        until(lambda: worker.passed("queue/claim_marked") > 2, "it claims from marks")
    assert worker.wait() == 0
    assert unfinished(database_url) == 0


def test_a_worker_turns_to_marks_where_a_snapshot_keeps_dead_rows(
    app: App, start_worker: Callable[..., Worker], database_url: str
) -> None:
    """By its own sweeps; and every job is done."""
    app.jobs["quick"].enqueue_many([()] * 20_000)
    with closing(psycopg.connect(database_url)) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT 1")
        worker = start_worker(concurrency=100, lease=30, drain=True, log_level="WARNING")
        assert worker.wait(120) == 0, worker.log
        assert unfinished(database_url) == 0
        assert worker.passed("queue/claim_marked") > 0
