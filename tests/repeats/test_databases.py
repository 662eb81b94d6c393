"""What a database is protected from: writing, long statements, names that are SQL. And the SQL that is printed."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.guard.mariadb import connect_to
from tests.repeats.conftest import DATABASES, Command, Delivery, execute, expected, make_history

from semel.core.zones import UTC_ZONE
from semel.errors import ConfigurationError
from semel.store.past.finding import count
from semel.store.past.reading import open_reader
from semel.store.past.writing import HistoryTable, quote, split_name

COLUMNS = ("-r", "order", "-r", "tenant", "-t", "at")
MakeTable = Callable[[str, Sequence[Delivery]], str]
HOSTILE_NAMES = (
    "select", "Order By", 'a"b', "a`b", "a'b", "a;DROP TABLE deliveries;--", "a/*b", "{table}", "{time}", "{columns}",
    ":since", "a:since b", "%(since)s", "100%", "%s", "ü ñ", "--", "a\\", "$1", "a--b", "?", "new\nline", "a.b",
)  # fmt: skip


@pytest.mark.parametrize("dialect", DATABASES)
@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_any_name_is_only_a_name(
    repeats: Command, shared_names: dict[str, str], dialect: str, name: str
) -> None:
    """Tables and columns that are called like SQL, or like what semel's own texts are made of, are read as any other."""
    url = shared_names[dialect]
    table = quote(name, dialect)
    column, other = quote(name, dialect), quote(f"{name}2", dialect)
    execute(
        url,
        f"CREATE TABLE {table} ({column} varchar(40), {other} varchar(40))",
    )
    values = [("x", "2026-01-01 00:00:00"), ("x", "2026-01-01 00:00:07"), ("y", "2026-01-01 00:00:00")]
    execute(url, *(f"INSERT INTO {table} VALUES {value}" for value in values))
    given = '"' + name.replace('"', '""') + '"'
    answer = repeats(url, "--table", given, "-r", name, "-t", f"{name}2", "--json", "--since", "2025-01-01")
    assert [one["reference"] for one in answer.json()["repeats"]] == [["x"]]
    assert answer.json()["repeats"][0]["gaps"] == [7]


@pytest.fixture(scope="module")
def shared_names(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One database of each dialect, with a table that must survive."""
    server = request.getfixturevalue("shared_server")
    other = request.getfixturevalue("mariadb")
    path = tmp_path_factory.mktemp("names") / "names.db"
    return {
        "postgresql": server.create_database(template=None),
        "mysql": other.url(other.create_database()),
        "sqlite": f"sqlite:///{path}",
    }


@pytest.mark.parametrize("dialect", DATABASES)
@pytest.mark.parametrize(
    "name",
    [
        'deliveries"; DROP TABLE deliveries; --',
        "deliveries`; DROP TABLE deliveries; --",
        "deliveries; DROP TABLE deliveries",
        "deliveries UNION SELECT 1",
        "(SELECT 1)",
    ],
)
def test_injected_sql_finds_no_table_and_does_nothing(
    repeats: Command, make_table: MakeTable, dialect: str, name: str
) -> None:
    history = make_history(1, 30)
    url = make_table(dialect, history)
    for words in (
        ("--table", name, *COLUMNS),
        ("--table", "deliveries", "-r", name, "-t", "at"),
        ("--table", "deliveries", "-r", "order", "-t", name),
    ):
        answer = repeats(url, *words)
        assert answer.code == 2, answer.out
        assert "Traceback" not in answer.err
    report = repeats(url, "--table", "deliveries", *COLUMNS, "--json").json()
    assert report["counts"]["rows"] == len(history)


@pytest.mark.parametrize("dialect", DATABASES)
def test_a_column_that_is_not_there_is_no_text(repeats: Command, make_table: MakeTable, dialect: str) -> None:
    """SQLite takes an unknown name in double quotes for a text: every row would have the same reference."""
    answer = repeats(
        make_table(dialect, make_history(1, 30)), "--table", "deliveries", "-r", "oder", "-t", "at"
    )
    assert answer.code == 2
    assert "oder" in answer.err
    assert "[query-refused]" in answer.err


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("orders", ("orders",)),
        ("shop.orders", ("shop", "orders")),
        ('shop."odd.name"', ("shop", "odd.name")),
        ('"a""b"', ('a"b',)),
        ("`a``b`", ("a`b",)),
        ("db.shop.orders", ("db", "shop", "orders")),
    ],
)
def test_a_table_is_named_with_its_schema(text: str, parts: tuple[str, ...]) -> None:
    assert split_name(text) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", 'a"b', '"a', "a.b.c.d"])
def test_what_names_no_table_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        split_name(text)


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 64, "\udc80"])
def test_what_no_name_can_be_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError):
        quote(name, "postgresql")


def test_a_schema_is_found(repeats: Command, make_table: MakeTable) -> None:
    url = make_table("postgresql", make_history(1, 30))
    execute(url, 'CREATE SCHEMA "Odd.One"', 'ALTER TABLE deliveries SET SCHEMA "Odd.One"')
    report = repeats(url, "--table", '"Odd.One".deliveries', *COLUMNS, "--json").json()
    assert report["counts"]["repeated_references"] == len(expected(make_history(1, 30)))


def test_postgresql_refuses_a_view_that_writes(repeats: Command, make_table: MakeTable) -> None:
    url = make_table("postgresql", make_history(1, 30))
    execute(
        url,
        "CREATE TABLE seen (n int)",
        "CREATE FUNCTION note() RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO seen VALUES (1) RETURNING n'",
        'CREATE VIEW writing AS SELECT "order", tenant, at, note() AS n FROM deliveries WHERE note() = 1',
        "CREATE SEQUENCE counted",
        "CREATE VIEW counting AS SELECT \"order\", tenant, at FROM deliveries WHERE nextval('counted') > 0",
    )
    for view in ("writing", "counting"):
        answer = repeats(url, "--table", view, *COLUMNS)
        assert answer.code == 2
        assert "read-only transaction" in answer.err
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM seen").fetchone() == (0,)
        assert connection.execute("SELECT * FROM seen, writing LIMIT 0").fetchall() == []


def test_mysql_refuses_a_view_that_writes(repeats: Command, make_table: MakeTable) -> None:
    url = make_table("mysql", make_history(1, 30))
    execute(
        url,
        "CREATE TABLE seen (n int)",
        "CREATE FUNCTION note() RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO seen VALUES (1); RETURN 1; END",
        "CREATE VIEW writing AS SELECT `order`, tenant, at FROM deliveries WHERE note() = 1",
    )
    answer = repeats(url, "--table", "writing", *COLUMNS)
    assert answer.code == 2, answer.out
    assert "READ ONLY" in answer.err.upper().replace("-", " ")
    with connect_to(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM seen")
        assert cursor.fetchone() == (0,)


def test_times_that_sqlite_cannot_read_are_said_to_need_a_view(repeats: Command, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.executescript(
            "CREATE TABLE seen (ref, at); INSERT INTO seen VALUES (1, '01.05.2026 01:09')"
        )
    connection.close()
    answer = repeats(f"{tmp_path}/t.db", "--table", "seen", "-r", "ref", "-t", "at")
    assert answer.code == 2
    assert "or a view that makes them times" in answer.err
    assert "--time-format" not in answer.err


def test_sqlite_is_opened_read_only(repeats: Command, make_table: MakeTable, tmp_path: Path) -> None:
    url = make_table("sqlite", make_history(1, 30))
    path = Path(url.removeprefix("sqlite:///"))
    before = path.read_bytes()
    path.chmod(0o444)
    assert repeats(url, "--table", "deliveries", *COLUMNS).code == 1
    assert path.read_bytes() == before
    assert repeats(f"sqlite:///{tmp_path}/none.db", "--table", "deliveries", *COLUMNS).code == 3
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("dialect", DATABASES)
def test_all_statements_see_the_same_moment(make_table: MakeTable, dialect: str) -> None:
    """What is written while it reads, by others, is in none of the seven answers."""
    history = make_history(1, 30)
    url = make_table(dialect, history)
    if dialect == "sqlite":
        execute(url, "PRAGMA journal_mode = WAL")  # else the writer would wait for the reader
    table = HistoryTable(dialect, ("deliveries",), ("order", "tenant"), "at")
    with open_reader(url, UTC_ZONE) as reader:
        before = count(reader, table)
        execute(
            url, "INSERT INTO deliveries SELECT * FROM deliveries" if dialect == "sqlite" else MORE[dialect]
        )
        assert count(reader, table) == before
    with open_reader(url, UTC_ZONE) as reader:
        assert count(reader, table).rows == 2 * before.rows


MORE = {
    "postgresql": 'INSERT INTO deliveries ("order", tenant, at) SELECT "order", tenant, at FROM deliveries',
    "mysql": "INSERT INTO deliveries (`order`, tenant, at) SELECT `order`, tenant, at FROM deliveries",
}
SLOW = {
    "postgresql": 'CREATE VIEW slow AS SELECT "order", tenant, at FROM deliveries, pg_sleep(60)',
    "mysql": "CREATE VIEW slow AS SELECT `order`, tenant, at FROM deliveries, (SELECT sleep(60)) AS s",
    "sqlite": "CREATE VIEW slow AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 999999999) "
    "SELECT `order`, tenant, at FROM deliveries, (SELECT max(i) FROM n)",
}


@pytest.mark.parametrize("dialect", DATABASES)
def test_a_statement_ends_with_its_time_out(repeats: Command, make_table: MakeTable, dialect: str) -> None:
    url = make_table(dialect, make_history(1, 30))
    execute(url, SLOW[dialect])
    began = time.monotonic()
    answer = repeats(url, "--table", "slow", *COLUMNS, "--timeout", "500 ms")
    assert answer.code == 3, answer.out
    assert "took longer than 0.5 s" in answer.err
    assert "[statement-timed-out]" in answer.err
    assert time.monotonic() - began < 20


def test_what_cannot_be_reached_has_its_exit_code(repeats: Command) -> None:
    for url in ("postgresql://x@127.0.0.1:1/none", "mysql://x@127.0.0.1:1/none"):
        answer = repeats(url, "--table", "deliveries", *COLUMNS)
        assert answer.code == 3
        assert "Could not connect" in answer.err


@pytest.mark.parametrize("dialect", DATABASES)
def test_the_printed_sql_runs_and_gives_the_same(
    repeats: Command, make_table: MakeTable, dialect: str
) -> None:
    history = make_history(7)
    url = make_table(dialect, history)
    words = (
        url,
        "--table",
        "deliveries",
        *COLUMNS,
        "--limit",
        "9",
        "--since",
        "2026-03-02",
        "--timeout",
        "20 s",
    )
    printed = repeats(*words, "--sql")
    assert printed.code == 0
    assert repeats("--dialect", dialect, *words[1:], "--sql").out == printed.out
    report = repeats(*words, "--json").json()
    tables = run_statements(url, printed.out)
    listed = next(rows for names, rows in tables if "shortest_gap_ms" in names)
    assert [tuple(as_text(part) for part in row[:2]) for row in listed] == [
        tuple(one["reference"]) for one in report["repeats"]
    ]
    assert [row[2] for row in listed] == [one["deliveries"] for one in report["repeats"]]
    assert [int(row[5]) for row in listed] == [round(one["shortest_gap"] * 1000) for one in report["repeats"]]
    gaps = next(rows for names, rows in tables if "low_ms" in names)
    assert sum(int(row[1]) for row in gaps) == report["counts"]["repeats"]
    (counts,) = next(rows for names, rows in tables if "row_count" in names)
    assert int(counts[0]) == report["counts"]["rows"]


@pytest.mark.parametrize(
    ("dialect", "program"), [("postgresql", "psql"), ("mysql", "mariadb"), ("sqlite", "sqlite3")]
)
def test_the_printed_sql_is_a_script_for_the_databases_own_client(
    repeats: Command, make_table: MakeTable, dialect: str, program: str
) -> None:
    client = shutil.which(program)
    if client is None:
        pytest.skip(f"{program} is not installed")
    history = make_history(8)
    url = make_table(dialect, history)
    script = repeats(url, "--table", "deliveries", *COLUMNS, "--sql").out
    if dialect == "postgresql":
        command = [client, "-X", "-v", "ON_ERROR_STOP=1", "-A", "-t", "-d", url]
    elif dialect == "sqlite":
        command = [client, "-bail", url.removeprefix("sqlite:///")]
    else:
        name, socket = re.findall(r"/(\w+)\?unix_socket=(.*)", url)[0]
        command = [client, "--no-defaults", f"--socket={socket}", "-u", "root", "-N", name]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    most = max(expected(history).items(), key=lambda item: (len(item[1]), -item[1][0]))
    assert re.search(rf"{most[0][0]}\W+{most[0][1]}\W+{len(most[1])}\W+{most[1][0]}", done.stdout)


@pytest.mark.parametrize("dialect", DATABASES)
def test_the_printed_sql_lets_nothing_be_written(
    repeats: Command, make_table: MakeTable, dialect: str
) -> None:
    """What it begins with, on a plain connection, refuses what comes behind it."""
    url = make_table(dialect, make_history(8, 30))
    statements = repeats(url, "--table", "deliveries", *COLUMNS, "--sql").out.split(";\n")
    first = next(place for place, each in enumerate(statements) if "SELECT" in each)
    with pytest.raises(Exception, match=r"(?i)read.?only"):
        run_statements(url, ";\n".join([*statements[:first], "DELETE FROM deliveries"]))
    assert repeats(url, "--table", "deliveries", *COLUMNS).code == 1


def run_statements(url: str, script: str) -> list[tuple[list[str], list[tuple[object, ...]]]]:
    """Each statement of the script on a plain connection; the tables that came."""
    statements = [part.strip() for part in script.split(";\n") if part.strip()]
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            cursors = [connection.execute(statement) for statement in statements]
            return [([c[0] for c in x.description], x.fetchall()) for x in cursors if x.description]
    if url.startswith("mysql"):
        with connect_to(url, autocommit=True) as connection, connection.cursor() as cursor:
            tables = []
            for statement in statements:
                cursor.execute(statement)
                if cursor.description:
                    tables.append(([column[0] for column in cursor.description], list(cursor.fetchall())))
            return tables
    with psycopg.connect(url, autocommit=True) as connection:
        done = [connection.execute(statement) for statement in statements]
        return [([c.name for c in x.description], x.fetchall()) for x in done if x.description]


def as_text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def test_values_are_written_out_as_numbers_only() -> None:
    table = HistoryTable("postgresql", ("t",), ("r",), "at", since_ms=5, until_ms=9)
    from semel.store.past.writing import written_out

    with pytest.raises(ValueError, match="invalid literal"):
        written_out(table.pieces("list_repeats"), {"since": "0; DROP", "until": 1, "most_listed": 1})  # type: ignore[dict-item]
