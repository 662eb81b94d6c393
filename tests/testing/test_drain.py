"""Draining the queue: the real engine, until nothing is due, with what it did and what it could not do."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from datetime import timedelta

import psycopg
import pytest

from semel import App, Backoff, Cancel, ConfigurationError, HoldForPerson, Retry, RetryPolicy, Snooze
from semel.testing import AttemptFailed, DrainIncomplete, adrain, drain, enqueued, inline


def statuses(app: App) -> list[str]:
    return [row.status.value for row in enqueued(app)]


def test_everything_due_is_run_and_counted(app):
    ran = []

    @app.job
    def charge(order: int) -> str:
        ran.append(order)
        return f"charged {order}"

    charge.enqueue_many([(1,), (2,), (3,)])
    drained = drain(app)
    assert ran == [1, 2, 3]
    assert drained.counts == {"done": 3, "retried": 0, "snoozed": 0, "cancelled": 0, "held": 0, "failed": 0}
    assert [outcome.result for outcome in drained.of("charge")] == ["charged 1", "charged 2", "charged 3"]
    assert statuses(app) == ["done"] * 3


def test_an_empty_queue_is_drained_at_once(app):
    assert drain(app).outcomes == ()


def test_jobs_that_jobs_enqueue_are_run_too(app):
    ran = []

    @app.job
    async def count(number: int) -> None:
        ran.append(number)
        if number:
            await count.aenqueue(number - 1)

    count.enqueue(5)
    assert drain(app).counts["done"] == 6
    assert ran == [5, 4, 3, 2, 1, 0]


def test_every_outcome_is_told_with_its_exception(app):
    @app.job
    def end(how: str) -> None:
        match how:
            case "raise":
                raise ValueError("no such card")
            case "retry":
                raise Retry(after="1 h")
            case "snooze":
                raise Snooze(for_="1 h")
            case "cancel":
                raise Cancel("not wanted")
            case "hold":
                raise HoldForPerson("who knows")

    for how in ("raise", "retry", "snooze", "cancel", "hold", "return"):
        end.enqueue(how)
    end.using(max_attempts=1).enqueue("raise")
    drained = drain(app)
    words = [outcome.outcome for outcome in drained.outcomes]
    assert words == ["retried", "retried", "snoozed", "cancelled", "held", "done", "failed"]
    kinds = [type(outcome.exception) for outcome in drained.outcomes]
    assert kinds == [ValueError, Retry, Snooze, Cancel, HoldForPerson, type(None), ValueError]
    assert [outcome.failed for outcome in drained.outcomes] == [True, False, False, False, False, False, True]
    assert drained.outcomes[3].settlement.reason == "not wanted"
    assert statuses(app) == ["pending", "pending", "pending", "cancelled", "held", "done", "failed"]


def test_context_and_transaction_jobs_get_what_they_declared(app, database_url):
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE notes (text text)")

    @app.job(context=True)
    def with_context(ctx, text: str) -> str:
        return f"{ctx.kind} {ctx.attempt} {text}"

    @app.job(transaction=True)
    async def with_connection(connection, text: str) -> str:
        await connection.execute("INSERT INTO notes VALUES (%s)", (text,))
        return text

    @app.job(context=True, transaction=True)
    def with_both(ctx, connection, text: str) -> str:
        assert ctx.connection is connection
        connection.execute("INSERT INTO notes VALUES (%s)", (text,))
        return text

    with_context.enqueue("a")
    with_connection.enqueue("b")
    with_both.enqueue("c")
    drained = drain(app, raise_errors=True)
    assert [outcome.result for outcome in drained.outcomes] == ["with_context 1 a", "b", "c"]
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT text FROM notes ORDER BY text").fetchall() == [("b",), ("c",)]


def test_the_first_error_is_raised_itself_on_request(app):
    ran = []

    @app.job
    def charge(order: int) -> None:
        ran.append(order)
        if order == 2:
            raise ValueError("no such card")

    charge.enqueue_many([(1,), (2,)])
    with pytest.raises(ValueError, match="no such card") as caught:
        drain(app, raise_errors=True)
    assert caught.traceback[-1].name == "charge"
    assert ran == [1, 2]


def test_outcomes_that_a_handler_chose_are_no_errors(app):
    @app.job
    def wait() -> None:
        raise Snooze(for_="1 h")

    wait.enqueue()
    assert drain(app, raise_errors=True).counts["snoozed"] == 1


def test_a_retry_too_many_is_an_error(app):
    @app.job(max_attempts=1)
    def wait() -> None:
        raise Retry(after="1 h")

    wait.enqueue()
    with pytest.raises(Retry):
        drain(app, raise_errors=True)


def test_an_error_without_an_exception_is_raised_with_what_is_known(app, database_url):
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO semel.jobs (kind) VALUES ('chrage')")
    with pytest.raises(AttemptFailed, match=r"chrage.*UnknownKind.*no handler for the kind"):
        drain(app, raise_errors=True)


def test_a_time_out_is_told_as_such(app):
    @app.job(timeout=0.05, max_attempts=1)
    async def sleep() -> None:
        await asyncio.sleep(60)

    sleep.enqueue()
    (outcome,) = drain(app).outcomes
    assert outcome.outcome == "failed"
    assert outcome.exception is None
    assert outcome.settlement.error.type == "semel.errors.TimedOut"


def test_delayed_jobs_and_retries_are_left_alone(app):
    @app.job
    def fail() -> None:
        raise ValueError

    fail.enqueue()
    fail.using(run_after="1 h").enqueue()
    assert drain(app).counts["retried"] == 1
    assert statuses(app) == ["pending", "pending"]


def test_waiting_is_skipped_on_request_in_the_order_of_time(app):
    ran = []

    @app.job(max_attempts=3)
    def step(name: str, *, fails: int = 0) -> None:
        ran.append(name)
        if fails and ran.count(name) <= fails:
            raise ValueError(name)

    step.using(run_after="3 h").enqueue("third")
    step.using(run_after="1 h").enqueue("first", fails=1)
    step.using(run_after="2 h").enqueue("second")
    step.enqueue("now", fails=9)
    drained = drain(app, skip_waiting=True)
    assert ran[0] == "now"
    assert [name for name in ran if name in ("first", "second", "third")][:3] == ["first", "second", "third"]
    assert ran.count("now") == 3
    assert ran.count("first") == 2
    assert drained.counts["failed"] == 1
    assert drained.counts["done"] == 3
    assert drained.counts["retried"] == 3


def test_until_empty_waits_for_what_is_delayed(app):
    @app.job(retry=RetryPolicy(backoff=Backoff(base=0.05)), max_attempts=2)
    def fail() -> None:
        raise ValueError

    fail.enqueue()
    assert drain(app, until="empty").counts == drain(app).counts | {"retried": 1, "failed": 1}
    assert statuses(app) == ["failed"]


def test_only_the_named_queues_are_drained(app):
    @app.job
    def charge() -> None: ...

    charge.using(queue="mail").enqueue()
    charge.using(queue="cards").enqueue()
    assert drain(app, queues=["cards"], until="empty", skip_waiting=True).counts["done"] == 1
    assert {row.queue: row.status.value for row in enqueued(app)} == {"mail": "pending", "cards": "done"}


def test_a_job_that_enqueues_itself_without_end_is_noticed(app):
    @app.job
    def again() -> None:
        again.enqueue()

    again.enqueue()
    with pytest.raises(DrainIncomplete, match=r"attempts have run \(limit=20\)") as caught:
        drain(app, limit=20)
    assert "again" in str(caught.value)


def test_a_job_that_snoozes_without_end_is_noticed(app):
    @app.job
    def never() -> None:
        raise Snooze(for_="1 h")

    never.enqueue()
    with pytest.raises(DrainIncomplete, match=r"attempts have run \(limit=5\)") as caught:
        drain(app, limit=5, skip_waiting=True)
    assert "The last attempt:\n  job 1 never, attempt 1 of 8: snoozed" in str(caught.value)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_time_limit_names_what_still_runs(app, kind):
    released = threading.Event()

    @app.job(kind="stuck")
    def stuck(order: int) -> None:
        released.wait(60)

    @app.job(kind="astuck")
    async def astuck(order: int) -> None:
        await asyncio.sleep(60)

    (stuck if kind == "sync" else astuck).enqueue(7)
    stuck.using(queue="other").enqueue(8)
    threading.Timer(1.5, released.set).start()
    began = time.monotonic()
    with pytest.raises(DrainIncomplete) as caught:
        drain(app, within=0.5, queues=["default"])
    took = time.monotonic() - began
    name = "stuck" if kind == "sync" else "astuck"
    said = re.search(rf"Still running:\n  job 1 {name}, attempt 1 of 8, for (\d+\.\d) s", str(caught.value))
    assert said is not None, str(caught.value)
    assert float(said[1]) < took
    assert "within=0.5 s" in str(caught.value)
    assert statuses(app) == ["pending", "pending"]


def test_the_time_limit_names_what_waits(app):
    @app.job
    def charge() -> None: ...

    charge.using(run_after="1 h").enqueue()
    with pytest.raises(
        DrainIncomplete, match=r"Nothing runs\.\nLeft to do:\n  job 1 charge, due in 3\d\d\d s"
    ):
        drain(app, until="empty", within=0.2)


def test_the_asyncio_form_runs_on_the_test_s_own_loop(app):
    loops = []

    @app.job
    async def charge() -> None:
        loops.append(asyncio.get_running_loop())

    async def test() -> None:
        async with app:
            await charge.aenqueue()
            drained = await adrain(app)
            assert drained.counts["done"] == 1
            assert loops == [asyncio.get_running_loop()]
            with pytest.raises(ConfigurationError, match="adrain"):
                drain(app)

    asyncio.run(test())


def test_uncommitted_jobs_are_not_there_to_run(app, database_url):
    @app.job
    def charge() -> None: ...

    with psycopg.connect(database_url) as connection:
        charge.using(tx=connection).enqueue()
        assert drain(app).outcomes == ()
        connection.commit()
        assert drain(app).counts["done"] == 1


def test_a_job_taken_over_meanwhile_is_counted_as_lost(app, database_url):
    @app.job
    def charge() -> None:
        with psycopg.connect(database_url) as connection:
            connection.execute("UPDATE semel.jobs SET status = 'pending'")
            connection.execute("UPDATE semel.jobs SET status = 'running'")

    charge.enqueue()
    assert drain(app).lost == 1
    assert statuses(app) == ["running"]


def test_the_application_s_settings_hold(app):
    copy = app.with_database(app.url, max_crashes=1)

    @copy.job
    def charge() -> None: ...

    charge.enqueue()
    with psycopg.connect(app.url) as connection:
        connection.execute("UPDATE semel.jobs SET status = 'running'")
        connection.execute("UPDATE semel.jobs SET locked_until = now() - interval '1 s'")
    assert drain(copy).outcomes == ()
    assert statuses(copy) == ["failed"]


def test_several_run_at_once_on_request(app):
    barrier = threading.Barrier(3)

    @app.job
    def meet(number: int) -> int:
        return barrier.wait(10)

    meet.enqueue_many([(1,), (2,), (3,)])
    assert drain(app, concurrency=3, raise_errors=True).counts["done"] == 3


def test_wrong_calls_are_refused(app):
    with pytest.raises(ConfigurationError, match="until is 'idle'"):
        drain(app, until="idle")
    with inline(app), pytest.raises(ConfigurationError, match="nothing to drain"):
        drain(app)


def test_retries_keep_their_attempts(app):
    seen = []

    @app.job(context=True, max_attempts=4)
    def fail(ctx) -> None:
        seen.append((ctx.attempt, ctx.reference))
        raise ValueError

    fail.enqueue()
    drained = drain(app, skip_waiting=True)
    assert [attempt for attempt, _ in seen] == [1, 2, 3, 4]
    assert len({reference for _, reference in seen}) == 1
    assert drained.outcomes[0].settlement.delay > timedelta(0)
    assert [outcome.outcome for outcome in drained.outcomes] == ["retried"] * 3 + ["failed"]
