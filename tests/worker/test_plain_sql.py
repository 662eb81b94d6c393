"""What any program in any language may do with plain SQL, while our workers run. (Issue item 2.)"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from tests.worker.helpers import LIMIT, ask, drain, make_app, perform, show, status, until, wait_until

from semel import App, Backoff, RetryPolicy
from semel.store.upkeep import finish_kept

UNIQUE = """INSERT INTO jobs (kind, payload, unique_key) VALUES ('charge', '{"order": 7}', 'order 7')
            ON CONFLICT (kind, unique_key) WHERE unique_key IS NOT NULL DO NOTHING"""
WAITING = """SELECT count(*) = 2 FROM pg_stat_activity
              WHERE wait_event_type = 'Lock' AND datname = current_database()"""
CLAIM = """UPDATE jobs SET status = 'running', locked_until = now() + interval '1 minute'
            WHERE id IN (SELECT id FROM jobs WHERE status = 'pending' AND run_at <= now()
                          ORDER BY run_at, id LIMIT 5 FOR UPDATE SKIP LOCKED)
        RETURNING id"""


@pytest.fixture
def charged() -> list[int]:
    return []


@pytest.fixture
def app(database_url: str, charged: list[int]) -> App:
    app = make_app(database_url)

    @app.job
    async def charge(order: int) -> None:
        charged.append(order)

    return app


def test_2_an_insert_runs_the_job(database_url: str, app: App, charged: list[int]) -> None:
    ask(database_url, """INSERT INTO jobs (kind, payload) VALUES ('charge', '{"order": 41}')""")
    drain(app)
    assert charged == [41]


def test_2_a_rolled_back_insert_runs_nothing(database_url: str, app: App, charged: list[int]) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("""INSERT INTO semel.jobs (kind, payload) VALUES ('charge', '{"order": 41}')""")
        connection.rollback()
    drain(app)
    assert charged == []


@pytest.mark.parametrize("winner_commits", [True, False])
def test_2_the_conflict_clause_lets_one_of_three_replicas_in(
    database_url: str, app: App, charged: list[int], winner_commits: bool
) -> None:
    def replica(_: int) -> int:
        with psycopg.connect(database_url, options="-csearch_path=semel") as connection:
            return connection.execute(UNIQUE).rowcount

    with (
        psycopg.connect(database_url, options="-csearch_path=semel") as winner,
        ThreadPoolExecutor(2) as others,
    ):
        assert winner.execute(UNIQUE).rowcount == 1
        answers = others.map(replica, range(2))
        wait_until(
            lambda: (
                ask(
                    database_url,
                    WAITING,
                )
                == [(True,)]
            ),
            "both rivals to wait for the first",
        )
        winner.commit() if winner_commits else winner.rollback()
        assert sorted(answers) == ([0, 0] if winner_commits else [0, 1])
    drain(app)
    assert charged == [7]


def test_2_an_update_runs_a_dead_letter_again_and_its_crashes_start_anew(database_url: str) -> None:
    broken = threading.Event()
    broken.set()
    app = make_app(database_url)

    @app.job(retry=RetryPolicy(max_attempts=2, backoff=Backoff(base=0)))
    def charge() -> str:
        if broken.is_set():
            raise RuntimeError("the provider is down")
        return "charged"

    job = charge.enqueue()
    drain(app)
    assert status(database_url, job.id) == "failed"
    ask(database_url, "UPDATE jobs SET crashes = 3 WHERE id = %s", job.id)
    broken.clear()
    ask(database_url, "UPDATE jobs SET status = 'pending', attempts = 0 WHERE id = %s", job.id)
    drain(app)
    record = show(database_url, job.id)
    assert (record.job.status, record.job.attempts, record.job.crashes) == ("done", 1, 0)
    assert record.result == "charged"
    assert len(record.errors) == 2


def test_2_a_foreign_worker_and_ours_never_run_one_job_twice(database_url: str) -> None:
    """1,000 jobs, both at once."""
    app = make_app(database_url, concurrency=10)
    ours: list[int] = []

    @app.job
    async def charge(order: int) -> None:
        ours.append(order)
        await asyncio.sleep(0.01)

    def foreign(started: threading.Event) -> list[int]:
        done: list[int] = []
        with psycopg.connect(database_url, autocommit=True, options="-csearch_path=semel") as connection:
            while claimed := [row[0] for row in connection.execute(CLAIM)]:
                started.set()
                done += claimed
                connection.execute("UPDATE jobs SET status = 'done' WHERE id = ANY (%s)", (claimed,))
        return done

    ids = [row.id for row in charge.enqueue_many([(order,) for order in range(1000)])]

    async def work() -> list[int]:
        started = threading.Event()
        async with app.worker(upkeep=False) as worker, asyncio.timeout(LIMIT):
            theirs = asyncio.create_task(asyncio.to_thread(foreign, started))
            await until(lambda: started.is_set() and ours, "both to work")
            await worker.drain()
            return await theirs

    theirs = asyncio.run(work())
    runs = Counter([ids[order] for order in ours] + theirs)
    assert runs == Counter(ids)
    assert len(ours) > 50
    assert len(theirs) > 50
    assert ask(database_url, "SELECT count(*) FROM jobs WHERE status = 'done'") == [(len(theirs),)]
    while perform(database_url, finish_kept(remember=timedelta(days=3))):
        pass
    assert ask(database_url, "SELECT count(*) FROM jobs") == [(0,)]
    assert ask(database_url, "SELECT count(*), count(DISTINCT id) FROM jobs_done") == [(1000, 1000)]


def test_2_a_foreign_claim_on_a_stale_one_ends_the_fence(database_url: str) -> None:
    """A foreign program takes over what one of our workers runs: our completion writes nothing."""
    app = make_app(database_url)
    began, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def charge() -> str:
        began.set()
        await go_on.wait()
        return "ours"

    async def work() -> tuple[int, int]:
        async with app.worker() as worker, asyncio.timeout(LIMIT):
            job = await charge.aenqueue()
            await began.wait()
            sql = "UPDATE jobs SET status = 'running', locked_until = now() + interval '1 hour' WHERE id = %s"
            await asyncio.to_thread(ask, database_url, sql, job.id)
            go_on.set()
            await worker.drain()
            assert worker._engine is not None
            return job.id, worker._engine.board.counts.lost

    job_id, lost = asyncio.run(work())
    assert lost == 1
    assert status(database_url, job_id) == "running"
