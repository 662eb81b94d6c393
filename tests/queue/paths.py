"""Every kind of connection that jobs are enqueued on, each with a transaction of the caller's.

A test writes its steps once, as a generator that yields what it calls; `follow` runs them on any path, sync or async.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import django
import psycopg
import sqlalchemy as sa
from django.conf import settings
from django.db import connections, transaction
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from semel import Job


@dataclass(frozen=True)
class Caller:
    """The caller's transaction: ``tx`` is what it gives to semel; the rest is how it works on its own."""

    tx: Any
    execute: Callable[[str], Any]
    commit: Callable[[], Any]
    rollback: Callable[[], Any]
    is_async: bool = False

    def call(self, job: Job[..., Any], name: str, *args: Any, **options: Any) -> Any:
        """``job.using(tx=…).name(*args)``, or its async twin."""
        bound = job.using(tx=self.tx, **options)
        return getattr(bound, f"a{name}" if self.is_async else name)(*args)


Steps = Generator[Any, Any, Any]


@dataclass(frozen=True)
class Path:
    """One way in, by name."""

    name: str
    open: Callable[[str], Any]
    is_async: bool = False

    def follow(self, url: str, steps: Callable[[Caller], Steps]) -> Any:
        """Run a test's steps inside one transaction of the caller's, which they end themselves."""
        if self.is_async:
            return asyncio.run(self._follow_async(url, steps))
        with self.open(url) as caller:
            return _drive(steps(caller))

    async def _follow_async(self, url: str, steps: Callable[[Caller], Steps]) -> Any:
        async with self.open(url) as caller:
            return await _drive_async(steps(caller))


def _drive(steps: Steps) -> Any:
    answer = None
    try:
        while True:
            answer = steps.send(answer)
    except StopIteration as stop:
        return stop.value


async def _drive_async(steps: Steps) -> Any:
    answer, resume = None, steps.send
    try:
        while True:
            step = resume(answer)
            try:
                answer, resume = await step, steps.send
            except Exception as error:
                answer, resume = error, steps.throw
    except StopIteration as stop:
        return stop.value


@contextmanager
def psycopg_sync(url):
    with psycopg.connect(url) as connection:
        yield Caller(connection, connection.execute, connection.commit, connection.rollback)


@asynccontextmanager
async def psycopg_async(url):
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield Caller(connection, connection.execute, connection.commit, connection.rollback, is_async=True)


@asynccontextmanager
async def asyncpg_transaction(url):
    connection = await asyncpg.connect(url)
    begun = connection.transaction()
    await begun.start()
    yield Caller(connection, connection.execute, begun.commit, begun.rollback, is_async=True)
    await connection.close()


@asynccontextmanager
async def asyncpg_pool_and_begin(url):
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        await connection.execute("BEGIN")
        yield Caller(
            connection,
            connection.execute,
            lambda: connection.execute("COMMIT"),
            lambda: connection.execute("ROLLBACK"),
            is_async=True,
        )


def sqlalchemy_sync(driver, make):
    @contextmanager
    def opened(url):
        engine = sa.create_engine(url.replace("postgresql://", f"postgresql+{driver}://"))
        with make(engine) as target:
            yield Caller(target, lambda text: target.execute(sa.text(text)), target.commit, target.rollback)
        engine.dispose()

    return opened


def sqlalchemy_async(driver, make):
    @asynccontextmanager
    async def opened(url):
        engine = create_async_engine(url.replace("postgresql://", f"postgresql+{driver}://"))
        async with make(engine) as target:
            yield Caller(
                target,
                lambda text: target.execute(sa.text(text)),
                target.commit,
                target.rollback,
                is_async=True,
            )
        await engine.dispose()

    return opened


@contextmanager
def django_alias(url):
    """Django's database ``semel_test`` at ``url``, whatever other tests configured."""
    if not settings.configured:
        settings.configure(DATABASES={}, USE_TZ=True)
        django.setup()
    parts = conninfo_to_dict(url)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts.get("user", ""),
        "PASSWORD": parts.get("password", ""),
        "HOST": parts.get("host", ""),
        "PORT": str(parts.get("port", "")),
    }
    made = connections.configure_settings({"default": {}, "semel_test": database})["semel_test"]
    connections.settings["semel_test"] = made
    try:
        yield "semel_test"
    finally:
        connections["semel_test"].close()
        del connections["semel_test"]
        del connections.settings["semel_test"]


@contextmanager
def django_atomic(url):
    with django_alias(url) as alias:
        connection = connections[alias]
        block = transaction.atomic(using=alias)
        block.__enter__()

        def execute(text):
            with connection.cursor() as cursor:
                cursor.execute(text)

        def rollback():
            transaction.set_rollback(True, using=alias)
            block.__exit__(None, None, None)

        yield Caller(alias, execute, lambda: block.__exit__(None, None, None), rollback)


@dataclass(frozen=True)
class PlainSql:
    """A program that knows no semel: it writes the public columns."""

    connection: Any

    def call(self, job, name, *args):
        assert name == "enqueue"
        payload = job.new(*args).payload.decode()
        return self.connection.execute(
            "INSERT INTO semel.jobs (kind, payload) VALUES (%s, %s)", (job.kind, payload)
        )

    def __getattr__(self, name):
        return getattr(self.connection, name)


@contextmanager
def plain_sql(url):
    with psycopg.connect(url) as connection:
        yield PlainSql(connection)


NINE = (
    Path("psycopg", psycopg_sync),
    Path("psycopg async", psycopg_async, is_async=True),
    Path("asyncpg", asyncpg_transaction, is_async=True),
    Path("SQLAlchemy Core", sqlalchemy_sync("psycopg", lambda engine: engine.connect())),
    Path("SQLAlchemy Session", sqlalchemy_sync("psycopg", Session)),
    Path("SQLAlchemy AsyncConnection", sqlalchemy_async("psycopg", lambda e: e.connect()), is_async=True),
    Path("SQLAlchemy AsyncSession", sqlalchemy_async("psycopg", AsyncSession), is_async=True),
    Path("Django", django_atomic),
    Path("plain SQL", plain_sql),
)

FURTHER = (
    Path("asyncpg pool, BEGIN by hand", asyncpg_pool_and_begin, is_async=True),
    Path("SQLAlchemy Core, psycopg2", sqlalchemy_sync("psycopg2", lambda engine: engine.connect())),
    Path("SQLAlchemy Session, psycopg2", sqlalchemy_sync("psycopg2", Session)),
    Path("SQLAlchemy AsyncConnection, asyncpg", sqlalchemy_async("asyncpg", lambda e: e.connect()), True),
    Path("SQLAlchemy AsyncSession, asyncpg", sqlalchemy_async("asyncpg", AsyncSession), True),
)

BY_SEMEL = tuple(path for path in (*NINE, *FURTHER) if path.name != "plain SQL")
