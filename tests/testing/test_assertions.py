"""Asserting what was enqueued: it holds, fails when it should, and says what is there."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from unittest.mock import ANY
from uuid import UUID

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from semel import ArgumentError, ConfigurationError, ConnectionRefused, NewJob, Status
from semel.testing import (
    aassert_enqueued,
    aenqueued,
    arefute_enqueued,
    assert_enqueued,
    drain,
    enqueued,
    refute_enqueued,
)


class Colour(Enum):
    RED = "red"


@dataclass
class Card:
    number: str
    limit: Decimal


@pytest.fixture
def charge(app):
    @app.job
    def charge(order: int, note: str = "", *, force: bool = False) -> None: ...

    return charge


def message_of(call, *args, **options) -> str:
    with pytest.raises(AssertionError) as caught:
        call(*args, **options)
    return str(caught.value)


def test_what_is_there_is_found(app, charge):
    first = charge.enqueue(7, "a")
    charge.using(queue="cards", unique_key="k", priority=5).enqueue(8)
    (row,) = assert_enqueued(app, charge, {"order": 7, "note": "a"})
    assert row.id == first.id
    assert row.payload == {"order": 7, "note": "a"}
    (row,) = assert_enqueued(app, charge, {"order": 8}, queue="cards", unique_key="k", status=Status.PENDING)
    assert (row.priority, row.attempts, row.max_attempts) == (5, 0, 8)
    assert [row.payload["order"] for row in assert_enqueued(app, charge, count=2)] == [7, 8]
    assert_enqueued(app, charge, count=None)
    assert_enqueued(app, "charge", {"order": 7})
    assert_enqueued(app, None, {"order": 7})
    assert_enqueued(app, charge.using(queue="any"), {"order": 7})
    refute_enqueued(app, charge, {"order": 9})
    refute_enqueued(app, "other")
    assert [row.payload["order"] for row in enqueued(app, charge, note="a")] == [7]
    assert len(enqueued(app)) == 2


def test_defaults_count_as_the_handler_gets_them(app, charge):
    charge.enqueue(7)
    assert_enqueued(app, charge, {"note": "", "force": False})
    refute_enqueued(app, charge, {"force": True})


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (UUID(int=1), UUID(int=2)),
        (Decimal("1.20"), Decimal("1.3")),
        (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)),
        (Card("1", Decimal(5)), Card("1", Decimal(6))),
        (Colour.RED, "blue"),
        ([1, 2], [2, 1]),
        (None, 0),
        (True, 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_are_compared_as_the_handler_gets_them(app, value, other):
    def typed(value, rest: int = 0) -> None: ...

    typed.__annotations__["value"] = type(value)
    typed = app.job(typed)
    typed.enqueue(value)
    assert_enqueued(app, typed, {"value": value})
    assert_enqueued(app, "typed", {"value": value})
    assert_enqueued(app, typed, {"value": ANY, "rest": 0})
    refute_enqueued(app, typed, {"value": other})


def test_the_rest_of_the_arguments(app):
    @app.job
    def send(to: str, /, *parts: int) -> None: ...

    send.enqueue("a", 1, 2)
    assert_enqueued(app, send, {"to": "a", "parts": [1, 2]})
    refute_enqueued(app, send, {"parts": [1]})


def test_a_payload_that_the_handler_cannot_read_is_compared_as_it_is_stored(app, charge):
    app.enqueue_many([NewJob("charge", b'{"order": "seven"}')])
    assert_enqueued(app, charge, {"order": "seven"})
    assert "(order is 'seven')" in message_of(assert_enqueued, app, charge, {"order": 7})


def test_whatever_became_of_a_job_it_was_enqueued(app, charge):
    charge.enqueue(7)
    drain(app)
    assert_enqueued(app, charge, {"order": 7})
    assert_enqueued(app, charge, status="done")
    refute_enqueued(app, charge, status="pending")


def test_a_failure_lists_the_nearest_first(app, charge):
    @app.job
    def mail(to: str) -> None: ...

    mail.enqueue("a")
    charge.enqueue(8, "b")
    charge.using(queue="cards").enqueue(7)
    assert message_of(assert_enqueued, app, charge, {"order": 7, "note": ""}, queue="default") == (
        "1 job expected: charge with {'order': 7, 'note': ''} queue=default; none found.\n"
        "Stored, the nearest first:\n"
        "  job 3 charge {'order': 7} queue=cards pending (queue is cards)\n"
        "  job 2 charge {'note': 'b', 'order': 8} queue=default pending (order is 8, note is 'b')\n"
        "  job 1 mail {'to': 'a'} queue=default pending (kind is mail, no order, no note)"
    )


def test_a_failure_says_that_nothing_is_there(app, charge):
    assert message_of(assert_enqueued, app, charge, {"order": 7}) == (
        "1 job expected: charge with {'order': 7}; none found.\nNothing else is stored."
    )
    assert "At least one job expected: any kind" in message_of(assert_enqueued, app, None, count=None)


def test_a_wrong_number_fails(app, charge):
    charge.enqueue_many([(7,), (7,), (8,)])
    text = message_of(assert_enqueued, app, charge, {"order": 7})
    assert text.startswith("1 job expected: charge with {'order': 7}; 2 found.\nFound:\n  job 1 ")
    assert "job 3" not in text
    text = message_of(assert_enqueued, app, charge, {"order": 7}, count=3)
    assert "3 jobs expected" in text
    assert "(order is 8)" in text
    assert "0 jobs expected" in message_of(assert_enqueued, app, charge, count=0)


def test_a_long_list_is_cut(app, charge):
    charge.enqueue_many([(order,) for order in range(30)])
    assert message_of(assert_enqueued, app, charge, {"order": 77}).endswith("\n  … and 20 more")


def test_refuting_fails_where_one_is_there(app, charge):
    charge.enqueue(7)
    assert message_of(refute_enqueued, app, charge, {"order": 7}) == (
        "No job expected: charge with {'order': 7}; 1 found.\n"
        "  job 1 charge {'order': 7} queue=default pending"
    )
    assert "1 found" in message_of(refute_enqueued, app)


def test_a_slip_in_a_name_is_no_match_that_is_missing(app, charge):
    with pytest.raises(ArgumentError, match="no argument 'ordr'; it has: order, note, force"):
        refute_enqueued(app, charge, {"ordr": 7})
    with pytest.raises(ArgumentError):
        enqueued(app, charge, ordr=7)
    with pytest.raises(ValueError, match="finished"):
        refute_enqueued(app, charge, status="finished")
    with pytest.raises(ConfigurationError, match="neither a job"):
        refute_enqueued(app, 7)


def test_inside_the_caller_s_transaction(app, charge):
    with psycopg.connect(app.url) as connection:
        charge.using(tx=connection).enqueue(7)
        assert_enqueued(app, charge, {"order": 7}, tx=connection)
        assert len(enqueued(connection, charge, order=7)) == 1
        assert len(enqueued(connection, "charge")) == 1
        refute_enqueued(app, charge)
        with pytest.raises(AssertionError):
            refute_enqueued(app, charge, tx=connection)
        connection.rollback()
        refute_enqueued(app, charge, tx=connection)


def test_inside_a_session_of_sqlalchemy(app, charge):
    engine = sa.create_engine(app.url.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session:
        charge.using(tx=session).enqueue(7)
        assert_enqueued(app, charge, {"order": 7}, tx=session)
        assert len(enqueued(session)) == 1
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_the_asyncio_forms(app, charge, driver):
    async def test() -> None:
        if driver == "asyncpg":
            connection = await asyncpg.connect(app.url)
            await connection.execute("BEGIN")
        else:
            connection = await psycopg.AsyncConnection.connect(app.url)
        await charge.using(tx=connection).aenqueue(7)
        await aassert_enqueued(app, charge, {"order": 7}, tx=connection)
        assert len(await aenqueued(connection, charge, order=7)) == 1
        await arefute_enqueued(app, charge)
        assert await aenqueued(app) == []
        with pytest.raises(AssertionError, match="none found"):
            await aassert_enqueued(app, charge)
        with pytest.raises(AssertionError, match="1 found"):
            await arefute_enqueued(app, charge, tx=connection)
        with pytest.raises(ConnectionRefused):
            assert_enqueued(app, charge, tx=connection)
        await connection.close()
        await app.aclose()

    asyncio.run(test())


def test_another_schema(app):
    from semel import App
    from semel.store.migrate import migrate_database

    migrate_database(app.url, schema="jobs")
    with App(app.url, schema="jobs") as other:

        @other.job
        def charge(order: int) -> None: ...

        charge.enqueue(7)
        assert_enqueued(other, charge)
        with psycopg.connect(other.url) as connection:
            assert len(enqueued(connection, charge)) == 1
        assert drain(other).counts["done"] == 1
    assert enqueued(app) == []


def test_the_connection_in_the_application_s_place(app, charge):
    with psycopg.connect(app.url) as connection:
        charge.using(tx=connection).enqueue(7)
        assert_enqueued(connection, charge, {"order": 7})
        with pytest.raises(ConfigurationError, match="only your connection"):
            assert_enqueued(connection, charge, tx=connection)
    with pytest.raises(ConnectionRefused, match="no connection that semel knows"):
        assert_enqueued(7, charge)
