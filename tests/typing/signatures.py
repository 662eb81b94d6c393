"""What a type checker sees: callers' signatures are the handlers' without what the worker fills in.

Each ignored error must be one: mypy warns of an ignore that is not needed.
"""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

import psycopg

from semel import App, Backoff, BoundJob, Enqueued, Job, NewJob, RetryPolicy, Rule
from semel.queue.context import JobContext

app = App("postgresql://x/y", schema="work", lease="1 min", concurrency=5)
App(leese=1)  # type: ignore[call-arg]
App(lease=[])  # type: ignore[arg-type]


@app.job
def add(a: int, b: int = 2, *, note: str = "") -> int:
    return a + b


@app.job(queue="mail", priority=5, timeout="10 min", retry=RetryPolicy(rules=(Rule(ValueError, "fail"),)))
def mail(to: str) -> None: ...


@app.job(context=True, max_attempts=3)
async def with_context(ctx: JobContext, to: str) -> bytes:
    assert_type(ctx.attempt, int)
    return b""


@app.job(transaction=True)
def with_connection(connection: psycopg.Connection[Any], order: int) -> None: ...


@app.job(context=True, transaction=True, retry=RetryPolicy(backoff=Backoff(base="1 s")))
async def with_both(ctx: JobContext, connection: psycopg.AsyncConnection[Any], order: int) -> None: ...


@app.schedule("0 3 * * *", tz="Europe/Rome")
@app.job
def nightly(day: str = "all") -> None: ...


@app.job(kind="weekly", run_in="process")
@app.schedule(every=timedelta(weeks=1), missed="skip")
def weekly() -> None: ...


@app.job(colour="red")  # type: ignore[call-overload,untyped-decorator]
def wrong_option() -> None: ...


@app.job(context=True)  # type: ignore[arg-type]
def wrong_context(to: str) -> None: ...


def callers() -> None:
    assert_type(add(1), int)
    assert_type(add.enqueue(1, b=3, note="x"), Enqueued)
    assert_type(add.new(1), NewJob)
    add.enqueue("1")  # type: ignore[arg-type]
    add.enqueue()  # type: ignore[call-arg]
    add.enqueue(1, c=3)  # type: ignore[call-arg]
    add.new(1, 2, "x")  # type: ignore[call-arg]

    bound = add.using(run_after="10 min", unique_key="k", unique_for=3600)
    assert_type(bound.enqueue(1), Enqueued)
    assert_type(bound.enqueue_many([(1,), {"a": 2}, add.new(3)]), list[Enqueued])
    bound.enqueue("1")  # type: ignore[arg-type]
    add.using(run_after=datetime.now(UTC), tx="default").enqueue(1)
    add.using(colour="red")  # type: ignore[call-arg]
    add.enqueue_many([1])  # type: ignore[list-item]

    mail.enqueue("x")
    with_context.enqueue("x")
    with_context.enqueue(to="x")
    with_context.enqueue(None, "x")  # type: ignore[call-arg,arg-type]
    with_connection.enqueue(1)
    with_connection.enqueue(None, 1)  # type: ignore[call-arg,arg-type]
    with_both.enqueue(order=1)
    with_both.enqueue("1")  # type: ignore[arg-type]
    nightly.enqueue("today")
    nightly.enqueue(1)  # type: ignore[arg-type]
    weekly.enqueue()
    weekly.enqueue(1)  # type: ignore[call-arg]
    call: Coroutine[Any, Any, bytes] = assert_type(with_context("x"), Coroutine[Any, Any, bytes])
    call.close()
    assert_type(app.enqueue_many([mail.new("x"), weekly.new()]), list[Enqueued])


async def async_callers() -> None:
    assert_type(await add.aenqueue(1), Enqueued)
    assert_type(await add.using(priority=3).aenqueue(1), Enqueued)
    assert_type(await add.aenqueue_many([(1,)]), list[Enqueued])
    await add.aenqueue("1")  # type: ignore[arg-type]
    async with app as same:
        assert_type(same, App)


def takes_jobs(any_job: Job[..., Any], one: Job[[str], None], bound: BoundJob[[str]]) -> None:
    assert_type(one.enqueue("x"), Enqueued)
    takes_jobs(add, mail, mail.using())
    takes_jobs(add, weekly, bound)  # type: ignore[arg-type]
