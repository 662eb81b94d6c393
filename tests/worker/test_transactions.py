"""``transaction=True``: the handler's work and the job's end are one commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.worker.helpers import LIMIT, ask, drain, make_app, show, status, until

from semel import App, Backoff, Job, JobContext, RetryPolicy, Snooze

CUT = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND application_name = 'semel transaction'"""
CHARGE = "INSERT INTO charges (job_id) VALUES (%s)"


@pytest.fixture
def app(database_url: str) -> App:
    ask(database_url, "CREATE TABLE public.charges (job_id bigint)")
    return make_app(database_url, lease="2 s")


@pytest.fixture
def charges(database_url: str) -> Callable[[], list[int]]:
    return lambda: [row[0] for row in ask(database_url, "SELECT job_id FROM public.charges ORDER BY 1")]


Body = Callable[[JobContext], Any]


def declare(app: App, flavour: str, body: Body, **options: Any) -> Job[..., Any]:
    """A job that writes a row in its transaction, then does what ``body`` does."""
    if flavour == "sync":

        def charge(context: JobContext, connection: Any) -> Any:
            connection.execute(CHARGE, (context.job_id,))
            return body(context)

        return app.job(context=True, transaction=True, **options)(charge)

    async def charge_async(context: JobContext, connection: Any) -> Any:
        await connection.execute(CHARGE, (context.job_id,))
        return await asyncio.to_thread(body, context)

    return app.job(kind="charge", context=True, transaction=True, **options)(charge_async)


def raises(error: BaseException) -> Body:
    def body(_: JobContext) -> None:
        raise error

    return body


both = pytest.mark.parametrize("flavour", ["sync", "async"])


@both
def test_the_work_and_the_end_commit_together(
    app: App, database_url: str, charges: Callable[[], list[int]], flavour: str
) -> None:
    """While the handler runs nobody sees its row; when it is seen, the job is done."""
    seen: list[Any] = []
    job = declare(app, flavour, lambda _: seen.append(charges()) or {"charged": 7}).enqueue()
    drain(app)
    assert seen == [[]]
    assert charges() == [job.id]
    record = show(database_url, job.id)
    assert (record.job.status, record.result) == ("done", {"charged": 7})


@both
def test_an_error_rolls_the_work_back(
    app: App, database_url: str, charges: Callable[[], list[int]], flavour: str
) -> None:
    job = declare(
        app,
        flavour,
        raises(RuntimeError("declined")),
        retry=RetryPolicy(max_attempts=2, backoff=Backoff(base=0)),
    ).enqueue()
    drain(app)
    assert charges() == []
    record = show(database_url, job.id)
    assert (record.job.status, len(record.errors)) == ("failed", 2)


@both
def test_an_outcome_rolls_the_work_back_too(
    app: App, database_url: str, charges: Callable[[], list[int]], flavour: str
) -> None:
    job = declare(app, flavour, raises(Snooze(for_="1 h"))).enqueue()
    drain(app)
    assert charges() == []
    assert (status(database_url, job.id), show(database_url, job.id).job.attempts) == ("pending", 0)


@both
def test_a_lost_claim_rolls_the_work_back(
    app: App, database_url: str, charges: Callable[[], list[int]], flavour: str
) -> None:
    """Somebody else has taken the job over while the handler ran: only the other's work may count."""
    take = "UPDATE jobs SET status = 'running', locked_until = now() + interval '1 hour' WHERE id = %s"
    job = declare(app, flavour, lambda context: ask(database_url, take, context.job_id)).enqueue()
    drain(app)
    assert charges() == []
    assert status(database_url, job.id) == "running"


@both
def test_a_time_out_rolls_the_work_back(
    app: App, database_url: str, charges: Callable[[], list[int]], flavour: str
) -> None:
    def body(_: JobContext) -> None:
        while not threading.Event().wait(0.01):
            pass

    async def charge_async(connection: Any) -> None:
        await connection.execute(CHARGE, (0,))
        await connection.execute("SELECT pg_sleep(60)")

    if flavour == "sync":
        job = declare(app, flavour, body, timeout="400 ms").enqueue()
    else:
        job = app.job(transaction=True, timeout="400 ms")(charge_async).enqueue()
    after = declare(app, flavour, lambda _: None, **({"kind": "after"} if flavour == "sync" else {}))
    drain(app)
    assert show(database_url, job.id).errors[0]["type"] == "semel.errors.TimedOut"
    assert charges() == []
    next_one = after.enqueue()
    drain(app)
    assert charges() == [next_one.id], "the next one on this connection suffers"


@both
def test_a_connection_that_ended_while_nobody_used_it_is_not_charged(
    app: App, database_url: str, flavour: str
) -> None:
    """As after a restart of the database."""
    charge = declare(app, flavour, lambda _: None, max_attempts=1)

    async def work() -> None:
        async with app.worker() as worker, asyncio.timeout(LIMIT):
            await charge.aenqueue()
            await worker.drain()
            assert await asyncio.to_thread(ask, database_url, CUT) == [(True,)]
            job = await charge.aenqueue()
            await until(lambda: status(database_url, job.id) == "done")

    asyncio.run(work())


@both
def test_a_connection_that_ended_under_a_handler_is_not_used_again(
    app: App, database_url: str, charges: Callable[[], list[int]], flavour: str
) -> None:
    def body(context: JobContext) -> None:
        if context.attempt == 1:
            ask(database_url, CUT)

    policy = RetryPolicy(max_attempts=2, backoff=Backoff(base=0))
    job = declare(app, flavour, body, retry=policy).enqueue()
    drain(app)
    record = show(database_url, job.id)
    assert (record.job.status, record.job.attempts) == ("done", 2)
    assert charges() == [job.id]


@both
def test_two_workers_and_each_effect_happens_once(
    app: App, database_url: str, charges: Callable[[], list[int]], flavour: str
) -> None:
    charge = declare(app, flavour, lambda _: None, retry=RetryPolicy(backoff=Backoff(base=0)))
    ids = [job.id for job in charge.enqueue_many([()] * 200)]

    async def work() -> None:
        async with app.worker(concurrency=4) as one, app.worker(concurrency=4) as two, asyncio.timeout(LIMIT):
            await one.drain()
            await two.drain()

    asyncio.run(work())
    assert charges() == ids
    assert ask(database_url, "SELECT count(*) FROM jobs_done") == [(200,)]


@both
def test_an_error_of_its_own_sql_is_named_as_it_is(app: App, database_url: str, flavour: str) -> None:
    """Not as if semel's tables were missing."""

    def charge(connection: Any) -> None:
        connection.execute("SELECT * FROM nowhere")

    async def charge_async(connection: Any) -> None:
        await connection.execute("SELECT * FROM nowhere")

    job = app.job(transaction=True)(charge if flavour == "sync" else charge_async).enqueue()
    drain(app)
    assert show(database_url, job.id).errors[0]["type"] == "psycopg.errors.UndefinedTable"


def test_a_commit_of_the_handler_s_own_is_refused(
    app: App, database_url: str, charges: Callable[[], list[int]]
) -> None:
    @app.job(transaction=True, max_attempts=1)
    def eager(connection: Any) -> None:
        connection.execute(CHARGE, (0,))
        connection.commit()

    job = eager.enqueue()
    drain(app)
    assert charges() == []
    assert status(database_url, job.id) == "failed"


def test_the_history_s_missing_day_is_made(
    app: App, database_url: str, charges: Callable[[], list[int]]
) -> None:
    """And costs no attempt, neither here nor where the completion goes in a batch."""
    days = ask(
        database_url,
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'jobs_done'::regclass",
    )
    for (day,) in days:
        ask(database_url, f"DROP TABLE {day}")
    job = declare(app, "sync", lambda _: None, max_attempts=1).enqueue()

    async def work() -> None:
        async with app.worker(upkeep=False), asyncio.timeout(LIMIT):
            await until(lambda: status(database_url, job.id) == "done")

    asyncio.run(work())
    assert charges() == [job.id]
    assert show(database_url, job.id).job.attempts == 1
