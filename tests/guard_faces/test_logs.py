"""A structured line for every answer that is not "act"."""

from __future__ import annotations

import logging

import psycopg
import pytest
from tests.guard.stored import Ago

from semel import AcceptMiss, Row
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
        ({"outcome": "abandoned"}, "repeat", logging.INFO),
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
    try:
        charge(17)
    except SemelError:
        assert answer != "repeat" or columns
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


def test_busy(where, once, lines):
    if where[0] != "postgresql":
        pytest.skip("the other databases' tests of it are with the rows")

    @once.operation("row", key="order", effect=Row(), with_operation=False)
    def charge(order: int): ...

    with psycopg.connect(where[1]) as connection:
        charge.on(connection)(1)
        with pytest.raises(SemelError):
            charge(1)
        connection.rollback()
    assert [line.answer for line in lines()] == ["busy"]
