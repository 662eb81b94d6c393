"""How an attempt can end, and what is stored of it. (DESIGN 4.5.)"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.worker.helpers import ask, drain, make_app, show

from semel import App, Backoff, Cancel, HoldForPerson, Retry, RetryPolicy, Rule, Snooze
from semel.core.report import JobRecord

AT_ONCE = Backoff(base=0)


@pytest.fixture
def app(database_url: str) -> App:
    return make_app(database_url)


@pytest.fixture
def run(app: App, database_url: str) -> Callable[..., JobRecord]:
    """Run one job, with this handler and these options, until nothing is due; answers what is stored of it."""

    def run(body: Callable[[], Any], **options: Any) -> JobRecord:
        async def handler() -> Any:
            return body()

        job = app.job(kind="case", **options)(handler).enqueue()
        drain(app)
        return show(database_url, job.id)

    return run


def raising(error: BaseException) -> Callable[[], Any]:
    def body() -> Any:
        raise error

    return body


def left(record: JobRecord) -> float:
    """Seconds until the next attempt, from the end of the last."""
    return (record.job.run_at - record.as_of).total_seconds()


def test_a_handler_that_returns_is_done_and_its_result_is_kept(run: Callable[..., JobRecord]) -> None:
    record = run(lambda: {"sent": [1, 2], "to": "é"})
    assert (record.job.status, record.job.attempts, record.in_history) == ("done", 1, True)
    assert record.result == {"sent": [1, 2], "to": "é"}
    assert record.errors == ()


@pytest.mark.parametrize(
    "result",
    [object(), "x" * 70_000, "a NUL \0", "half \ud800", {1: {2: {3}}, "f": print}],
    ids=["no JSON", "too large", "NUL", "surrogate", "nested"],
)
def test_a_result_that_cannot_be_stored_is_dropped_with_a_warning(
    run: Callable[..., JobRecord], caplog: pytest.LogCaptureFixture, result: Any
) -> None:
    with caplog.at_level(logging.WARNING, "semel.worker"):
        record = run(lambda: result)
    assert (record.job.status, record.result) == ("done", None)
    assert [f"job {record.job.id}: its result is not stored" in line for line in caplog.messages] == [True]


def test_an_error_is_retried_after_the_backoff_with_its_traceback_kept(
    run: Callable[..., JobRecord],
) -> None:
    """9: the backoff stays within its bounds in the database: 8 s, half of it random."""
    record = run(raising(ValueError("no such order")), retry=RetryPolicy(backoff=Backoff(base="8 s")))
    assert (record.job.status, record.job.attempts) == ("pending", 1)
    (error,) = record.errors
    assert (error["attempt"], error["type"], error["message"]) == (1, "ValueError", "no such order")
    assert "in body" in error["traceback"]
    at = datetime.fromisoformat(error["at"])
    assert timedelta(seconds=4) <= record.job.run_at - at <= timedelta(seconds=8.1)
    assert record.job.last_error == "ValueError: no such order"


def test_9_backoff_grows_within_its_bounds_in_the_database(app: App, database_url: str) -> None:
    """2, 4, 8 s … at most an hour, half of it random."""

    @app.job(max_attempts=40)
    async def charge() -> None:
        raise RuntimeError

    jobs = charge.enqueue_many([()] * 60)
    ids = [job.id for job in jobs]
    ask(database_url, "UPDATE jobs SET attempts = id %% 20 WHERE id = ANY (%s)", ids)
    drain(app)
    rows = ask(
        database_url,
        """SELECT attempts, extract(epoch FROM run_at - CAST(errors -> 0 ->> 'at' AS timestamptz))::float FROM jobs""",
    )
    assert len(rows) == 60
    for attempts, delay in rows:
        full = min(2.0**attempts, 3600)
        assert full / 2 - 0.1 <= delay <= full + 0.1, attempts
    shares = [delay / min(2.0**attempts, 3600) for attempts, delay in rows]
    assert min(shares) < 0.7
    assert max(shares) > 0.8


def test_at_max_attempts_it_fails_and_the_last_ten_errors_are_kept(
    run: Callable[..., JobRecord],
) -> None:
    numbers = iter(range(1, 20))

    def body() -> None:
        raise RuntimeError(f"number {next(numbers)}")

    record = run(body, retry=RetryPolicy(max_attempts=12, backoff=AT_ONCE))
    assert (record.job.status, record.job.attempts, record.in_history) == ("failed", 12, False)
    assert [error["message"] for error in record.errors] == [f"number {each}" for each in range(3, 13)]
    assert [error["attempt"] for error in record.errors] == list(range(3, 13))
    assert all("RuntimeError" in error["traceback"] for error in record.errors)
    assert record.job.finished_at is not None


def test_retry_at(run: Callable[..., JobRecord]) -> None:
    at = datetime(2100, 1, 1, tzinfo=UTC)
    record = run(raising(Retry(at=at, reason="after the party")))
    assert (record.job.status, record.job.attempts, record.job.run_at) == ("pending", 1, at)
    assert record.errors[0]["message"] == "after the party"


def test_retry_after(run: Callable[..., JobRecord]) -> None:
    record = run(raising(Retry(after="1 h")))
    assert (record.job.status, record.job.attempts) == ("pending", 1)
    assert 3500 < left(record) <= 3600


def test_retry_is_charged_so_it_ends_at_max_attempts(run: Callable[..., JobRecord]) -> None:
    record = run(raising(Retry(after=0)), max_attempts=3)
    assert (record.job.status, record.job.attempts) == ("failed", 3)


def test_snooze_charges_nothing(run: Callable[..., JobRecord]) -> None:
    """Four snoozes of a job with two attempts, and it still has both."""
    outcomes = iter([Snooze(for_=0)] * 4 + [Snooze(for_="1 h", reason="the bank is closed")])
    record = run(lambda: raising(next(outcomes))(), max_attempts=2)
    assert (record.job.status, record.job.attempts, record.errors) == ("pending", 0, ())
    assert record.job.last_error == "the bank is closed"
    assert 3500 < left(record) <= 3600


def test_snooze_until(run: Callable[..., JobRecord]) -> None:
    until = datetime(2100, 1, 1, tzinfo=UTC)
    record = run(raising(Snooze(until=until)))
    assert (record.job.run_at, record.job.attempts) == (until, 0)


def test_cancel(run: Callable[..., JobRecord]) -> None:
    record = run(raising(Cancel("the order was withdrawn")))
    assert (record.job.status, record.in_history) == ("cancelled", True)
    assert record.job.last_error == "the order was withdrawn"


def test_hold_for_person(run: Callable[..., JobRecord]) -> None:
    record = run(raising(HoldForPerson("was it charged?")))
    assert (record.job.status, record.in_history) == ("held", False)
    assert record.job.last_error is not None
    assert "was it charged?" in record.job.last_error


@pytest.mark.parametrize(
    ("action", "status"),
    [
        ("fail", "failed"),
        ("cancel", "cancelled"),
        ("hold", "held"),
        (timedelta(hours=1), "pending"),
        (Snooze(for_="1 h"), "pending"),
        (lambda error, attempt: None, "failed"),
    ],
)
def test_a_rule_decides_about_its_exceptions_and_the_error_is_kept(
    run: Callable[..., JobRecord], action: Any, status: str
) -> None:
    record = run(raising(KeyError("order")), retry=RetryPolicy(rules=(Rule(LookupError, action),)))
    assert record.job.status == status
    assert [error["type"] for error in record.errors] == ["KeyError"]
    if status == "pending":
        assert 3500 < left(record) <= 3600
        assert record.job.attempts == (0 if isinstance(action, Snooze) else 1)


def test_a_custom_policy_decides(run: Callable[..., JobRecord]) -> None:
    seen: list[tuple[str, int]] = []

    def policy(error: BaseException, attempt: int) -> timedelta | None:
        seen.append((str(error), attempt))
        return timedelta(0) if attempt < 3 else None

    record = run(raising(RuntimeError("down")), retry=policy)
    assert seen == [("down", 1), ("down", 2), ("down", 3)]
    assert (record.job.status, record.job.attempts) == ("failed", 3)


def test_a_policy_that_raises_costs_nothing_but_its_say(run: Callable[..., JobRecord]) -> None:
    def policy(error: BaseException, attempt: int) -> None:
        raise ZeroDivisionError

    record = run(raising(RuntimeError("down")), retry=policy)
    assert record.job.status == "pending"
    assert "policy raised ZeroDivisionError" in record.errors[0]["reason"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
@pytest.mark.parametrize("flavour", ["async", "sync"])
def test_an_exit_in_a_handler_is_its_error_not_the_worker_s_end(
    app: App, database_url: str, error: BaseException, flavour: str
) -> None:
    async def leaves() -> None:
        raise error

    def leaves_at_once() -> None:
        raise error

    handler = app.job(kind="leaves")(leaves if flavour == "async" else leaves_at_once)
    job = handler.enqueue()
    drain(app)
    record = show(database_url, job.id)
    assert (record.job.status, record.errors[0]["type"]) == ("pending", type(error).__name__)


def test_an_error_that_cannot_be_stored_as_it_is_still_ends_the_attempt(
    run: Callable[..., JobRecord],
) -> None:
    record = run(raising(ValueError("NUL \0, half a pair \ud800, and long " + "x" * 1_000_000)))
    assert record.job.status == "pending"
    assert record.errors[0]["message"].startswith("NUL \ufffd, half a pair \ufffd")
