"""A structured line for every answer that is not "act"."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import nullcontext
from datetime import date

import psycopg
import pytest
from tests.guard.stored import Ago

from semel import AcceptMiss, Busy, RetryTransaction, Row, TooOld
from semel.errors import SemelError

pytestmark = pytest.mark.usefixtures("stored")


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, logger="semel.guard")
    return lambda: [record for record in caplog.records if hasattr(record, "answer")]


def test_acting_is_no_line(once, lines):
    with once.claim("charge", 1):
        pass
    assert not lines()


@pytest.mark.parametrize(
    ("columns", "answer", "level"),
    [
        ({}, "repeat", logging.INFO),
        ({"outcome": "abandoned"}, "abandoned", logging.INFO),
        ({"state": "held", "outcome": None, "completed_at": None}, "held", logging.WARNING),
        (
            {"state": "claimed", "outcome": None, "completed_at": None, "lease_until": Ago(-30)},
            "in_progress",
            logging.WARNING,
        ),
        (
            {"state": "claimed", "outcome": None, "completed_at": None, "lease_until": Ago(5)},
            "held",
            logging.WARNING,
        ),
        ({"fingerprint": "other"}, "mismatch", logging.WARNING),
    ],
)
def test_each_answer_is_a_line(once, stored, only, lines, columns, answer, level):
    @once.operation("charge", key="order", scope="shop", with_operation=False)
    def charge(order: int): ...

    charge(17)
    stored.change(only()["key"], **columns)
    with nullcontext() if answer == "repeat" else pytest.raises(SemelError):
        charge(17)
    (line,) = lines()
    assert (line.answer, line.levelno, line.job_type, line.scope) == (answer, level, "charge", "shop")
    assert line.key == only()["key"]
    assert line.getMessage().startswith(f"operation charge 17: {answer}: ")
    assert line.reason


def test_a_miss_an_uncertain_end_and_a_release(once, lines):
    def fail(**options):
        with pytest.raises(ValueError), once.claim("charge", 1, effect=AcceptMiss(), **options):  # noqa: PT011
            raise ValueError

    fail(acting="explicit")
    fail()
    with once.claim("charge", 1, effect=AcceptMiss()):
        pass
    assert [line.answer for line in lines()] == ["released", "uncertain", "repeat"]
    assert "missed" in lines()[-1].reason


def test_a_lost_claim(once, stored, only, lines):
    with pytest.raises(SemelError), once.claim("charge", 1, acting="explicit") as op:
        stored.change(only()["key"], token="another")
        op.check()
    assert [line.answer for line in lines()] == ["claim_lost"]


def begin(where, *, strict=False):
    """A caller's connection whose transaction is begun, or begins by itself; ``strict``: over a snapshot."""
    dialect, place = where
    if dialect == "sqlite":
        connection = sqlite3.connect(place, isolation_level=None, timeout=0.1)
        connection.execute("PRAGMA journal_mode = WAL")  # else a reader keeps a writer from its commit
        connection.execute("BEGIN" if strict else "BEGIN IMMEDIATE")
        return connection
    if dialect == "mysql":
        connection = place[0].connect(place[1])
        if strict:
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                cursor.execute("SET SESSION innodb_snapshot_isolation = ON")
        return connection
    connection = psycopg.connect(place)
    if strict:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    return connection


@pytest.fixture
def credit(once):
    @once.operation("credit", key="order", effect=Row(), with_operation=False)
    def credit(order: int): ...

    return credit


def test_busy(where, credit, lines):
    connection = begin(where)
    credit.on(connection)(1)
    with pytest.raises(Busy):
        credit(1)
    connection.rollback()
    connection.close()
    assert [line.answer for line in lines()] == ["busy"]


def test_a_transaction_that_has_to_run_again(where, credit, lines):
    """Its snapshot is older than what somebody else committed about the operation."""
    connection = begin(where, strict=True)
    cursor = connection.cursor()
    cursor.execute(f"SELECT count(*) FROM {'semel.' if where[0] == 'postgresql' else 'semel_'}operations")
    cursor.fetchall()
    credit(1)
    with pytest.raises(RetryTransaction):
        credit.on(connection)(1)
    connection.rollback()
    connection.close()
    (line,) = lines()
    assert (line.answer, line.levelno, line.job_type) == ("retry_transaction", logging.WARNING, "credit")
    assert line.reason


@pytest.mark.parametrize("way", ["function", "block"])
def test_one_that_is_too_old(once, stored, lines, way):
    def day():
        return date(2020, 1, 1)

    @once.operation("charge", key="order", dated=lambda order: day(), with_operation=False)
    def charge(order: int): ...

    with pytest.raises(TooOld):
        if way == "function":
            charge(1)
        else:
            once.claim("charge", 1, dated=day).__enter__()
    assert [line.answer for line in lines()] == ["too_old"]
    assert stored.count() == 0
