"""A declared job: called, enqueued, bound to options; what it takes is checked when it is declared or enqueued."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from semel import (
    App,
    ArgumentError,
    Backoff,
    ConfigurationError,
    JobOptions,
    NewJob,
    RetryPolicy,
    Rule,
)

if TYPE_CHECKING:
    from semel.queue.context import JobContext

SOON = datetime(2040, 1, 1, tzinfo=UTC)


@dataclass
class Address:
    street: str
    number: int


@pytest.fixture
def lonely() -> App:
    """An application without any database: declaring needs none."""
    return App("postgresql://nobody@127.0.0.1:1/none")


def test_calling_a_job_runs_its_function(lonely):
    @lonely.job
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    @lonely.job
    async def later(a: int) -> int:
        return a

    assert add(1) == 3
    assert add.function(1, b=1) == 2
    assert asyncio.run(later(5)) == 5
    assert (add.__name__, add.__doc__, add.__module__) == ("add", "Adds.", __name__)
    assert (add.is_async, later.is_async) == (False, True)


def test_a_job_with_a_context_cannot_be_called_without_one(lonely):
    @lonely.job(context=True)
    def with_context(ctx: JobContext, a: int) -> int:
        return a

    @lonely.job(transaction=True)
    def with_connection(connection: Any, a: int) -> int:
        return a

    for job in (with_context, with_connection):
        with pytest.raises(ConfigurationError, match=rf"{job.kind}\.function"):
            job(1)
        assert job.function(None, 1) == 1


def test_leading_parameters_are_not_arguments(lonely):
    @lonely.job(context=True, transaction=True)
    def both(ctx: JobContext, connection: Any, order: int, *, note: str = "") -> None: ...

    assert both.new(1, note="x").payload == b'{"order":1,"note":"x"}'
    assert both.signature.decode(b'{"order":1}') == ((1,), {"note": ""})
    with pytest.raises(ArgumentError):
        both.new(None, None, 1)


@pytest.mark.parametrize(
    "options", [{"context": True}, {"transaction": True}, {"context": True, "transaction": True}]
)
def test_leading_parameters_must_be_there(lonely, options):
    with pytest.raises(ConfigurationError, match="worker fills in"):

        @lonely.job(**options)
        def nothing() -> None: ...


def test_typed_arguments_are_stored_as_json(app, ask):
    @app.job
    def ship(order: UUID, to: Address, at: datetime, parts: list[int] | None = None) -> None: ...

    order = UUID(int=7)
    ship.enqueue(order, Address("Via Appia", 1), SOON)
    ship.enqueue(order, to=Address("Via Appia", 1), at=SOON, parts=[1])
    payload = {"order": str(order), "to": {"street": "Via Appia", "number": 1}, "at": "2040-01-01T00:00:00Z"}
    assert ask("SELECT payload FROM semel.jobs ORDER BY id") == [(payload,), ({**payload, "parts": [1]},)]
    with pytest.raises(ArgumentError) as caught:
        ship.enqueue(order, Address("Via Appia", "one"), SOON)
    assert caught.value.argument == "to"


def test_options_come_from_the_call_then_the_job_then_the_application(lonely, database_url):
    app = App(database_url, max_attempts=4, timeout="1 min")

    @app.job
    def plain() -> None: ...

    @app.job(kind="mail.send", queue="mail", priority=5, max_attempts=2, timeout=None)
    def mail() -> None: ...

    assert plain.options() == JobOptions(max_attempts=4)
    assert plain.timeout == timedelta(minutes=1)
    assert (mail.kind, mail.timeout) == ("mail.send", None)
    assert mail.options() == JobOptions(queue="mail", priority=5, max_attempts=2)
    bound = mail.using(
        queue="slow", priority=-1, run_after="1 h", unique_key="k", unique_for=60, ordering_key="o"
    )
    assert bound.new() == NewJob(
        "mail.send",
        b"{}",
        JobOptions(
            queue="slow",
            priority=-1,
            max_attempts=2,
            run_after=timedelta(hours=1),
            unique_key="k",
            unique_for=timedelta(minutes=1),
            ordering_key="o",
        ),
    )


def test_run_after_takes_a_datetime_as_djangos_tasks_do(charge, ask):
    assert charge.using(run_after=SOON).new(1) == charge.using(run_at=SOON).new(1)
    charge.using(run_after=SOON).enqueue(1)
    charge.using(run_after=timedelta(hours=2)).enqueue(1)
    (first,), (second,) = ask("SELECT run_at FROM semel.jobs ORDER BY id")
    ((now,),) = ask("SELECT now()")
    assert first == SOON
    assert timedelta(minutes=119) < second - now < timedelta(hours=2)


@pytest.mark.parametrize(
    "options",
    [
        {"run_after": SOON, "run_at": SOON},
        {"run_after": "1 h", "run_at": SOON},
        {"run_at": datetime(2040, 1, 1)},  # noqa: DTZ001
        {"run_after": -1},
        {"run_after": "soon"},
        {"priority": 101},
        {"queue": ""},
        {"max_attempts": 0},
        {"unique_key": ""},
        {"unique_for": "1 h"},
    ],
    ids=str,
)
def test_options_that_cannot_be_right_are_refused_before_anything_is_stored(lonely, options):
    @lonely.job
    def charge() -> None: ...

    with pytest.raises(ConfigurationError):
        charge.using(**options)


def test_many_take_tuples_dicts_and_new_jobs(app, charge, ask):
    @app.job
    def other() -> None: ...

    own = charge.using(priority=9).new(3)
    answers = charge.using(priority=1).enqueue_many(iter([(1,), {"order": 2, "note": "x"}, own, other.new()]))
    assert ask("SELECT id, kind, payload, priority FROM semel.jobs ORDER BY id") == [
        (answers[0].id, "charge", {"order": 1}, 1),
        (answers[1].id, "charge", {"order": 2, "note": "x"}, 1),
        (answers[2].id, "charge", {"order": 3}, 9),
        (answers[3].id, "other", {}, 0),
    ]
    assert charge.enqueue_many([]) == []
    assert [each.created for each in app.enqueue_many([own, other.new()])] == [True, True]


@pytest.mark.parametrize("wrong", [1, "text", [1], None])
def test_many_refuse_what_is_no_job(charge, wrong):
    with pytest.raises(ConfigurationError, match="tuples"):
        charge.enqueue_many([(1,), wrong])


def test_one_wrong_item_and_none_is_stored(charge, ask):
    with pytest.raises(ArgumentError) as caught:
        charge.enqueue_many([(1,), ("x",)])
    assert caught.value.argument == "order"
    assert ask("SELECT count(*) FROM semel.jobs") == [(0,)]


def test_async_calls_do_the_same(app, charge, ask):
    async def main():
        async with app:
            first = await charge.aenqueue(1)
            second, third = await charge.aenqueue_many([(2,), {"order": 3}])
            (fourth,) = await app.aenqueue_many([charge.new(4)])
            again = await charge.using(unique_key="k").aenqueue(5)
            last = await charge.using(unique_key="k").aenqueue(6)
            assert await charge.aenqueue_many([]) == []
        return [first, second, third, fourth, again], last

    answers, last = asyncio.run(main())
    assert ask("SELECT id, payload FROM semel.jobs ORDER BY id") == [
        (answer.id, {"order": place}) for place, answer in enumerate(answers, 1)
    ]
    assert (last.id, last.created) == (answers[-1].id, False)


class TestDeclaration:
    def test_two_jobs_of_one_kind_are_refused_and_named(self, lonely):
        @lonely.job
        def charge() -> None: ...

        with pytest.raises(ConfigurationError, match=r"kind 'charge'.*test_job"):
            lonely.job(kind="charge")(lambda: None)
        assert list(lonely.jobs) == ["charge"]
        with pytest.raises(TypeError):
            lonely.jobs["x"] = charge

    def test_a_lambda_needs_a_kind(self, lonely):
        with pytest.raises(ConfigurationError, match="kind="):
            lonely.job(lambda a: None)
        assert lonely.job(kind="named")(lambda a: a).new(1).payload == b'{"a":1}'

    def test_a_generator_is_no_handler(self, lonely):
        def generator():
            yield

        async def async_generator():
            yield

        for wrong in (generator, async_generator):
            with pytest.raises(ConfigurationError, match="generator"):
                lonely.job(wrong)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"run_in": "moon"}, "run_in"),
            ({"run_in": "process", "transaction": True}, "another process"),
            ({"colour": "red"}, "colour"),
            ({"priority": 1000}, "priority"),
            ({"queue": ""}, "queue"),
            ({"timeout": "soon"}, "timeout of handler"),
            ({"max_attempts": 0}, "max_attempts"),
            ({"retry": 3}, "RetryPolicy"),
            ({"kind": "x" * 300}, "kind"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_options_that_cannot_be_right_are_refused(self, lonely, options, message):
        def handler(connection=None) -> None: ...

        with pytest.raises(ConfigurationError, match=message):
            lonely.job(**options)(handler)
        assert not lonely.jobs

    def test_a_process_runs_plain_functions(self, lonely):
        async def handler() -> None: ...

        with pytest.raises(ConfigurationError, match="async def"):
            lonely.job(run_in="process")(handler)

    def test_retry_is_a_policy_or_a_callable(self, lonely):
        rules = (Rule(ValueError, "fail"),)
        policy = RetryPolicy(max_attempts=3, backoff=Backoff(base="5 s"), rules=rules)
        assert lonely.job(kind="a", retry=policy)(lambda: None).max_attempts == 3
        assert lonely.job(kind="b", retry=policy, max_attempts=5)(lambda: None).max_attempts == 5
        own = lonely.job(kind="c", retry=lambda error, attempt: None)(lambda: None)
        assert own.max_attempts == 8
        assert lonely.job(kind="d")(lambda: None).retry == RetryPolicy()
