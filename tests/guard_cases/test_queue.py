"""The guard on the semel queue: what each answer makes of the job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.guard_cases.conftest import Case

import semel
from semel import JobContext
from semel.testing import drain


@pytest.fixture
def shop(target: str, database_url: str, tmp_path: Path) -> Iterator[Case]:
    """The record beside the job, or in another kind of database."""
    beside = target.startswith("postgresql")
    made = Case(database_url if beside else target, tmp_path / "effects")
    yield made
    made.close()


@pytest.fixture
def shop_beside(database_url: str, tmp_path: Path) -> Iterator[Case]:
    """For a `Row()`, whose record is where the job is."""
    made = Case(database_url, tmp_path / "effects")
    yield made
    made.close()


@pytest.fixture
def app(database_url: str) -> Iterator[semel.App]:
    with semel.App(database_url) as made:
        yield made


def job_of(app: semel.App, shop: Case, **options: Any) -> Any:
    guarding: Any = shop.once.operation(
        shop.job, key="order", acting="explicit", **({"payload": ()} | options)
    )

    @app.job(kind="charge", once=guarding)
    def charge(op: semel.Operation, order: int, amount: int = 10) -> str:
        shop.at("claimed")
        with op.acting():
            shop.effect(op.reference)
            shop.at("acted")
        return str(op.done(f"charge of {order}"))

    return charge


def jobs(database_url: str) -> list[tuple[str, int, Any]]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "SELECT status, attempts, result FROM semel.all_jobs ORDER BY id"
        ).fetchall()


def test_f49_two_jobs_of_one_operation_have_one_effect(app: semel.App, shop: Case, database_url: str) -> None:
    charge = job_of(app, shop)
    charge.enqueue(order=1)
    charge.enqueue(order=1)
    drain(app)
    assert [row[0] for row in jobs(database_url)] == ["done", "done"]
    assert [row[2] for row in jobs(database_url)] == ["charge of 1"] * 2
    assert len(shop.effects) == 1


def test_c10_in_progress_is_never_a_success(app: semel.App, shop: Case, database_url: str) -> None:
    charge = job_of(app, shop)
    with shop.claim() as rival:
        charge.enqueue(order=1)
        drain(app)
        ((status, attempts, _),) = jobs(database_url)
        assert (status, attempts) == ("pending", 0), "it comes again, and no attempt is charged"
        with rival.acting():
            pass
        rival.done("by another")


def test_f05_a_lost_claim_ends_no_worker(app: semel.App, shop: Case, database_url: str) -> None:
    charge = job_of(app, shop, effect=semel.AcceptDuplicate(), lease="5 min")

    def taken_over() -> None:
        shop.later(1000)
        with shop.claim(semel.AcceptDuplicate()) as rival:
            with rival.acting():
                pass
            rival.done("by another")

    shop.hooks["acted"] = taken_over
    charge.enqueue(order=1)
    charge.enqueue(order=2)
    drain(app, skip_waiting=True)
    assert [row[0] for row in jobs(database_url)] == ["done", "done"]
    assert jobs(database_url)[0][2] == "by another", "its next delivery asks the record"


def test_c11_a_job_that_died_before_its_own_end_is_done_by_the_record(
    app: semel.App, shop: Case, database_url: str
) -> None:
    charge = job_of(app, shop)
    charge.enqueue(order=1)
    with shop.claim() as before:
        with before.acting():
            shop.effect("before")
        before.done("charge of 1")
    drain(app)
    assert jobs(database_url)[0][0] == "done"
    assert shop.effects == ["before"]


def test_c06_an_uncertain_job_is_held(app: semel.App, shop: Case, database_url: str) -> None:
    charge = job_of(app, shop)

    def fail() -> None:
        raise ConnectionResetError("connection reset")

    shop.hooks["acted"] = fail
    charge.enqueue(order=1)
    drain(app, skip_waiting=True)
    assert jobs(database_url)[0][0] == "held"
    assert (shop.state, len(shop.effects)) == ("held", 1)


@pytest.mark.parametrize("answer", ["held", "abandoned", "in progress", "another payload"])
def test_the_answer_of_an_operation_inside_is_an_exception_of_the_job(
    app: semel.App, shop: Case, database_url: str, answer: str
) -> None:
    """It is retried as any exception is, and held, cancelled or failed for good by no answer but its own."""
    errors: dict[str, Exception] = {
        "held": semel.Held("part is held"),
        "abandoned": semel.Abandoned("part is abandoned"),
        "in progress": semel.InProgress("part is claimed"),
        "another payload": semel.PayloadMismatch("part came before"),
    }
    answers = iter([errors[answer]])

    def ask_inside() -> None:
        with shop.once.claim("part", 1, acting="explicit"):
            for error in answers:
                raise error

    shop.hooks["claimed"] = ask_inside
    charge = job_of(app, shop)
    charge.enqueue(order=1)
    told = drain(app, skip_waiting=True).outcomes
    assert [each.outcome.value for each in told] == ["retried", "done"]
    assert jobs(database_url)[0][:2] == ("done", 2), "the first attempt was charged"
    assert (shop.state, len(shop.effects)) == ("completed", 1)


def test_c52_another_payload_fails_at_once(app: semel.App, shop: Case, database_url: str) -> None:
    charge = job_of(app, shop, payload=("amount",))
    charge.enqueue(order=1, amount=10)
    charge.enqueue(order=1, amount=20)
    drain(app)
    assert [row[:2] for row in jobs(database_url)] == [("done", 1), ("failed", 1)]


def test_c25_nothing_depends_on_how_long_a_job_waited(app: semel.App, shop: Case, database_url: str) -> None:
    charge = job_of(app, shop)
    charge.enqueue(order=1)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE semel.jobs SET created_at = now() - interval '400 days'")
    drain(app)
    assert jobs(database_url)[0][0] == "done"
    assert len(shop.effects) == 1


def test_f40_a_row_and_the_end_of_its_job_are_one_commit(
    app: semel.App, shop_beside: Case, database_url: str
) -> None:
    shop = shop_beside
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE paid (number integer)")
    seen: list[int] = []

    @app.job(kind="pay", context=True, once=shop.once.operation(shop.job, key="order", effect=semel.Row()))
    def pay(op: semel.Operation, context: JobContext, order: int) -> str:
        op.connection.execute("INSERT INTO paid VALUES (%s)", (order,))
        seen.append(context.job_id)
        shop.at("paid")
        return "paid"

    def lost() -> None:
        with psycopg.connect(database_url) as connection:
            connection.execute("UPDATE semel.jobs SET status = 'pending' WHERE kind = 'pay'")

    shop.hooks["paid"] = lost  # the job's fence moves on: zero rows at its end roll back everything
    pay.enqueue(order=1)
    drain(app)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT number FROM paid").fetchall() == [(1,)]
    assert len(seen) == 2
    assert jobs(database_url)[0][0] == "done"
    assert shop.state == "completed"


def test_a_job_over_a_guarded_function_is_refused(app: semel.App) -> None:
    """Stacked the other way, the job would retry what is held, instead of being held itself."""
    once = semel.Once(app)

    @once.operation("stacked", key="order")
    def stacked(op: semel.Operation, order: int) -> None: ...

    with pytest.raises(semel.ConfigurationError, match="once="):
        app.job(stacked)
    once.close()
