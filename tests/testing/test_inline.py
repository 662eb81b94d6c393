"""Enqueuing that runs the handler at once."""

from __future__ import annotations

import asyncio
import threading

import psycopg
import pytest
import sqlalchemy as sa

from semel import ArgumentError, ConfigurationError, ConnectionRefused, Retry, Status
from semel.testing import assert_enqueued, enqueued, inline


def test_enqueuing_runs_and_stores_nothing(app):
    ran = []

    @app.job
    def charge(order: int) -> str:
        ran.append(order)
        return "charged"

    with inline(app) as record:
        answer = charge.enqueue(7)
        assert ran == [7]
        assert answer.created
        assert answer.status is Status.PENDING
    assert [(outcome.job.id, outcome.result) for outcome in record.of("charge")] == [(answer.id, "charged")]
    assert enqueued(app) == []
    charge.enqueue(8)
    assert ran == [7]
    assert_enqueued(app, charge, {"order": 8})


@pytest.mark.parametrize("how", ["many", "app", "using", "thousands"])
def test_every_way_to_enqueue_runs(app, how):
    ran = []

    @app.job
    def charge(order: int) -> None:
        ran.append(order)

    with inline(app) as record:
        match how:
            case "many":
                answers = charge.enqueue_many([(1,), {"order": 2}])
            case "app":
                answers = app.enqueue_many([charge.new(1), charge.using(run_after=60).new(2)])
            case "using":
                using = charge.using(
                    run_after="1 h", priority=5, unique_key="k", queue="cards", max_attempts=2
                )
                answers = [using.enqueue(1), using.enqueue(2)]
            case "thousands":
                answers = charge.enqueue_many([(order,) for order in range(1, 1_501)])
    assert ran == list(range(1, len(answers) + 1))
    assert all(answer.created for answer in answers)
    assert len({answer.id for answer in answers}) == len(answers)
    if how == "using":
        job = record.outcomes[0].job
        assert (job.priority, job.queue, job.max_attempts) == (5, "cards", 2)


def test_every_async_way_to_enqueue_runs(app):
    ran = []

    @app.job
    async def charge(order: int) -> None:
        ran.append((order, asyncio.get_running_loop()))

    @app.job
    def note(order: int) -> None:
        ran.append((order, threading.get_ident()))

    async def test() -> None:
        with inline(app):
            await charge.aenqueue(1)
            await charge.using(priority=1).aenqueue(2)
            await charge.aenqueue_many([(3,)])
            await app.aenqueue_many([charge.new(4)])
            await note.aenqueue(5)
        loop = asyncio.get_running_loop()
        assert ran[:4] == [(1, loop), (2, loop), (3, loop), (4, loop)]
        assert ran[4][1] != threading.get_ident()

    asyncio.run(test())


def test_a_sync_call_runs_an_async_handler_unless_a_loop_runs(app):
    @app.job
    async def charge() -> str:
        return "charged"

    with inline(app) as record:
        charge.enqueue()
    assert record.outcomes[0].result == "charged"

    async def test() -> None:
        with inline(app), pytest.raises(ConfigurationError, match="aenqueue"):
            charge.enqueue()

    asyncio.run(test())


def test_other_threads_and_jobs_declared_later_run_inline_too(app):
    with inline(app) as record:

        @app.job
        def charge() -> int:
            return threading.get_ident()

        thread = threading.Thread(target=charge.enqueue)
        thread.start()
        thread.join()
    assert record.outcomes[0].result not in (None, threading.get_ident())


def test_an_error_is_raised_where_the_job_is_enqueued(app):
    @app.job
    def charge() -> None:
        raise ValueError("no such card")

    with inline(app) as record, pytest.raises(ValueError, match="no such card"):
        charge.enqueue()
    assert record.outcomes[0].outcome == "retried"


def test_an_error_can_be_only_noted(app):
    @app.job
    def charge() -> None:
        raise ValueError("no such card")

    with inline(app, raise_errors=False) as record:
        assert charge.enqueue().created
    assert record.outcomes[0].failed


def test_an_outcome_that_the_handler_chose_is_not_raised(app):
    @app.job
    def charge() -> None:
        raise Retry(after="1 h")

    with inline(app) as record:
        charge.enqueue()
    assert [outcome.outcome for outcome in record.outcomes] == ["retried"]


def test_the_block_s_end_restores_also_after_an_error(app):
    @app.job
    def charge() -> None: ...

    with pytest.raises(RuntimeError), inline(app):
        raise RuntimeError
    charge.enqueue()
    assert_enqueued(app, charge)


def test_two_blocks_at_once_are_refused(app):
    with inline(app), pytest.raises(ConfigurationError, match="inline already"), inline(app):
        pass
    with inline(app):
        pass


def test_other_applications_are_left_alone(app):
    copy = app.with_database(app.url)

    @copy.job
    def charge() -> None: ...

    with inline(app), copy:
        charge.enqueue()
        assert_enqueued(copy, charge)


def test_wrong_arguments_and_connections_are_refused_as_ever(app):
    @app.job
    def charge(order: int) -> None: ...

    with inline(app):
        with pytest.raises(ArgumentError):
            charge.enqueue("seven")
        with pytest.raises(ConnectionRefused):
            charge.using(tx=object()).enqueue(7)


def test_jobs_that_jobs_enqueue_run_inside_them(app):
    order = []

    @app.job
    def outer() -> None:
        order.append("begin")
        inner.enqueue()
        order.append("end")

    @app.job
    def inner() -> None:
        order.append("inner")

    with inline(app) as record:
        outer.enqueue()
    assert order == ["begin", "inner", "end"]
    assert [outcome.job.kind for outcome in record.outcomes] == ["inner", "outer"]


@pytest.mark.parametrize("form", ["sync", "async"])
def test_jobs_that_enqueue_one_another_without_end_are_noticed(app, form):
    @app.job
    def again() -> None:
        again.enqueue()

    @app.job
    async def aagain() -> None:
        await aagain.aenqueue()

    with inline(app), pytest.raises(ConfigurationError, match=r"without end.*drain"):
        (again if form == "sync" else aagain).enqueue()


def test_a_transaction_job_works_in_the_caller_s_transaction(app):
    @app.job(transaction=True)
    def note(connection, text: str) -> None:
        connection.execute("INSERT INTO notes VALUES (%s)", (text,))

    with psycopg.connect(app.url) as connection, inline(app):
        connection.execute("CREATE TABLE notes (text text)")
        note.using(tx=connection).enqueue("here")
        assert connection.execute("SELECT text FROM notes").fetchall() == [("here",)]
        connection.rollback()


def test_a_plain_job_may_be_enqueued_on_any_connection(app):
    ran = []

    @app.job
    def charge(order: int) -> None:
        ran.append(order)

    engine = sa.create_engine(app.url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection, inline(app):
        charge.using(tx=connection).enqueue_many([(1,), (2,)])
    engine.dispose()
    assert ran == [1, 2]


def test_looking_for_stored_jobs_is_refused(app):
    with inline(app), pytest.raises(ConfigurationError, match="holds none"):
        enqueued(app)


def test_no_database_is_needed():
    from semel import App

    app = App("postgresql://nowhere.invalid/none")

    @app.job
    def charge(order: int) -> int:
        return order

    with inline(app) as record:
        charge.enqueue(7)
    assert record.outcomes[0].result == 7
