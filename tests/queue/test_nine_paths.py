"""A job commits with the caller's data, or not at all, on every path in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.queue.paths import BY_SEMEL, FURTHER, NINE

from semel import ArgumentError
from semel.core.states import Status

everywhere = pytest.mark.parametrize("path", [*NINE, *FURTHER], ids=lambda path: path.name)
by_semel = pytest.mark.parametrize("path", BY_SEMEL, ids=lambda path: path.name)
HARD = "tab\t newline\n return\r back\\slash \\N % :name {brace} 'quote' \"double\" ünï 🎉"


@pytest.fixture
def orders(ask):
    """The caller's own table."""
    ask("CREATE TABLE orders (id integer PRIMARY KEY)")


@everywhere
@pytest.mark.parametrize(("end", "left"), [("rollback", 0), ("commit", 1)])
def test_a_rollback_leaves_no_job_and_a_commit_leaves_one(path, end, left, charge, ask, orders, database_url):
    def steps(caller):
        yield caller.execute("INSERT INTO orders VALUES (7)")
        yield caller.call(charge, "enqueue", 7)
        assert ask("SELECT count(*) FROM semel.jobs") == [(0,)]  # nobody else sees it yet
        yield getattr(caller, end)()

    path.follow(database_url, steps)
    assert ask("SELECT kind, payload, status FROM semel.jobs") == [("charge", {"order": 7}, "pending")] * left
    assert ask("SELECT id FROM orders") == [(7,)] * left


@by_semel
@pytest.mark.parametrize("count", [3, 2_500], ids=["one INSERT", "COPY"])
@pytest.mark.parametrize("end", ["rollback", "commit"])
def test_many_are_stored_or_none_and_each_is_answered(path, end, count, charge, ask, database_url):
    at = datetime(2040, 2, 3, 4, 5, 6, 789, tzinfo=UTC)

    def steps(caller):
        items = [(number, HARD) for number in range(count)]
        answers = yield caller.call(charge, "enqueue_many", items, run_at=at, priority=-7, ordering_key="o")
        yield getattr(caller, end)()
        return answers

    answers = path.follow(database_url, steps)
    assert all(answer.created and answer.status is Status.PENDING for answer in answers)
    rows = ask(
        "SELECT id, CAST(payload ->> 'order' AS integer), payload ->> 'note', run_at, priority, ordering_key "
        "FROM semel.jobs ORDER BY id"
    )
    expected = [(answer.id, number, HARD, at, -7, "o") for number, answer in enumerate(answers)]
    assert len(answers) == count
    assert rows == (expected if end == "commit" else [])


@by_semel
def test_copied_jobs_are_due_as_others_are(path, charge, ask, database_url):
    def steps(caller):
        yield caller.call(charge, "enqueue_many", [(number,) for number in range(1_000)], run_after="1 h")
        yield caller.call(charge, "enqueue_many", [(number,) for number in range(1_000)])
        yield caller.commit()

    path.follow(database_url, steps)
    rows = ask(
        "SELECT count(*), max(run_at) - now() < '5 s', min(run_at) FROM semel.jobs WHERE run_at < now()"
    )
    assert rows[0][:2] == (1_000, True)
    ((count, soonest, latest),) = ask(
        "SELECT count(*), min(run_at - now()), max(run_at - now()) FROM semel.jobs WHERE run_at > now()"
    )
    assert count == 1_000
    assert timedelta(minutes=59) < soonest <= latest <= timedelta(hours=1)


@by_semel
def test_unique_keys_are_answered_row_by_row(path, charge, ask, database_url):
    first = charge.using(unique_key="b").enqueue(0)

    def steps(caller):
        items = [charge.using(unique_key=key).new(place) for place, key in enumerate("abcabc")]
        answers = yield caller.call(charge, "enqueue_many", [*items, (6,)])
        again = yield caller.call(charge, "enqueue", 7, unique_key="c")
        yield caller.commit()
        return answers, again

    answers, again = path.follow(database_url, steps)
    assert [answer.created for answer in answers] == [True, False, True, False, False, False, True]
    a, b, c = (answer.id for answer in answers[:3])
    assert [answer.id for answer in answers[3:6]] == [a, b, c]
    assert b == first.id
    assert (again.id, again.created) == (c, False)
    assert ask("SELECT count(*) FROM semel.jobs") == [(4,)]


@by_semel
def test_an_argument_error_leaves_the_transaction_usable(path, charge, ask, orders, database_url):
    def steps(caller):
        yield caller.execute("INSERT INTO orders VALUES (1)")
        for wrong in (("x",), (1, object()), (1, "n" * 70_000)):
            with pytest.raises(ArgumentError) as caught:
                yield caller.call(charge, "enqueue", *wrong)
            assert caught.value.argument in ("order", "note")
            with pytest.raises(ArgumentError):
                yield caller.call(charge, "enqueue_many", [(1,), wrong])
        yield caller.call(charge, "enqueue", 2)
        yield caller.commit()

    path.follow(database_url, steps)
    assert ask("SELECT payload FROM semel.jobs") == [({"order": 2},)]
    assert ask("SELECT id FROM orders") == [(1,)]


@by_semel
def test_a_large_payload_passes_where_the_limit_is_raised(path, app, ask, database_url):
    large = app.with_database(database_url, payload_limit=2_000_000)

    @large.job
    def store(text: str) -> None: ...

    def steps(caller):
        yield caller.call(store, "enqueue", "é" * 500_000)
        yield caller.call(store, "enqueue_many", [("é" * 500_000,)] * 10)  # more than one statement
        yield caller.commit()

    path.follow(database_url, steps)
    assert ask("SELECT count(*), min(length(payload ->> 'text')) FROM semel.jobs") == [(11, 500_000)]


def test_the_limit_is_64_kb(charge):
    with pytest.raises(ArgumentError, match="65,536") as caught:
        charge.enqueue(1, "n" * 65_536)
    assert caught.value.argument == "note"
    charge.enqueue(1, "n" * 65_000)
