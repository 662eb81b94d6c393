"""An application's own connections: few, found dead before they are used, and not shared with forks or other loops."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.support.waiting import until

from semel import DatabaseUnreachable
from semel.sql import Catalogue
from semel.store import pools
from semel.store.pools import MOST_CONNECTIONS, Database


@pytest.fixture
def database(database_url):
    made = Database(lambda: database_url, Catalogue())
    yield made
    made.close()


@pytest.fixture
def backends(database_url):
    """The server processes that semel's connections have, seen from outside."""

    def backends():
        with psycopg.connect(database_url, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'semel'"
            )
            return {row[0] for row in rows}

    return backends


@pytest.fixture
def kill(database_url, backends):
    def kill():
        with psycopg.connect(database_url, autocommit=True) as connection:
            for process in backends():
                connection.execute("SELECT pg_terminate_backend(%s, 5000)", (process,))

    return kill


def process_of(session):
    return session.connection.info.backend_pid


def test_a_connection_is_used_again(database, backends):
    with database.session() as first:
        process = process_of(first)
    with database.session() as second:
        assert process_of(second) == process
    assert backends() == {process}


def test_one_that_the_server_ended_is_replaced_unseen(database, kill):
    with database.session() as session:
        first = process_of(session)
    kill()
    with database.session() as session:
        assert process_of(session) != first
        session.connection.execute("SELECT 1")


def test_one_left_in_a_transaction_or_broken_is_not_kept(database, backends):
    with database.session() as session:
        session.connection.execute("BEGIN")
    with pytest.raises(RuntimeError), database.session() as session:
        session.connection.close()
        raise RuntimeError
    with database.session() as session:
        assert not session.connection.info.transaction_status
    assert len(backends()) == 1


def test_threads_share_a_few_and_wait_for_them(database, backends):
    everyone = threading.Barrier(MOST_CONNECTIONS)
    counts = []

    def use(number):
        with database.session() as session:
            if number < MOST_CONNECTIONS:
                everyone.wait(10)
            session.connection.execute("SELECT pg_sleep(0.01)")
            counts.append(number)

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(use, range(60)))
    assert len(counts) == 60
    assert len(backends()) == MOST_CONNECTIONS


def test_a_caller_that_waits_too_long_is_told(database, monkeypatch):
    monkeypatch.setattr(pools, "WAIT", 0.05)
    held = [database.session() for _ in range(MOST_CONNECTIONS)]
    for each in held:
        each.__enter__()
    with pytest.raises(DatabaseUnreachable, match="stayed in use"), database.session():
        pass
    for each in held:
        each.__exit__(None, None, None)
    with database.session() as session:
        session.connection.execute("SELECT 1")


def test_no_server_is_said_at_once_and_leaves_nothing_taken():
    database = Database(lambda: "postgresql://nobody@127.0.0.1:1/none", Catalogue())
    for _ in range(MOST_CONNECTIONS + 1):
        with pytest.raises(DatabaseUnreachable, match="refused"), database.session():
            pass


def test_a_fork_opens_its_own_and_leaves_the_parents_open(database, backends):
    with database.session() as session:
        parent = process_of(session)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        with database.session() as session:
            os.write(write, str(process_of(session)).encode())
        database.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert int(os.read(read, 100)) != parent
    with database.session() as session:
        assert process_of(session) == parent
        session.connection.execute("SELECT 1")


def test_each_event_loop_has_its_own_and_a_dead_loops_are_closed(database, backends):
    async def use():
        async with database.async_session() as session:
            await session.connection.execute("SELECT 1")
            return process_of(session)

    async def use_twice():
        first, second = await use(), await use()
        assert first == second
        return first

    first = asyncio.run(use_twice())
    second = asyncio.run(use_twice())
    assert first != second
    until(lambda: first not in backends(), "the server's process has ended")


def test_a_loop_shares_a_few_survives_a_kill_and_closes(database, backends, kill):
    async def main():
        async def use():
            async with database.async_session() as session:
                await session.connection.execute("SELECT pg_sleep(0.01)")

        await asyncio.gather(*(use() for _ in range(20)))
        assert len(await asyncio.to_thread(backends)) == MOST_CONNECTIONS
        await asyncio.to_thread(kill)
        await use()
        await database.aclose()

    asyncio.run(main())
    until(lambda: not backends(), "the server's processes have ended")


def test_a_cancelled_call_gives_its_connection_up(database, backends):
    async def main():
        async def sleep():
            async with database.async_session() as session:
                await session.connection.execute("SELECT pg_sleep(60)")

        for _ in range(MOST_CONNECTIONS + 2):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(sleep(), 0.2)
        async with database.async_session() as session:
            await session.connection.execute("SELECT 1")
        await database.aclose()

    asyncio.run(main())


def test_close_closes_also_what_comes_back_later(database, backends):
    with database.session():
        database.close()
        assert len(backends()) == 1
    until(lambda: not backends(), "the server's processes have ended")
    with database.session() as session:
        session.connection.execute("SELECT 1")
