"""`semel.testing.inside_transaction`: tests that roll back at their end take the guard's records with them."""

from __future__ import annotations

import asyncio
import sqlite3

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from django.db import connections, transaction
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session
from tests.guard.places import MAKERS
from tests.guard_faces.conftest import target_of

from semel import Hold, Once, Row, UnsafeClaim
from semel.errors import Held
from semel.testing import inside_transaction


def guard(once, calls, **options):
    options = {"key": "order", "with_operation": False, "payload": ()} | options

    @once.operation("charge", **options)
    def charge(order: int, fails: bool = False):
        calls.append(order)
        if fails:
            raise ValueError
        return len(calls)

    return charge


def open_plain(where, *, commits=False):
    """A connection of the database's plainest driver; ``commits``: in autocommit."""
    dialect, place = where
    if dialect == "postgresql":
        return psycopg.connect(place, autocommit=commits)
    if dialect == "mysql":
        return place[0].connect(place[1], autocommit=commits)
    return sqlite3.connect(place, isolation_level=None)


@pytest.fixture
def everything(where, once, stored):
    """What one test of a user does inside the transaction, over whatever connection."""

    def run(connection):
        calls = []
        outside = guard(once, calls, effect=Hold())
        row = guard(once, calls, effect=Row(), scope="rows")
        with inside_transaction(once, connection):
            assert [outside(1), outside(1)] == [1, 1]
            with once.claim("block", 1, extend=True, lease=0.01, longest_run=60) as op:
                assert not op.is_repeat
            with pytest.raises(ValueError):  # noqa: PT011
                outside(2, fails=True)
            with pytest.raises(Held):
                outside(2)
            with pytest.raises(ValueError):  # noqa: PT011
                row(1, fails=True)
            assert [row(1), row(1)] == [4, 4], "the failed one rolled back to its savepoint"
        assert calls == [1, 2, 1, 1]

    return run


@pytest.mark.parametrize("kind", ["driver", "sqlalchemy", "session"])
def test_nothing_outlives_the_test(where, everything, stored, kind):
    dialect, place = where
    for _ in range(2):  # the second test finds nothing of the first
        if kind == "driver":
            connection = open_plain(where)
            if dialect == "sqlite":
                connection.execute("BEGIN")
            elif dialect == "postgresql":
                connection.execute("SELECT 1")
            everything(connection)
            connection.rollback()
            connection.close()
        else:
            url = {
                "sqlite": f"sqlite:///{place}",
                "postgresql": str(place).replace("://", "+psycopg://"),
                "mysql": str(target_of(where)).replace("mysql://", "mysql+pymysql://"),
            }[dialect]
            engine = sa.create_engine(url)
            with engine.connect() if kind == "sqlalchemy" else Session(engine) as connection:
                everything(connection)
                connection.rollback()
            engine.dispose()
    assert stored.count() == 0


@pytest.mark.parametrize("kind", ["atomic", "test case"])
def test_django(where, stored, kind):
    dialect, database = where
    place = MAKERS[f"django-{dialect}"][1](database)
    once, calls = Once(place.target), []
    charge = guard(once, calls)
    row = guard(once, calls, effect=Row(), scope="rows")
    try:
        for _ in range(2):
            block = transaction.atomic(using=place.target)
            block._from_testcase = kind == "test case"
            with block:
                with inside_transaction(once, place.target):
                    assert charge(1) == charge(1)
                    assert row(1) == row(1)
                    with transaction.atomic(using=place.target):  # the code under test has blocks of its own
                        assert row(2) == row(2)
                transaction.set_rollback(True, using=place.target)
        assert calls == [1, 1, 2] * 2
        assert stored.count() == 0
    finally:
        once.close()
        connections[place.target].close()
        place.close()


def test_a_django_test_case_works_without_it_too(where, stored):
    """Its blocks do not count as open transactions; but what is recorded outlives the test. (SQLite: one writer.)"""
    dialect, database = where
    place = MAKERS[f"django-{dialect}"][1](database)
    once, calls = Once(place.target), []
    charge = guard(once, calls)
    block = transaction.atomic(using=place.target)
    block._from_testcase = True
    with block:
        assert charge(1) == charge(1) == 1
        transaction.set_rollback(True, using=place.target)
    assert stored.count() == 1
    once.close()
    connections[place.target].close()
    place.close()


@pytest.mark.parametrize("kind", ["psycopg", "asyncpg", "sqlalchemy"])
def test_async(where, stored, kind):
    dialect, url = where
    if dialect != "postgresql":
        pytest.skip("only PostgreSQL's async drivers are taken for a caller's transaction")

    async def check():
        once, calls = Once(url), []

        @once.operation("charge", key="order")
        async def charge(op, order: int):
            calls.append(order)

        @once.operation("row", key="order", effect=Row())
        async def row(op, order: int):
            calls.append(order)

        async with _open(kind, url) as connection:
            with inside_transaction(once, connection):
                for function in (charge, row):
                    await function(1)
                    await function(1)
                await asyncio.create_task(charge(1))
                async with once.aclaim("block", 1) as op:
                    assert not op.is_repeat
        assert calls == [1, 1]
        await once.aclose()

    asyncio.run(check())
    assert stored.count() == 0


class _open:  # noqa: N801
    """An async connection with a transaction, rolled back at the end."""

    def __init__(self, kind, url):
        self.kind, self.url = kind, url

    async def __aenter__(self):
        if self.kind == "psycopg":
            self.connection = await psycopg.AsyncConnection.connect(self.url)
        elif self.kind == "asyncpg":
            self.connection = await asyncpg.connect(self.url)
            await self.connection.execute("BEGIN")
        else:
            self.engine = create_async_engine(self.url.replace("://", "+asyncpg://"))
            self.connection = await self.engine.connect()
        return self.connection

    async def __aexit__(self, *error):
        await (self.connection.execute("ROLLBACK") if self.kind == "asyncpg" else self.connection.rollback())
        await self.connection.close()
        if self.kind == "sqlalchemy":
            await self.engine.dispose()


def test_after_the_block_it_commits_as_ever(where, once, stored):
    if where[0] != "postgresql":
        pytest.skip("one writer")
    with psycopg.connect(where[1]) as connection:
        with pytest.raises(KeyError), inside_transaction(once, connection):
            raise KeyError
        connection.rollback()
    guard(once, [])(1)
    assert stored.count() == 1


def test_a_connection_that_would_commit_is_refused(where, once):
    connection = open_plain(where, commits=True)
    with (
        pytest.raises(UnsafeClaim, match="every claim would be committed"),
        inside_transaction(once, connection),
    ):
        pass
    connection.close()
