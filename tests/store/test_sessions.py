"""What is taken as ``tx=``, and how the rest is refused: by name, with what to do, before anything is stored."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from django.db import connections
from sqlalchemy.ext.asyncio import async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import scoped_session, sessionmaker
from tests.queue.paths import django_alias

from semel import App, ConnectionRefused, DatabaseUnreachable


@pytest.fixture
def charge(database_url):
    with App(database_url) as app:

        @app.job
        def charge(order: int) -> None: ...

        yield charge


@pytest.fixture
def engine(database_url):
    engine = sa.create_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


def stored(database_url):
    with psycopg.connect(database_url) as connection:
        return connection.execute("SELECT count(*) FROM semel.jobs").fetchone()[0]


def refusal(call):
    with pytest.raises(ConnectionRefused) as caught:
        call()
    assert "Nothing was stored." in str(caught.value)
    return str(caught.value)


async def async_refusal(call):
    with pytest.raises(ConnectionRefused) as caught:
        await call()
    return str(caught.value)


def test_what_is_no_connection_is_refused_by_its_type(charge):
    for wrong in (3, object(), ["a"], psycopg):
        message = refusal(lambda wrong=wrong: charge.using(tx=wrong).enqueue(1))
        assert type(wrong).__name__ in message
        assert "SQLAlchemy" in message


def test_what_makes_connections_is_refused_with_the_way_to_one(charge, engine, database_url):
    assert "engine.begin()" in refusal(lambda: charge.using(tx=engine).enqueue(1))
    assert "session that it makes" in refusal(lambda: charge.using(tx=sessionmaker(engine)).enqueue(1))

    async def main():
        async with asyncpg.create_pool(database_url, min_size=1) as pool:
            return await async_refusal(lambda: charge.using(tx=pool).aenqueue(1))

    assert "from the pool" in asyncio.run(main())


def test_a_sync_call_refuses_an_async_connection_and_names_the_call(charge, database_url):
    async def main():
        url = database_url.replace("postgresql://", "postgresql+psycopg://")
        engine = create_async_engine(url)
        async with (
            await psycopg.AsyncConnection.connect(database_url) as plain,
            engine.connect() as core,
            async_sessionmaker(engine)() as session,
        ):
            fast = await asyncpg.connect(database_url)
            for tx in (plain, core, session, fast):
                assert "aenqueue(…)" in refusal(lambda tx=tx: charge.using(tx=tx).enqueue(1))
                assert "aenqueue" in refusal(lambda tx=tx: charge.using(tx=tx).enqueue_many([(1,)]))
            await fast.close()
        await engine.dispose()

    asyncio.run(main())
    assert stored(database_url) == 0


def test_an_async_call_refuses_a_sync_connection_and_names_the_call(charge, engine, database_url):
    async def main():
        for tx in (plain, core, alias):
            message = await async_refusal(lambda tx=tx: charge.using(tx=tx).aenqueue(1))
            assert ".enqueue(…) without await" in message
        assert "sync_to_async" in message

    with (
        psycopg.connect(database_url) as plain,
        engine.connect() as core,
        django_alias(database_url) as alias,
    ):
        asyncio.run(main())
    assert stored(database_url) == 0


def test_a_closed_connection_is_refused(charge, engine, database_url):
    connection = psycopg.connect(database_url)
    connection.close()
    core = engine.connect()
    core.close()
    for tx in (connection, core):
        assert "closed" in refusal(lambda tx=tx: charge.using(tx=tx).enqueue(1))

    async def main():
        fast = await asyncpg.connect(database_url)
        await fast.close()
        return await async_refusal(lambda: charge.using(tx=fast).aenqueue(1))

    assert "closed" in asyncio.run(main())


def test_another_database_is_refused(charge):
    with sa.create_engine("sqlite://").connect() as connection:
        assert "sqlite" in refusal(lambda: charge.using(tx=connection).enqueue(1))


def test_cursors_and_scoped_sessions_stand_for_their_connection(charge, engine, database_url):
    with psycopg.connect(database_url) as connection, connection.cursor() as cursor:
        charge.using(tx=cursor).enqueue(1)
        connection.rollback()
    scoped = scoped_session(sessionmaker(engine))
    charge.using(tx=scoped).enqueue(2)
    assert stored(database_url) == 0
    scoped.commit()
    scoped.remove()
    assert stored(database_url) == 1

    async def main():
        maker = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://"))
        scope = async_scoped_session(async_sessionmaker(maker), asyncio.current_task)
        await charge.using(tx=scope).aenqueue_many([(number,) for number in range(1_200)])
        await scope.commit()
        await scope.remove()
        await maker.dispose()

    asyncio.run(main())
    assert stored(database_url) == 1_201


def test_a_sync_function_under_an_async_session_is_taken(charge, database_url):
    """`run_sync` hands out a sync session over an async driver, which cannot COPY: an INSERT serves."""

    async def main():
        engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://"))
        async with async_sessionmaker(engine)() as session:
            await session.run_sync(
                lambda sync: charge.using(tx=sync).enqueue_many([(number,) for number in range(1_200)])
            )
            await session.commit()
        await engine.dispose()

    asyncio.run(main())
    assert stored(database_url) == 1_200


class TestAutocommit:
    """A connection that commits each statement takes one job at once; several only where they can be one commit."""

    def test_sqlalchemy(self, charge, engine, database_url):
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            charge.using(tx=connection).enqueue(1)
            charge.using(tx=connection).enqueue_many([(2,), (3,)])
            assert stored(database_url) == 3
            keyed = charge.using(tx=connection, unique_key="k")
            assert "AUTOCOMMIT" in refusal(lambda: keyed.enqueue_many([(4,)]))

    def test_psycopg(self, charge, database_url):
        with psycopg.connect(database_url, autocommit=True) as connection:
            charge.using(tx=connection, unique_key="k").enqueue_many([(1,), (2,)])
            assert stored(database_url) == 1

    def test_asyncpg(self, charge, database_url):
        async def main():
            connection = await asyncpg.connect(database_url)
            await charge.using(tx=connection, unique_key="k").aenqueue_many([(1,), (2,)])
            await connection.close()

        asyncio.run(main())
        assert stored(database_url) == 1

    def test_django_outside_atomic(self, charge, database_url):
        with django_alias(database_url) as alias:
            charge.using(tx=alias).enqueue(1)
            assert stored(database_url) == 1
            charge.using(tx=connections[alias], unique_key="k").enqueue_many([(1,), (2,)])
            charge.using(tx=connections[alias]).enqueue_many([(number,) for number in range(1_000)])
        assert stored(database_url) == 1_002


def test_an_alias_without_django_being_set_up_is_refused():
    code = (
        "import django, semel\nfrom semel.store.sessions import session_for\n"
        "try: session_for('default', semel.App().catalogue)\n"
        "except semel.ConnectionRefused as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "django.setup()" in done.stdout


def test_a_copy_of_djangos_connection_is_refused(charge, database_url):
    with django_alias(database_url) as alias:
        assert f"tx='{alias}'" in refusal(lambda: charge.using(tx=connections[alias].copy()).enqueue(1))
        assert "semel_test" in refusal(lambda: charge.using(tx="no such alias").enqueue(1))


def test_a_list_on_a_fresh_psycopg_connection_is_the_callers_to_commit(charge, database_url):
    with psycopg.connect(database_url) as connection:
        charge.using(tx=connection, unique_key="k").enqueue_many([(1,), (2,)])
        connection.rollback()
    assert stored(database_url) == 0


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_a_lost_connection_is_named_below_sqlalchemy(charge, database_url, driver):
    engine = sa.create_engine(database_url.replace("postgresql://", f"postgresql+{driver}://"))
    with engine.connect() as connection:
        process = connection.execute(sa.text("SELECT pg_backend_pid()")).scalar()
        with psycopg.connect(database_url, autocommit=True) as killer:
            killer.execute("SELECT pg_terminate_backend(%s)", (process,))
        with pytest.raises(DatabaseUnreachable):
            charge.using(tx=connection).enqueue(1)
    engine.dispose()


def test_a_lost_connection_is_named_below_asyncpg_and_django(charge, database_url):
    async def main():
        connection = await asyncpg.connect(database_url)
        kill(connection.get_server_pid())
        with pytest.raises(DatabaseUnreachable):
            await charge.using(tx=connection).aenqueue(1)

    def kill(process):
        with psycopg.connect(database_url, autocommit=True) as killer:
            killer.execute("SELECT pg_terminate_backend(%s)", (process,))

    asyncio.run(main())
    with django_alias(database_url) as alias:
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            kill(cursor.fetchone()[0])
        with pytest.raises(DatabaseUnreachable):
            charge.using(tx=alias).enqueue(1)


def test_no_library_is_imported_that_the_caller_does_not_use():
    code = (
        "import sys, semel, psycopg; from semel.store.sessions import session_for\n"
        "try: session_for('default', None)\n"
        "except semel.ConnectionRefused: pass\n"
        "print({'asyncpg', 'sqlalchemy', 'django'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
