"""Where the guard refuses to claim: each error says what to do, and nothing was claimed and nothing done."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import contextmanager

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from django.db import connections, transaction
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from tests.guard.places import MAKERS

from semel import Once, Row, UnsafeClaim
from semel.errors import ConfigurationError, ConnectionRefused, SchemaMismatch
from semel.store.open_transactions import describe_open_transaction, will_begin


@pytest.fixture(scope="module")
def url(make_database):
    return make_database("postgresql")


@pytest.fixture(scope="module")
def path(make_database):
    return make_database("sqlite")


@pytest.fixture
def engine(url):
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


@pytest.fixture
def engines(make_database, url, path):
    made = []

    def make(driver):
        if driver == "pymysql":
            server, name = make_database("mysql")
            target = server.url(name).replace("mysql://", "mysql+pymysql://")
        else:
            target = (
                f"sqlite:///{path}"
                if driver == "sqlite"
                else url.replace("postgresql", "postgresql+psycopg", 1)
            )
        made.append(sa.create_engine(target))
        return made[-1]

    yield make
    for each in made:
        each.dispose()


def mail(order: int = 1): ...


def refused(once, **options):
    """The refusal of an outside effect."""
    done = []

    @once.operation("mail", key="order", with_operation=False, **options)
    def mail(order: int):
        done.append(order)

    try:
        with pytest.raises(UnsafeClaim) as caught:
            mail(1)
        with pytest.raises(UnsafeClaim), once.claim("mail", 1):
            done.append(1)
    finally:
        once.close()
    assert not done
    assert caught.value.holds == "Nothing was claimed and nothing done."
    assert "after your commit" in caught.value.remedy
    return caught.value.happened


def accepted(once):
    @once.operation("mail", key="order", with_operation=False)
    def mail(order: int):
        return order

    try:
        assert mail(1) == 1
    finally:
        once.close()


async def refused_async(once):
    @once.operation("mail", key="order", with_operation=False)
    async def mail(order: int):
        raise AssertionError

    with pytest.raises(UnsafeClaim) as caught:
        await mail(1)
    with pytest.raises(UnsafeClaim):
        await once.aclaim("mail", 1).__aenter__()
    await once.aclose()
    return caught.value.happened


async def accepted_async(once):
    @once.operation("mail", key="order", with_operation=False)
    async def mail(order: int):
        return order

    assert await mail(1) == 1
    await once.aclose()


class TestAnOutsideEffectWithAnOpenTransaction:
    def test_psycopg(self, url):
        with psycopg.connect(url) as connection:
            accepted(Once(connection))
            connection.execute("SELECT 1")
            assert "the psycopg connection is in a transaction" in refused(Once(connection))
            connection.rollback()
            accepted(Once(connection))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SELECT 1")
            accepted(Once(connection))
            with connection.transaction():
                refused(Once(connection))
            connection.execute("BEGIN")
            refused(Once(connection))

    def test_psycopg_in_a_pipeline(self, url):
        with psycopg.connect(url) as connection, connection.pipeline():
            connection.execute("SELECT 1")
            assert describe_open_transaction(connection) is not None

    def test_asyncpg(self, url):
        async def check():
            connection = await asyncpg.connect(url)
            assert describe_open_transaction(connection) is None
            async with connection.transaction():
                assert "asyncpg" in describe_open_transaction(connection)
            await connection.execute("BEGIN")
            assert "asyncpg" in describe_open_transaction(connection)
            await connection.close()

        asyncio.run(check())

    def test_asyncpg_and_an_async_function(self, url):
        async def check():
            connection = await asyncpg.connect(url)
            await accepted_async(Once(connection))
            async with connection.transaction():
                assert "asyncpg" in await refused_async(Once(connection))
            await connection.close()

        asyncio.run(check())

    @pytest.mark.parametrize("driver", ["psycopg", "pymysql", "sqlite"])
    @pytest.mark.parametrize("make", [Session, lambda bound: scoped_session(sessionmaker(bound))])
    def test_sqlalchemy_sessions(self, engines, driver, make):
        session = make(engines(driver))
        accepted(Once(session))
        session.execute(sa.text("SELECT 1"))
        assert "call session.commit() first" in refused(Once(session))
        session.commit()
        accepted(Once(session))
        session.close()

    @pytest.mark.parametrize("driver", ["psycopg", "pymysql"])
    def test_sqlalchemy_connections(self, engines, driver):
        with engines(driver).connect() as connection:
            if driver == "psycopg":  # a connection of MySQL's without autocommit counts as open
                accepted(Once(connection))
            connection.execute(sa.text("SELECT 1"))
            assert "in a transaction" in refused(Once(connection))
            connection.rollback()
            connection.execution_options(isolation_level="AUTOCOMMIT")
            accepted(Once(connection))

    def test_a_session_without_an_engine(self):
        with pytest.raises(ConfigurationError, match="bound to no engine"):
            Once(Session())

    def test_sqlalchemy_in_autocommit_has_none_whatever_it_says(self, engine):
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.text("SELECT 1"))
            assert connection.in_transaction()
            assert describe_open_transaction(connection) is None
            assert not will_begin(connection)

    def test_sqlalchemy_engines_and_urls_have_none(self, engine, url):
        accepted(Once(engine))
        accepted(Once(url))

    def test_sqlalchemy_for_asyncio(self, url):
        async def check():
            engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
            for opened in (engine.connect(), AsyncSession(engine)):
                async with opened as tx:
                    await accepted_async(Once(tx))
                    await tx.execute(sa.text("SELECT 1"))
                    assert "SQLAlchemy" in await refused_async(Once(tx))
            await engine.dispose()

        asyncio.run(check())

    @pytest.mark.parametrize("dialect", ["postgresql", "sqlite", "mysql"])
    def test_django(self, make_database, dialect):
        place = MAKERS[f"django-{dialect}"][1](make_database(dialect))
        alias, connection = place.target, connections[place.target]
        try:
            accepted(Once(alias))
            with transaction.atomic(using=alias):
                assert "atomic block" in refused(Once(alias))
            connection.set_autocommit(False)
            assert "autocommit switched off" in refused(Once(alias))
            connection.rollback()
            connection.set_autocommit(True)
            with _test_case_block(alias):
                assert describe_open_transaction(alias) is None
                with transaction.atomic(using=alias):
                    assert "atomic block" in refused(Once(alias))
        finally:
            place.close()

    def test_a_url_is_not_taken_for_an_alias_of_django_s(self, url):
        assert describe_open_transaction(url) is None
        assert describe_open_transaction("no such alias") is None

    def test_pymysql(self, make_database):
        server, name = make_database("mysql")
        connection = server.connect(name, autocommit=True)
        try:
            accepted(Once(connection))
            connection.begin()
            assert "in a transaction" in refused(Once(connection))
            connection.rollback()
            accepted(Once(connection))
            connection.autocommit(False)
            assert "not in autocommit" in refused(Once(connection))
        finally:
            connection.close()

    def test_sqlite3(self, path):
        connection = sqlite3.connect(path, isolation_level=None)
        accepted(Once(connection))
        connection.execute("BEGIN")
        assert "sqlite3" in refused(Once(connection))
        connection.close()


@contextmanager
def _test_case_block(alias):
    """As Django's TestCase opens it."""
    block = transaction.atomic(using=alias)
    block._from_testcase = True
    with block:
        yield
        transaction.set_rollback(True, using=alias)


class TestARow:
    """Its claim, effect and completion are one transaction, or there is none."""

    @pytest.fixture
    def guarded(self, url):
        once = Once(url)
        yield once.operation("row", key="order", effect=Row(), with_operation=False)(mail)
        once.close()

    @pytest.fixture
    def guarded_file(self, path):
        once = Once(path)
        yield once.operation("row", key="order", effect=Row(), with_operation=False)(mail)
        once.close()

    def refuses(self, guarded, tx, error=UnsafeClaim, says="without an open transaction"):
        with pytest.raises(error, match=says) as caught:
            guarded.on(tx)(1)
        assert caught.value.remedy

    def test_without_a_transaction(self, guarded, guarded_file, url, path, engine):
        with psycopg.connect(url, autocommit=True) as connection:
            self.refuses(guarded, connection)
            with connection.transaction():
                guarded.on(connection)(1)
        file = sqlite3.connect(path, isolation_level=None)
        self.refuses(guarded_file, file)
        file.execute("BEGIN IMMEDIATE")
        guarded_file.on(file)(1)
        file.close()
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            self.refuses(guarded, connection)

    def test_on_mariadb(self, make_database):
        server, name = make_database("mysql")
        once = Once(server.url(name))
        guarded = once.operation("row", key="order", effect=Row(), with_operation=False)(mail)
        connection = server.connect(name, autocommit=True)
        self.refuses(guarded, connection)
        connection.begin()
        guarded.on(connection)(1)
        connection.rollback()
        connection.autocommit(False)
        guarded.on(connection)(1)
        connection.rollback()
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM semel_operations")
            assert cursor.fetchone() == (0,)
        connection.close()
        once.close()

    def test_one_that_begins_by_itself_passes(self, guarded, guarded_file, url, path, engine):
        with psycopg.connect(url) as connection:
            guarded.on(connection)(2)
            connection.rollback()
        with Session(engine) as session:
            guarded.on(session)(2)
        file = sqlite3.connect(path)
        guarded_file.on(file)(2)
        assert file.in_transaction
        file.rollback()
        assert file.execute("SELECT count(*) FROM semel_operations WHERE label = '2'").fetchone() == (0,)
        file.close()

    def test_an_asyncpg_connection_without_one(self, url):
        async def check():
            once = Once(url)

            @once.operation("row", key="order", effect=Row(), with_operation=False)
            async def guarded(order: int): ...

            connection = await asyncpg.connect(url)
            with pytest.raises(UnsafeClaim, match="without an open transaction"):
                await guarded.on(connection)(77)
            async with connection.transaction():
                await guarded.on(connection)(77)
            await connection.close()
            await once.aclose()

        asyncio.run(check())

    def test_on_another_kind_of_database(self, guarded, path):
        file = sqlite3.connect(path)
        self.refuses(guarded, file, ConnectionRefused, "sqlite")
        file.close()

    def test_on_a_database_without_records(self, guarded_file, tmp_path):
        other = sqlite3.connect(tmp_path / "other.db")
        self.refuses(guarded_file, other, SchemaMismatch, "not there")
        other.close()

    def test_on_an_async_connection_in_a_sync_function(self, guarded, url):
        async def check():
            connection = await psycopg.AsyncConnection.connect(url)
            self.refuses(guarded, connection, ConnectionRefused, "asyncio")
            await connection.close()

        asyncio.run(check())

    def test_other_effects_do_not_run_on_a_transaction(self, url):
        guarded = Once(url).operation("mail", key="order", with_operation=False)(mail)
        with psycopg.connect(url) as connection, pytest.raises(UnsafeClaim) as caught:
            guarded.on(connection)
        assert "effect=Row()" in caught.value.remedy


class TestAServerThatTakesNoWrites:
    def test_postgresql(self, url):
        once = Once(f"{url}{'&' if '?' in url else '?'}options=-c%20default_transaction_read_only%3Don")
        guarded = once.operation("mail", key="order", with_operation=False)(mail)
        with pytest.raises(UnsafeClaim, match="read replica") as caught:
            guarded(1)
        assert "primary" in caught.value.remedy

    def test_sqlite(self, path):
        guarded = Once(f"file:{path}?mode=ro").operation("mail", key="order", with_operation=False)(mail)
        with pytest.raises(UnsafeClaim, match="takes no writes"):
            guarded(1)


@pytest.mark.parametrize("target", [":memory:", "", 7, "nonsense", "oracle://x"])
def test_what_leads_to_no_database(target):
    with pytest.raises(ConfigurationError):
        Once(target)


def test_a_job_type_with_a_nul_is_refused_when_declared(tmp_path):
    once = Once(tmp_path / "new.db")
    with pytest.raises(ConfigurationError, match="without NUL"):
        once.operation("mail\0", key="order", with_operation=False)(mail)
    once.close()


def test_a_guard_without_tables_says_how_to_make_them(tmp_path):
    once = Once(tmp_path / "new.db")
    guarded = once.operation("mail", key="order", with_operation=False)(mail)
    with pytest.raises(SchemaMismatch, match=r"semel migration .*--only guard"):
        guarded(1)
    once.close()
