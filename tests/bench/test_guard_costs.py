"""The guard's budget: exactly so many statements and commits for one operation, on each database. `semel bench --guard`."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

import semel
import semel.store.guard_tables
from semel.guard.once import Once

DIALECTS = ("postgresql", "mysql", "sqlite")
NAME = re.compile(r"/\* semel (\S+) \*/")
EFFECT = "INSERT INTO effects VALUES (1)"


class Recorder(psycopg.Cursor[Any]):
    """Notes what is sent to the server."""

    def execute(self, query: Any, *args: Any, **options: Any) -> Any:
        text = query if isinstance(query, str) else query.decode() if isinstance(query, bytes) else str(query)
        self.connection.sent.append(text)  # type: ignore[attr-defined]
        return super().execute(query, *args, **options)


def names(texts: list[str]) -> list[str]:
    """The guard's statements by their names, other ones as they are."""
    found = [NAME.search(text) for text in texts]
    return [name.group(1) if name else text for name, text in zip(found, texts, strict=True)]


def watched(once: Once) -> list[tuple[str, str]]:
    """Everything that the guard does on its own connections, as it happens: statements, and commits by their operation."""
    seen: list[tuple[str, str]] = []
    once.place._own.watch = lambda when, what: seen.append((when, what)) if when != "after" else None
    return seen


@pytest.fixture(params=DIALECTS)
def once(request: pytest.FixtureRequest, make_database: Callable[[str], Any]) -> Any:
    made = make_database(request.param)
    target = made[0].url(made[1]) if request.param == "mysql" else made
    guard = Once(target)
    yield guard
    guard.close()


def sent_by_a_row(url: str, isolation: psycopg.IsolationLevel) -> list[str]:
    """The statements of the first delivery of a `Row()` that writes one row, on the caller's connection."""
    once = Once(url)

    @once.operation("charge", key="order", effect=semel.Row())
    def write(op: semel.Operation, order: int) -> None:
        op.connection.execute(EFFECT)

    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE effects (number int)")
        connection.commit()
        connection.isolation_level = isolation
        connection.cursor_factory = Recorder
        sent: list[str] = []
        connection.sent = sent  # type: ignore[attr-defined]
        write.on(connection)(7)
    once.close()
    return names(sent)


def test_a_row_adds_one_statement_each_way_at_read_committed(database_url: str) -> None:
    sent = sent_by_a_row(database_url, psycopg.IsolationLevel.READ_COMMITTED)
    assert sent == ["guard/insert_row", EFFECT, "guard/complete_row"]


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_it_adds_three_more_where_a_conflict_would_end_the_transaction(database_url: str, level: str) -> None:
    """There the claim sits in a savepoint, which costs two commands besides."""
    sent = sent_by_a_row(database_url, psycopg.IsolationLevel[level])
    asked = ["guard/insert_row", "guard/read", "guard/read_isolation", "guard/insert_row"]
    assert sent == [*asked, EFFECT, "guard/complete_row"]


def test_a_row_adds_two_statements_each_way_on_sqlite(tmp_path: Path) -> None:
    """Its transactions have no number: a savepoint marks the one that claimed. Which file it is, its own library knows."""
    path = tmp_path / "semel.db"
    semel.store.guard_tables.create_tables(path)
    once = Once(path)

    @once.operation("charge", key="order", effect=semel.Row())
    def write(op: semel.Operation, order: int) -> None:
        op.connection.execute(EFFECT)

    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE effects (number int)")
    connection.execute("BEGIN IMMEDIATE")
    sent: list[str] = []
    connection.set_trace_callback(sent.append)
    write.on(connection)(7)
    connection.set_trace_callback(None)
    connection.execute("COMMIT")
    connection.close()
    once.close()
    claim = ["guard/identify", "guard/insert_row", "guard/mark"]
    assert names(sent) == [*claim, EFFECT, "guard/unmark", "guard/complete_row"]


class RecordingMySQL(pymysql.connections.Connection):
    """Notes what is sent to the server."""

    def query(self, sql: Any, unbuffered: bool = False) -> Any:
        self.__dict__.setdefault("sent", []).append(sql if isinstance(sql, str) else sql.decode())
        return super().query(sql, unbuffered)

    def asked(self) -> int:
        """How many statements the server has had from this connection, by its own count."""
        with self.cursor() as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Questions'")
            return int(cursor.fetchone()[1])  # type: ignore[index]


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_a_row_adds_eight_statements_on_mariadb(make_database: Callable[[str], Any], level: str) -> None:
    """Six to claim: which database the connection is in by now; its wait for a lock is a setting of the session, to be
    put back; a count of rows does not tell a new row from an old one; and its transactions have no number. Two to
    complete. A repeat is five."""
    server, name = make_database("mysql")
    once = Once(server.url(name))

    @once.operation("charge", key="order", effect=semel.Row())
    def write(op: semel.Operation, order: int) -> None:
        op.connection.cursor().execute(EFFECT)

    connection = RecordingMySQL(unix_socket=str(server.socket), user="root", database=name)
    connection.cursor().execute("CREATE TABLE effects (number int)")
    connection.cursor().execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
    waits = ["guard/insert_row", "guard/read_locked", "guard/restore_wait"]
    claimed = ["guard/identify", "guard/shorten_wait", *waits, "guard/mark"]
    counted = []
    for expected in (
        [*claimed, EFFECT, "guard/unmark", "guard/complete_row"],
        ["guard/identify", "guard/shorten_wait", *waits],
    ):
        before = connection.asked()
        connection.sent.clear()
        write.on(connection)(7)
        assert names(connection.sent) == expected
        counted.append(connection.asked() - before - 1)
        connection.commit()
    assert counted == [9, 5], "the server counts the same, the effect's own one among them"
    connection.close()
    once.close()


def test_an_outside_effect_is_three_commits(once: Once) -> None:
    @once.operation("charge", key="order", acting="explicit")
    def charge(op: semel.Operation, order: int) -> None:
        with op.acting():
            pass

    seen = watched(once)
    charge(7)
    confirm = [("before", "guard/read")] if once.place.dialect == "mysql" else []
    """MySQL's count of rows does not tell a new row from an old one."""
    assert seen == [
        ("before", "guard/insert"),
        *confirm,
        ("committed", "guard_begin_new"),
        ("before", "guard/act"),
        ("committed", "guard_act"),
        ("before", "guard/complete"),
        ("committed", "guard_complete"),
    ]


def test_one_that_acts_from_its_start_is_two(once: Once) -> None:
    @once.operation("charge", key="order")
    def charge(op: semel.Operation, order: int) -> None:
        pass

    seen = watched(once)
    charge(7)
    assert [what for when, what in seen if when == "committed"] == ["guard_begin_new", "guard_complete"]


def test_a_repeat_is_two_short_ones(once: Once) -> None:
    @once.operation("charge", key="order")
    def charge(op: semel.Operation, order: int) -> None:
        pass

    seen = watched(once)
    charge(7)
    seen.clear()
    charge(7)
    confirm = ["guard/read"] if once.place.dialect == "mysql" and ("before", "guard/read") in seen else []
    assert [what for when, what in seen if when == "before"] == [
        "guard/insert",
        *confirm,
        "guard/read_locked",
    ]
    assert len([what for when, what in seen if when == "committed"]) == 2


def test_the_bench_measures_it(database_url: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "semel.cli", "bench", "--guard", "--json"),
            *("--operations", "5", "--repeat", "1", "--database", database_url),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["operations"], report["repeat"]) == (5, 1)
    assert set(report["guard"]) == {"postgresql", "sqlite"}
    for figures in report["guard"].values():
        assert set(figures) == {
            "plain_row_per_second",
            "guarded_row_per_second",
            "guarded_outside_per_second",
            "repeat_per_second",
        }
        assert all(each["median"] > 0 for each in figures.values())
    with psycopg.connect(database_url) as connection:
        left = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'semel_bench'")
        assert left.fetchone() == (0,)
