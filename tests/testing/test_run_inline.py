"""Running one handler here and now, as a worker would."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
import sqlalchemy as sa

from semel import (
    App,
    ArgumentError,
    Cancel,
    ConfigurationError,
    HoldForPerson,
    NewJob,
    PayloadUnreadable,
    Retry,
    RetryPolicy,
    Rule,
    Snooze,
)
from semel.testing import AttemptFailed, InlineWorker, arun_inline, run_inline


@pytest.fixture
def app() -> App:
    """Without a database: a handler that needs none is run without one."""
    return App("postgresql://nowhere.invalid/none")


@pytest.fixture
def stored(database_url):
    with App(database_url) as made:
        with psycopg.connect(database_url) as connection:
            connection.execute("CREATE TABLE notes (text text)")
        yield made


def notes(app: App) -> list[str]:
    with psycopg.connect(app.url) as connection:
        return [row[0] for row in connection.execute("SELECT text FROM notes ORDER BY text")]


def test_the_result_is_told_and_nothing_is_stored(app):
    @app.job
    def charge(order: int) -> dict[str, int]:
        return {"order": order}

    outcome = run_inline(app, charge, 7)
    assert outcome.outcome == "done"
    assert outcome.value() == {"order": 7}
    assert outcome.settlement.result == b'{"order":7}'
    assert outcome.exception is None


def test_arguments_go_through_their_encoding(app):
    seen = []

    @app.job
    def charge(order: UUID, parts: list[int], when: timedelta = timedelta(1)) -> None:
        seen.append((order, parts, when))

    given = [1, 2]
    run_inline(app, charge, UUID(int=7), given)
    assert seen == [(UUID(int=7), [1, 2], timedelta(1))]
    assert seen[0][1] is not given


def test_a_wrong_argument_is_the_caller_s_error(app):
    @app.job
    def charge(order: int) -> None: ...

    with pytest.raises(ArgumentError, match="'order'"):
        run_inline(app, charge, "seven")
    with pytest.raises(ArgumentError, match="'ordr'"):
        run_inline(app, charge, ordr=7)


def test_a_stored_payload_of_another_version_is_the_attempt_s_error(app):
    @app.job
    def charge(order: int) -> None: ...

    outcome = run_inline(app, NewJob("charge", b'{"order": "seven"}'))
    assert outcome.outcome == "retried"
    assert isinstance(outcome.exception, PayloadUnreadable)
    with pytest.raises(PayloadUnreadable, match="order"):
        outcome.value()


def test_a_kind_that_the_application_lacks_is_the_attempt_s_error(app):
    outcome = run_inline(app, NewJob("chrage", b"{}"))
    assert outcome.outcome == "retried"
    with pytest.raises(AttemptFailed, match="UnknownKind"):
        outcome.value()


@pytest.mark.parametrize(
    ("exception", "word", "failed"),
    [
        (ValueError("no such card"), "retried", True),
        (Retry(after="1 h"), "retried", False),
        (Snooze(for_="1 h"), "snoozed", False),
        (Cancel("not wanted"), "cancelled", False),
        (HoldForPerson("who knows"), "held", False),
        (KeyError("x"), "failed", True),
        (SystemExit(1), "retried", True),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
@pytest.mark.parametrize("form", ["sync", "async"])
def test_every_outcome(app, exception, word, failed, form):
    policy = RetryPolicy(rules=[Rule(KeyError, "fail")])

    @app.job(kind="sync", retry=policy)
    def end() -> None:
        raise exception

    @app.job(kind="async", retry=policy)
    async def aend() -> None:
        raise exception

    outcome = run_inline(app, app.jobs[form])
    assert outcome.outcome == word
    assert outcome.exception is exception
    assert outcome.failed is failed
    with pytest.raises(type(exception)):
        outcome.value()


def test_the_attempt_can_be_chosen(app):
    @app.job(context=True, max_attempts=3)
    def charge(ctx, order: int) -> tuple[int, int, int, str]:
        if order < 0:
            raise ValueError(order)
        return ctx.attempt, ctx.max_attempts, ctx.crashes, ctx.reference

    assert run_inline(app, charge, 1).result[:3] == (1, 3, 0)
    assert InlineWorker(app=app, attempt=2, crashes=1).run(charge, 1).result[:3] == (2, 3, 1)
    assert InlineWorker(app=app, attempt=2).run(charge, -1).outcome == "retried"
    assert InlineWorker(app=app, attempt=3).run(charge, -1).outcome == "failed"
    assert InlineWorker(app=app, attempt=3, max_attempts=4).run(charge, -1).outcome == "retried"
    assert run_inline(app, charge.using(max_attempts=1), -1).outcome == "failed"


def test_the_reference_is_one_for_one_job(app):
    @app.job(context=True)
    def charge(ctx) -> str:
        return ctx.reference

    assert run_inline(app, charge).result != run_inline(app, charge).result
    attempts = [InlineWorker(app=app, attempt=number, job_id=5).run(charge).result for number in (1, 2)]
    assert attempts[0] == attempts[1]


def test_the_context_is_a_real_one(app):
    @app.job(context=True, timeout="10 min", queue="cards")
    def charge(ctx) -> None:
        ctx.progress(0.5, "half")
        ctx.check()
        ctx.log.info("here")
        assert ctx.queue == "cards"
        assert timedelta(minutes=9) < ctx.time_left <= timedelta(minutes=10)
        assert not ctx.stopping
        assert not ctx.lease_lost

    outcome = run_inline(app, charge)
    assert outcome.value() is None
    assert outcome.progress == ((0.5, "half"),)


def test_an_async_handler_is_cancelled_at_its_time_out(app):
    @app.job(timeout=0.05)
    async def sleep() -> None:
        await asyncio.sleep(60)

    outcome = run_inline(app, sleep)
    assert outcome.outcome == "retried"
    with pytest.raises(AttemptFailed, match=r"TimedOut.*ran past its time-out"):
        outcome.value()


def test_the_test_s_own_cancellation_ends_the_handler(app):
    ended = []

    @app.job
    async def sleep() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def test() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await arun_inline(app, sleep)
        await asyncio.sleep(0)
        assert ended == [True]

    asyncio.run(test())


@pytest.mark.parametrize("end", [KeyboardInterrupt, pytest.fail.Exception])
def test_what_ends_the_test_is_no_outcome(app, end):
    @app.job
    def charge() -> None:
        raise end("now")

    with pytest.raises(end):
        run_inline(app, charge)


def test_where_a_handler_runs(app):
    local = contextvars.ContextVar("local", default="")

    @app.job
    def here() -> tuple[int, str]:
        return threading.get_ident(), local.get()

    @app.job
    async def there() -> tuple[object, str]:
        return asyncio.get_running_loop(), local.get()

    local.set("seen")
    assert run_inline(app, here).result == (threading.get_ident(), "seen")

    async def test() -> None:
        assert (await arun_inline(app, there)).result == (asyncio.get_running_loop(), "seen")
        thread, value = (await arun_inline(app, here)).result
        assert thread != threading.get_ident()
        assert value == "seen"
        with pytest.raises(ConfigurationError, match="await arun_inline"):
            run_inline(app, there)

    asyncio.run(test())


def test_a_job_made_before_takes_no_arguments(app):
    @app.job
    def charge(order: int) -> int:
        return order

    assert run_inline(app, charge.new(7)).result == 7
    with pytest.raises(ConfigurationError, match="arguments already"):
        run_inline(app, charge.new(7), 8)


@pytest.mark.parametrize("result", [object(), "x" * 70_000, "\0"])
def test_a_result_that_cannot_be_stored_is_dropped(app, result, caplog):
    @app.job
    def charge() -> object:
        return result

    outcome = run_inline(app, charge)
    assert outcome.outcome == "done"
    assert outcome.result is result
    assert outcome.settlement.result is None
    assert "would not be stored" in caplog.text


def test_a_transaction_of_its_own_commits_with_the_handler_or_not_at_all(stored):
    @stored.job(transaction=True)
    def note(connection, text: str) -> None:
        connection.execute("INSERT INTO notes VALUES (%s)", (text,))
        if text == "bad":
            raise ValueError(text)

    @stored.job(transaction=True, context=True)
    async def anote(ctx, connection, text: str) -> None:
        assert ctx.connection is connection
        await connection.execute("INSERT INTO notes VALUES (%s)", (text,))
        if text == "bad":
            raise ValueError(text)

    for job in (note, anote):
        assert run_inline(stored, job, job.kind).value() is None
        assert run_inline(stored, job, "bad").outcome == "retried"
    assert notes(stored) == ["anote", "note"]


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_the_caller_s_transaction_stays_the_caller_s(stored, autocommit, begun):
    @stored.job(transaction=True)
    def note(connection, text: str) -> None:
        connection.execute("INSERT INTO notes VALUES (%s)", (text,))
        if text == "bad":
            raise ValueError(text)

    with psycopg.connect(stored.url, autocommit=autocommit) as connection:
        if begun:
            connection.execute("BEGIN" if autocommit else "SELECT 1")
        run_inline(stored, note.using(tx=connection), "good").value()
        assert run_inline(stored, note.using(tx=connection), "bad").failed
        inside = connection.execute("SELECT text FROM notes").fetchall()
        assert inside == [("good",)]
        connection.execute("ROLLBACK") if autocommit else connection.rollback()
    assert notes(stored) == (["good"] if autocommit and not begun else [])


def test_the_caller_s_async_transaction(stored):
    @stored.job(transaction=True)
    async def note(connection, text: str) -> None:
        await connection.execute("INSERT INTO notes VALUES (%s)", (text,))
        if text == "bad":
            raise ValueError(text)

    async def test() -> None:
        async with await psycopg.AsyncConnection.connect(stored.url) as connection:
            (await arun_inline(stored, note.using(tx=connection), "good")).value()
            assert (await arun_inline(stored, note.using(tx=connection), "bad")).failed
            cursor = await connection.execute("SELECT text FROM notes")
            assert await cursor.fetchall() == [("good",)]
            await connection.rollback()

    asyncio.run(test())
    assert notes(stored) == []


def test_a_connection_that_workers_do_not_give_is_refused(stored):
    @stored.job(transaction=True)
    def note(connection) -> None: ...

    engine = sa.create_engine(stored.url.replace("postgresql://", "postgresql+psycopg://"))
    with (
        engine.connect() as connection,
        pytest.raises(ConfigurationError, match=r"takes a psycopg\.Connection.*sqlalchemy"),
    ):
        run_inline(stored, note.using(tx=connection))
    engine.dispose()


def test_a_database_that_is_away_is_the_attempt_s_error(app):
    @app.job(transaction=True)
    def note(connection) -> None: ...

    outcome = run_inline(app, note)
    assert outcome.outcome == "retried"
    assert outcome.settlement.error.type == "semel.errors.DatabaseUnreachable"
