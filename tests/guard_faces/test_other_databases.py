"""A `Row()` on a connection to another database than its `Once` has: refused, over every kind of connection."""

from __future__ import annotations

import functools
import os
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
import sqlalchemy as sa
from django.db import connections, transaction
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.guard import mariadb as mariadbs
from tests.guard.places import MAKERS, Caller, Place
from tests.guard.stored import Stored
from tests.servers import make_server

import semel
from semel.errors import ConfigurationError, UnsafeClaim
from semel.store.guard_tables import create_tables
from semel.testing import drain

WAYS = [name for name in MAKERS if name != "sqlite3-async"]  # the same callers as sqlite3
ASKED = ("guard/identify", "guard/find_tables", "guard/take_sign", "guard/find_sign", "guard/drop_sign")


@pytest.fixture(scope="module")
def where(make_database: Callable[[str], Any]) -> Callable[..., Any]:
    """Two databases of each dialect for the whole module."""
    return functools.cache(lambda dialect, which=0: make_database(dialect))


@pytest.fixture
def made(where: Callable[..., Any]) -> Iterator[Callable[..., Place]]:
    """Makes a kind of connection to one of them."""
    places: list[Place] = []

    def make(way: str, which: int = 0) -> Place:
        dialect, maker = MAKERS[way]
        places.append(maker(where(dialect, which)))
        return places[-1]

    yield make
    for each in places:
        each.close()


def target_of(place: Place) -> Any:
    """Its database, as a DSN or a path."""
    return place.where[0].url(place.where[1]) if place.dialect == "mysql" else place.where


class Guard:
    """A guarded function for one caller's kind of function, and what it asked."""

    def __init__(self, target: Any) -> None:
        self.once = semel.Once(target)
        self.asked: list[str] = []
        self.ran = 0
        self.once.place._own.watch = lambda when, what: self.asked.append(what) if when == "before" else None
        self.job_type = f"give-{uuid.uuid4()}"
        operation = self.once.operation(self.job_type, key="order", effect=semel.Row(), with_operation=False)

        @operation
        def give(order: int) -> None:
            self.ran += 1

        @operation
        async def agive(order: int) -> None:
            self.ran += 1

        self.sync, self.asynchronous = give, agive

    def deliver(self, caller: Caller, order: int) -> None:
        if caller.runner is None:
            self.sync.on(caller.tx)(order)
            return

        async def run() -> None:
            await self.asynchronous.on(caller.tx)(order)

        caller.runner.run(run())

    def questions(self) -> list[str]:
        """What was asked about the database since the last look."""
        found = [each for each in self.asked if each in ASKED]
        self.asked.clear()
        return found


@pytest.fixture
def guard() -> Iterator[Callable[[Any], Guard]]:
    guards: list[Guard] = []

    def make(target: Any) -> Guard:
        guards.append(Guard(target))
        return guards[-1]

    yield make
    for each in guards:
        each.once.close()


def records(place: Place, guarded: Guard) -> int:
    stored = Stored.at(place.dialect, place.where)
    table = "semel.operations" if place.dialect == "postgresql" else "semel_operations"
    try:
        return int(stored.ask(f"SELECT count(*) FROM {table} WHERE job_type = '{guarded.job_type}'")[0][0])
    finally:
        stored.close()


@pytest.mark.parametrize("by", ["dsn", "target"])
@pytest.mark.parametrize("way", WAYS)
def test_another_database_is_refused(made: Any, guard: Any, way: str, by: str) -> None:
    home, other = made(way), made(way, 1)
    guarded = guard(target_of(home) if by == "dsn" else home.target or target_of(home))
    with other.caller() as caller:
        with pytest.raises(UnsafeClaim, match="another database than its Once") as caught:
            guarded.deliver(caller, 1)
        caller.rollback()
    assert caught.value.holds == "Nothing was claimed and nothing done."
    assert caught.value.remedy
    assert (guarded.ran, records(home, guarded), records(other, guarded)) == (0, 0, 0)


@pytest.mark.parametrize("by", ["dsn", "target"])
@pytest.mark.parametrize("way", WAYS)
def test_its_own_is_taken(made: Any, guard: Any, way: str, by: str) -> None:
    """And where the address tells, without a question to a server; MySQL's connections can change their database."""
    home = made(way)
    guarded = guard(target_of(home) if by == "dsn" else home.target or target_of(home))
    with home.caller() as caller:
        guarded.deliver(caller, 1)
        first = guarded.questions()
        guarded.deliver(caller, 2)
        second = guarded.questions()
        caller.commit()
    assert (guarded.ran, records(home, guarded)) == (2, 2)
    known = {"postgresql": [], "mysql": ["guard/identify"], "sqlite": ["guard/identify"]}[home.dialect]
    if by == "target" and (home.dialect == "sqlite" and way == "sqlalchemy-sqlite"):
        known = []  # by its engine's pool
    assert second == known
    if not known and not (
        by == "target" and way.startswith("django")
    ):  # there the callers have an alias each
        assert first == []


def test_django_s_own_alias_is_known(made: Any, guard: Any) -> None:
    home = made("django-postgresql")
    guarded = guard(home.target)
    with transaction.atomic(using=home.target):
        guarded.sync.on(home.target)(1)
        guarded.sync.on(connections[home.target])(2)
    assert (guarded.questions(), records(home, guarded)) == ([], 2)


@pytest.mark.parametrize("way", [way for way in WAYS if MAKERS[way][0] == "postgresql"])
def test_a_server_under_another_name_is_taken_and_asked_once(
    made: Any, guard: Any, way: str, tmp_path: Path
) -> None:
    home = made(way)
    given = conninfo_to_dict(home.where)
    link = Path(f"/tmp/semel-other-name-{os.getpid()}")
    link.unlink(missing_ok=True)
    link.symlink_to(str(given["host"]))
    try:
        guarded = guard(make_conninfo(home.where, host=str(link)))
        with home.caller() as caller:
            guarded.deliver(caller, 1)
            assert guarded.questions() == ["guard/identify", "guard/identify"]
            guarded.deliver(caller, 2)
            assert guarded.questions() == []
            caller.commit()
        assert (guarded.ran, records(home, guarded)) == (2, 2)
    finally:
        link.unlink()


def test_a_copy_of_a_server_is_another_one(tmp_path: Path, guard: Any) -> None:
    """The same numbers, names and files: only when it was started tells them apart."""
    original = make_server(tmp_path / "original")
    original.start()
    original.stop()
    shutil.copytree(tmp_path / "original", tmp_path / "copy", symlinks=True)
    copy = make_server(tmp_path / "copy")
    try:
        original.start()
        copy.start()
        assert original.url("postgres") != copy.url("postgres")
        guarded = guard(original.url("postgres"))
        with psycopg.connect(copy.url("postgres")) as connection:
            with pytest.raises(UnsafeClaim, match="both are called postgres, on two servers"):
                guarded.sync.on(connection)(1)
            connection.rollback()
    finally:
        original.destroy()
        copy.destroy()


class TestMySQL:
    def test_a_server_of_the_same_names_is_another_one(self, where: Any, guard: Any, tmp_path: Path) -> None:
        server, name = where("mysql")
        other = mariadbs.shared(tmp_path, os.getpid())
        other.execute(f"CREATE DATABASE {name}")
        guarded = guard(server.url(name))
        connection = other.connect(name)
        with pytest.raises(UnsafeClaim, match=f"both are called {name}, on two servers"):
            guarded.sync.on(connection)(1)
        connection.close()
        assert guarded.ran == 0

    def test_one_under_another_name_is_taken_and_proven_once(self, where: Any, guard: Any) -> None:
        server, name = where("mysql")
        link = Path(f"/tmp/semel-other-socket-{os.getpid()}")
        link.unlink(missing_ok=True)
        link.symlink_to(server.socket)
        connection = pymysql.connect(unix_socket=str(link), user="root", database=name)
        try:
            guarded = guard(server.url(name))
            guarded.sync.on(connection)(1)
            asked = guarded.questions()
            assert asked == [
                "guard/identify",
                "guard/identify",
                "guard/take_sign",
                "guard/find_sign",
                "guard/drop_sign",
            ]
            guarded.sync.on(connection)(2)
            assert guarded.questions() == ["guard/identify"]
            connection.commit()
        finally:
            connection.close()
            link.unlink()

    def test_one_that_moves_to_another_database_is_refused_from_there(self, where: Any, guard: Any) -> None:
        server, name = where("mysql")
        _, second = where("mysql", 1)
        guarded = guard(server.url(name))
        connection = server.connect(name)
        guarded.sync.on(connection)(1)
        connection.commit()
        with connection.cursor() as cursor:
            cursor.execute(f"USE {second}")
        with pytest.raises(UnsafeClaim, match=second):
            guarded.sync.on(connection)(2)
        with connection.cursor() as cursor:
            cursor.execute(f"USE {name}")
        guarded.sync.on(connection)(2)
        connection.rollback()
        connection.close()
        assert guarded.ran == 2


class TestSQLite:
    @pytest.fixture
    def path(self, where: Any) -> Path:
        return where("sqlite")

    @pytest.mark.parametrize("name", ["link", "relative", "uri"])
    def test_the_file_by_another_path(
        self, path: Path, guard: Any, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(path.parent)
        link = tmp_path / "link.db"
        link.symlink_to(path)
        target = {"link": link, "relative": f"./{path.name}", "uri": f"file:{path}?mode=rw"}[name]
        guarded = guard(target)
        connection = sqlite3.connect(path)
        guarded.sync.on(connection)(1)
        connection.commit()
        connection.close()
        assert guarded.ran == 1

    def test_what_decides_is_the_file_that_has_the_tables(
        self, path: Path, guard: Any, tmp_path: Path
    ) -> None:
        """A connection to the shop's file, with the guard's attached; and one with the tables in both."""
        guarded = guard(path)
        connection = sqlite3.connect(tmp_path / "shop.db")
        connection.execute("ATTACH ? AS guard", (str(path),))
        guarded.sync.on(connection)(1)
        connection.commit()
        connection.close()
        create_tables(tmp_path / "shop.db")
        connection = sqlite3.connect(tmp_path / "shop.db")
        connection.execute("ATTACH ? AS guard", (str(path),))
        with pytest.raises(UnsafeClaim, match="another database"):
            guarded.sync.on(connection)(2)
        connection.close()

    def test_one_in_memory(self, path: Path, guard: Any) -> None:
        guarded = guard(path)
        connection = sqlite3.connect(":memory:")
        source = sqlite3.connect(path)
        source.backup(connection)
        with pytest.raises(UnsafeClaim, match="in memory"):
            guarded.sync.on(connection)(1)

    def test_a_deferred_transaction_stays_one_that_has_not_read(self, path: Path, guard: Any) -> None:
        """Had it read, a writer in between would make its first write fail."""
        guarded = guard(path)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN DEFERRED")
        same = guarded.once.place.same_database
        require = same.require

        def writing(*given: Any) -> Any:
            yield from require(*given)
            rival = sqlite3.connect(path)
            rival.execute("CREATE TABLE IF NOT EXISTS rival (id int)")
            rival.commit()
            rival.close()

        same.require = writing
        guarded.sync.on(connection)(1)
        connection.execute("COMMIT")
        connection.close()


def test_a_sqlite_engine_and_a_plain_connection_that_is_writing(where: Any, guard: Any) -> None:
    """Asked on a connection of the guard's own, it would wait for itself."""
    path = where("sqlite")
    guarded = guard(sa.create_engine(f"sqlite:///{path}"))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    guarded.sync.on(connection)(1)
    connection.execute("COMMIT")
    connection.close()
    assert guarded.ran == 1


class TestJobs:
    """The transaction of a guarded job is the application's."""

    def test_a_row_of_another_database_is_refused_when_it_runs(self, where: Any, guard: Any) -> None:
        app = semel.App(where("postgresql", 1))
        guarded = guard(where("postgresql"))
        operation = guarded.once.operation(guarded.job_type, key="order", effect=semel.Row())
        ran: list[int] = []

        @app.job(max_attempts=1, once=operation)
        def give(op: semel.Operation, order: int) -> None:
            ran.append(order)

        give.enqueue(1)
        with pytest.raises(UnsafeClaim, match="another database"):
            drain(app, raise_errors=True)
        app.close()
        assert ran == []

    def test_a_row_of_its_own_database_asks_nothing(self, where: Any) -> None:
        app = semel.App(where("postgresql"))
        once = semel.Once(app)
        asked: list[str] = []
        once.place._own.watch = lambda when, what: asked.append(what)

        @app.job(once=once.operation(f"give-{uuid.uuid4()}", key="order", effect=semel.Row()))
        def give(op: semel.Operation, order: int) -> None: ...

        give.enqueue(1)
        (outcome,) = drain(app).outcomes
        app.close()
        once.close()
        assert outcome.outcome.value == "done"
        assert "guard/insert_row" in asked
        assert not set(asked) & set(ASKED)

    def test_a_row_on_another_kind_of_database_is_refused_when_declared(self, where: Any) -> None:
        app, once = semel.App("postgresql://nowhere"), semel.Once(where("sqlite"))
        with pytest.raises(ConfigurationError, match=r"its Once is in sqlite"):

            @app.job(once=once.operation("give", key="order", effect=semel.Row()))
            def give(op: semel.Operation, order: int) -> None: ...
