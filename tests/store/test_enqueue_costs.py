"""What an enqueue asks of the server: how often, how much of it anew, and which locks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.pooler import pooler

from semel import App, Job, NewJob
from semel.store.pools import PREPARE_AFTER

PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%jobs%'"


@pytest.fixture
def charge(database_url: str) -> Any:
    with declared(database_url) as app:
        yield app.jobs["charge"]


def declared(url: str) -> App:
    app = App(url)

    @app.job
    def charge(order: int, note: str = "") -> None: ...

    return app


def rounds(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], file: Path
) -> Callable[[], int]:
    """From now on, how many times the server has said that it is ready: once for each round trip."""
    trace = file.open("w")
    connection.pgconn.trace(trace.fileno())

    def count() -> int:
        connection.pgconn.untrace()
        trace.close()
        return file.read_text().count("ReadyForQuery")

    return count


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("autocommit", [False, True])
def test_each_call_is_one_round_trip(
    charge: Job[..., Any], database_url: str, tmp_path: Path, calls: int, autocommit: bool
) -> None:
    with psycopg.connect(database_url, autocommit=autocommit) as connection:
        connection.execute("SELECT 1")  # psycopg has begun
        count = rounds(connection, tmp_path / "trace")
        for number in range(calls):
            charge.using(tx=connection).enqueue(number)
        assert count() == calls


def test_each_call_on_a_connection_of_ours_is_one_round_trip(charge: Job[..., Any], tmp_path: Path) -> None:
    for number in range(PREPARE_AFTER + 2):
        charge.enqueue(number)
    with charge.database.session() as session:
        count = rounds(session.connection, tmp_path / "trace")
    for number in range(3):
        charge.enqueue(number)
    assert count() == 3
    assert "Parse" not in (tmp_path / "trace").read_text()


def test_so_is_each_call_for_asyncio(charge: Job[..., Any], tmp_path: Path) -> None:
    async def main() -> None:
        for number in range(PREPARE_AFTER + 2):
            await charge.aenqueue(number)
        async with charge.database.async_session() as session:
            count = rounds(session.connection, tmp_path / "trace")
        for number in range(3):
            await charge.aenqueue(number)
        assert count() == 3
        assert "Parse" not in (tmp_path / "trace").read_text()
        await charge.database.aclose()

    asyncio.run(main())


def test_behind_a_pooler_nothing_is_prepared(database_url: str) -> None:
    """The next statement may meet a process of the server that knows nothing of it."""
    with pooler(database_url) as url, declared(url) as app:
        charge = app.jobs["charge"]
        for number in range(PREPARE_AFTER + 3):
            charge.enqueue(number)
            charge.using(unique_key=str(number)).enqueue(number)
        with app.database.session() as session:
            assert session.connection.execute(PREPARED).fetchone() == (0,)

    async def main() -> None:
        with pooler(database_url) as url:
            app = declared(url)
            for number in range(PREPARE_AFTER + 3):
                await app.jobs["charge"].aenqueue(number)
            async with app.database.async_session() as session:
                assert await (await session.connection.execute(PREPARED)).fetchone() == (0,)
            await app.aclose()

    asyncio.run(main())


def test_what_is_prepared_outlives_tables_that_are_made_anew(
    charge: Job[..., Any], database_url: str
) -> None:
    for number in range(PREPARE_AFTER + 2):
        charge.enqueue(number)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE semel.jobs ADD COLUMN later text DEFAULT 'x'")
        assert charge.enqueue(1).created
        connection.execute("ALTER TABLE semel.jobs RENAME TO past")
        connection.execute("CREATE TABLE semel.jobs (LIKE semel.past INCLUDING ALL)")
        connection.execute("ALTER SEQUENCE semel.jobs_id_seq RENAME TO past_id_seq")
        assert charge.enqueue(2).created
        assert connection.execute("SELECT payload FROM semel.jobs").fetchall() == [({"order": 2},)]


def test_a_connection_of_ours_serves_on_after_a_refusal(charge: Job[..., Any]) -> None:
    with charge.database.session() as session:
        process = session.connection.info.backend_pid
    for number in range(PREPARE_AFTER + 2):
        with pytest.raises(psycopg.Error):
            charge.enqueue_many([NewJob("charge", b'{"order":}')])
        assert charge.enqueue(number).created
    with charge.database.session() as session:
        assert session.connection.info.backend_pid == process


def test_nothing_but_its_own_rows_is_locked(charge: Job[..., Any], database_url: str) -> None:
    """Nor does anybody hear of it, for which PostgreSQL would lock the whole server at the commit."""
    with psycopg.connect(database_url) as caller, psycopg.connect(database_url, autocommit=True) as other:
        other.execute("LISTEN semel_jobs")
        bound = charge.using(tx=caller)
        bound.enqueue(1)
        bound.enqueue_many([(number,) for number in range(10)])
        bound.enqueue_many([(number,) for number in range(1_000)])
        charge.using(tx=caller, unique_key="k").enqueue(1)
        locks = other.execute(
            "SELECT DISTINCT locktype, mode FROM pg_locks WHERE pid = %s AND mode NOT LIKE '%%Access%%'"
            " AND locktype NOT IN ('virtualxid', 'transactionid')",
            (caller.info.backend_pid,),
        ).fetchall()
        assert locks == [("relation", "RowExclusiveLock")]
        caller.commit()
        assert list(other.notifies(timeout=0)) == []
