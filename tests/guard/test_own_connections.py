"""The guard's own connections: where they lead, how many they are, and what becomes of broken and inherited ones."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import psycopg_pool
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from tests.guard.conftest import make_request
from tests.guard.places import Place
from tests.support.waiting import until, until_async

from semel import App
from semel.core.operations import Reply
from semel.errors import ConfigurationError, ConnectionRefused, DatabaseUnreachable, UnsafeClaim
from semel.store import own_connections, own_sources
from semel.store.faults import LockBusy
from semel.store.guard_begin import begin_new
from semel.store.guard_end import complete
from semel.store.own_connections import MOST_CONNECTIONS, open_own
from semel.store.run import run, run_async
from semel.store.statement import Operation, Statement

ASYNC_ENGINES = ("sqlalchemy-async", "session-asyncpg")
"""Places whose target has no sync session."""


def claim(own: Any) -> Reply:
    """A claim, and its completion."""
    request = make_request(own.dialect)
    with own.session() as session:
        begun = run(begin_new(request), session)
        assert run(complete(request, result=None, result_dropped=False), session)
        return begun.reply


async def claim_async(own: Any) -> Reply:
    request = make_request(own.dialect)
    async with own.async_session() as session:
        begun = await patiently(begin_new(request), session)
        assert await patiently(complete(request, result=None, result_dropped=False), session)
        return begun.reply


async def patiently(operation: Operation[Any], session: Any) -> Any:
    """Six that write to one SQLite file may wait for each other longer than the half second that the guard waits."""
    ends = time.monotonic() + 60
    while True:
        try:
            return await run_async(operation, session)
        except LockBusy:
            assert time.monotonic() < ends


def test_sync_and_async_from_every_target(place: Place) -> None:
    if place.target is None:
        pytest.skip("asyncpg's connection is the test's own")
    own = open_own(place.target)
    if place.name in ASYNC_ENGINES:
        with pytest.raises(ConnectionRefused, match="sync"), own.session():
            pass
    else:
        assert claim(own) is Reply.ACT

    async def both() -> None:
        assert await asyncio.gather(*(claim_async(own) for _ in range(6))) == [Reply.ACT] * 6
        await own.aclose()

    asyncio.run(both())


def test_targets_of_postgresql(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        psycopg.connect(database_url) as connection,
        psycopg_pool.ConnectionPool(
            database_url, max_size=1, min_size=1, kwargs={"autocommit": True}
        ) as pool,
        App(database_url) as app,
        pool.connection(),  # the caller's only connection is in use
    ):
        for target in (connection, pool, app, app.database, psycopg.conninfo.make_conninfo(database_url)):
            own = open_own(target)
            assert claim(own) is Reply.ACT
            own.close()


def test_an_asyncpg_pool_of_one_is_not_touched(database_url: str) -> None:
    async def with_pool() -> None:
        async with asyncpg.create_pool(database_url, min_size=1, max_size=1) as pool, pool.acquire():
            own = open_own(pool)
            assert await claim_async(own) is Reply.ACT
            await own.aclose()
        unreadable = asyncpg.create_pool(database_url, password=lambda: "secret", min_size=0)
        with pytest.raises(ConfigurationError, match="DSN"):
            open_own(unreadable)

    asyncio.run(with_pool())


def test_an_engine_with_a_pool_of_one_is_not_touched(database_url: str) -> None:
    made: list[str] = []
    url = database_url.replace("postgresql://", "postgresql+psycopg://")
    engine = sa.create_engine(url, pool_size=1, max_overflow=0, pool_timeout=1)
    sa.event.listen(engine, "do_connect", lambda *given: made.append("connect"))
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))
        own = open_own(engine)
        assert claim(own) is Reply.ACT
        own.close()
    assert made == ["connect", "connect"], "its own connection is made as the engine makes them"
    engine.dispose()


def test_targets_of_sqlite(make_database: Callable[[str], Any]) -> None:
    path: Path = make_database("sqlite")
    engine = sa.create_engine("sqlite://", creator=lambda: sqlite3.connect(path))
    with sqlite3.connect(path) as connection:
        for target in (path, str(path), f"sqlite:///{path}", f"file:{path}?cache=private", connection):
            own = open_own(target)
            assert own.dialect == "sqlite"
            assert claim(own) is Reply.ACT
            own.close()
    connection.close()
    engine.dispose()


@pytest.mark.parametrize(
    "target",
    [
        7,
        None,
        object(),
        "nonsense",
        "oracle://x/y",
        ":memory:",
        "sqlite://",
        "mysql+other://h/d",
        "mysql://h/d?x=1",
    ],
)
def test_what_leads_nowhere_is_refused(target: Any) -> None:
    with pytest.raises(ConfigurationError):
        own = open_own(target)
        with own.session():
            pass


def test_engines_that_lead_nowhere_are_refused() -> None:
    for url in ("sqlite://", "sqlite:///:memory:"):
        with pytest.raises(ConfigurationError, match="memory"):
            open_own(sa.create_engine(url))


@pytest.mark.parametrize(
    "target",
    ["postgresql://nobody@127.0.0.1:1/x", "mysql://nobody@127.0.0.1:1/x", "sqlite:////nowhere/at/all.db"],
)
def test_a_database_that_is_not_there(target: str) -> None:
    own = open_own(target)
    with pytest.raises(DatabaseUnreachable), own.session():
        pass


def test_a_server_that_takes_no_writes_is_refused(database_url: str) -> None:
    own = open_own(
        psycopg.conninfo.make_conninfo(database_url, options="-c default_transaction_read_only=on")
    )
    with pytest.raises(UnsafeClaim), own.session():
        pass
    with pytest.raises(UnsafeClaim):
        asyncio.run(claim_async(own))
    for row in ((1,), (True, "read committed"), (None,)):
        with pytest.raises(UnsafeClaim):
            own_sources._needs_transactions(row)


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_read_committed_is_forced(database_url: str, isolation: str) -> None:
    """D1: where the server's default is stricter, each statement gets a transaction of its own."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            f"ALTER DATABASE {connection.info.dbname} SET default_transaction_isolation = '{isolation}'"
        )
    for target in (
        database_url,
        sa.create_engine(database_url.replace("postgresql:", "postgresql+psycopg:")),
    ):
        own = open_own(target)
        with own.session() as session:
            assert session.execute(Statement("guard/read_isolation")) == [("read committed",)]
            with session.transaction():
                assert session.execute(Statement("guard/read_isolation")) == [("read committed",)]
        assert claim(own) is Reply.ACT
        own.close()


def test_no_setting_is_left_on_a_postgresql_session(database_url: str) -> None:
    """Behind a pooler it would be another client's next."""
    own = open_own(database_url)
    claim(own)
    with own.session() as session:
        assert session.connection.execute("SHOW lock_timeout").fetchone() == ("0",)
        assert session.connection.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
    own.close()


def test_the_last_one_used_is_used_again(database: Place) -> None:
    own = open_own(database.target)
    with own.session() as first, own.session() as second:
        assert first is not second
    with own.session() as again:
        assert again is first
    own.close()


def test_there_are_only_a_few(database: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_connections, "WAIT", 0.2)
    own = open_own(database.target)
    blocks = [own.session() for _ in range(MOST_CONNECTIONS)]
    for block in blocks:
        block.__enter__()
    with pytest.raises(DatabaseUnreachable, match="stayed in use"), own.session():
        pass
    for block in blocks:
        block.__exit__(None, None, None)
    assert claim(own) is Reply.ACT
    own.close()


def test_an_error_in_the_block_leaves_no_transaction(database: Place) -> None:
    own = open_own(database.target)
    request = make_request(own.dialect)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), own.session() as session, session.transaction():
            run(begin_new(request), session)
            raise ZeroDivisionError
    with own.session() as session:
        assert run(begin_new(request), session) is not None
    own.close()


def test_a_connection_that_the_server_ended_is_not_used_again(place: Place) -> None:
    if place.dialect == "sqlite" or place.target is None or place.name in ASYNC_ENGINES:
        pytest.skip("no server, or no sync session")
    own = open_own(place.target)
    for trusted in (True, False):
        with own.session() as session:
            number = _backend(session, place)
        _kill(place, number)
        if trusted:
            try:
                claim(own)
            except DatabaseUnreachable:
                pass
        else:
            own._lane.idle[:] = [(session, time.monotonic() - 60) for session, _ in own._lane.idle]
        assert claim(own) is Reply.ACT
    own.close()


def _backend(session: Any, place: Place) -> int:
    text = "SELECT pg_backend_pid()" if place.dialect == "postgresql" else "SELECT CONNECTION_ID()"
    connection = session.connection
    if place.name.startswith(("sqlalchemy", "session")):
        number = connection.exec_driver_sql(text).scalar()
        connection.commit()
        return int(number)
    with connection.cursor() as cursor:
        cursor.execute(text)
        return int(cursor.fetchone()[0])


def _kill(place: Place, number: int) -> None:
    if place.dialect == "postgresql":
        with psycopg.connect(place.where, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", (number,))
    else:
        server = place.where[0]
        server.execute(f"KILL {number}")
        until(lambda: number not in _connections(server), "the server ended the connection")


def _connections(server: Any) -> set[int]:
    connection = server.connect("mysql")
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT id FROM information_schema.processlist")
            return {int(row[0]) for row in cursor.fetchall()}
    finally:
        connection.close()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_opens_its_own(database: Place) -> None:
    own = open_own(database.target)
    claim(own)
    child = os.fork()
    if child == 0:
        try:
            done = claim(own) is Reply.ACT
            own.close()
        except BaseException:
            done = False
        os._exit(0 if done else 1)
    assert os.waitpid(child, 0)[1] == 0
    with own.session() as session:
        assert session.execute(Statement("guard/read_only"))
    assert claim(own) is Reply.ACT
    own.close()


def test_a_cancelled_call_keeps_its_connection_to_itself(make_database: Callable[[str], Any]) -> None:
    """The statement still runs in its thread: the connection goes back only when that has returned."""
    path = make_database("sqlite")
    asked: list[str] = []
    own = open_own(path, watch=lambda moment, name: asked.append(name))
    blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    async def cancelled() -> None:
        blocker.execute("BEGIN IMMEDIATE")
        task = asyncio.ensure_future(claim_async(own))
        await until_async(lambda: asked, "the statement is on its way to its thread")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        blocker.execute("ROLLBACK")
        assert await claim_async(own) is Reply.ACT
        await own.aclose()

    asyncio.run(cancelled())
    blocker.close()


def test_an_async_engine(database_url: str) -> None:
    async def several() -> None:
        url = database_url.replace("postgresql:", "postgresql+asyncpg:")
        engine = create_async_engine(url, pool_size=1, max_overflow=0, pool_timeout=1)
        async with engine.connect() as connection:
            await connection.execute(sa.text("SELECT 1"))
            own = open_own(engine)
            assert await asyncio.gather(*(claim_async(own) for _ in range(6))) == [Reply.ACT] * 6
            await own.aclose()
        await engine.dispose()

    asyncio.run(several())


def test_closing_while_one_is_in_use(database: Place) -> None:
    own = open_own(database.target)
    with own.session() as session:
        own.close()
        assert session.execute(Statement("guard/read_only"))
    assert own._lane.idle == []
    assert claim(own) is Reply.ACT
    own.close()


def test_threads_share_them(database: Place) -> None:
    own = open_own(database.target)
    answers: list[Any] = []

    def work() -> None:
        while len(answers) < 30:
            try:
                answers.append(claim(own))
            except LockBusy:  # SQLite has one writer at a time
                continue

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert set(answers) == {Reply.ACT}
    assert len(answers) >= 30
    own.close()
