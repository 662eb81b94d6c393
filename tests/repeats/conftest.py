"""Made histories with known repeats, in every kind of source, and the command over them."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from tests.guard import mariadb as servers
from tests.guard.mariadb import MariaDB, connect_to
from tests.support.keeping import run_directory
from typer.testing import CliRunner

from semel.cli.main import build

Delivery = tuple[str | None, str, datetime]
"""Order, tenant, time."""
START = datetime(2026, 3, 1, tzinfo=UTC)
DATABASES = ("postgresql", "mysql", "sqlite")
FILES = ("csv", "tsv", "csv.gz", "jsonl", "logfmt", "log")


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.code in (0, 1), self.err
        return json.loads(self.out)


Command = Callable[..., Answer]


@pytest.fixture
def repeats(monkeypatch: pytest.MonkeyPatch) -> Command:
    """``semel repeats`` in this process."""
    for name in ("SEMEL_DATABASE_URL", "SEMEL_MASK_KEY", "SEMEL_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str, stdin: bytes | None = None) -> Answer:
        result = CliRunner().invoke(build(), ["repeats", *words], input=stdin, prog_name="semel")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture(scope="session")
def mariadb(request: pytest.FixtureRequest) -> MariaDB:
    """The MariaDB server of the whole run; never stop it."""
    return servers.shared(*run_directory(request))


def make_history(seed: int, count: int = 600) -> list[Delivery]:
    """Orders of two tenants over ten days; some come again, seconds to days later. Times are whole milliseconds."""
    random = Random(seed)
    made: list[Delivery] = []
    for number in range(count):
        order, tenant = f"order-{number // 2:05}", "ab"[number % 2]  # each number twice: once a tenant
        first = START + timedelta(milliseconds=random.randrange(10 * 86_400_000))
        made.append((order, tenant, first))
        for _ in range(random.choices((0, 1, 2, 5), (85, 10, 4, 1))[0]):
            gap = random.choice((0, 40, 2_000, 361_000, 7_200_000, 172_800_000))
            made.append((order, tenant, first + timedelta(milliseconds=gap * random.randint(1, 3))))
    made += [(None, "a", START), (None, "a", START), ("", "b", START), ("", "b", START)]
    made += [("ABC", "a", START), ("abc", "a", START), ("abc ", "a", START), ("ábc", "a", START)]
    random.shuffle(made)
    return made


def expected(history: Sequence[Delivery]) -> dict[tuple[str, str], list[int]]:
    """The truth, worked out in the plainest way: each repeated reference, with its times in order."""
    times: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for order, tenant, moment in history:
        if order:
            times[order, tenant].append(round(moment.timestamp() * 1_000))
    return {reference: sorted(each) for reference, each in times.items() if len(each) > 1}


def found(report: Any) -> dict[tuple[str, ...], tuple[int, int, int, list[int]]]:
    """What a report lists: count, first, last, gaps in ms."""
    return {
        tuple(one["reference"]): (
            one["deliveries"],
            as_ms(one["first"]),
            as_ms(one["last"]),
            [round(gap * 1_000) for gap in one["gaps"]],
        )
        for one in report["repeats"]
    }


def as_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1_000)


def write_file(path: Path, history: Sequence[Delivery]) -> list[str]:
    """The history as a file of the kind that its name says; answers the options that it needs."""
    kind = path.name.partition(".")[2]
    if kind.startswith(("csv", "tsv")):
        with gzip.open(path, "wt", newline="") if kind.endswith("gz") else path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if kind == "tsv" else ",")
            writer.writerow(["note", "order", "tenant", "at"])
            writer.writerows(('say "hi",\nthen', o or "", t, m.isoformat()) for o, t, m in history)
        return []
    lines = []
    for order, tenant, moment in history:
        if kind == "jsonl":
            lines.append(json.dumps({"job": {"order": order, "tenant": tenant}, "at": moment.isoformat()}))
        elif kind == "logfmt":
            lines.append(f'at={moment.isoformat()} level=info order="{order or ""}" tenant={tenant}')
        else:
            lines.append(f"[{moment.isoformat()}] INFO charged <{order or ''}> for {tenant}!")
    path.write_text("\n".join(lines) + "\n")
    if kind == "jsonl":
        return ["-r", "job.order", "-r", "job.tenant", "-t", "at"]
    if kind == "log":
        pattern = r"\[(?P<at>[^\]]+)\].*<(?P<order>[^>]*)> for (?P<tenant>\w)"
        return ["--pattern", pattern, "-r", "order", "-r", "tenant", "-t", "at"]
    return []


@pytest.fixture
def make_table(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[str, Sequence[Delivery]], str]]:
    """Makes a database of a dialect with the history in its table ``deliveries``; answers its URL."""
    ending: list[Callable[[], None]] = []

    def make(dialect: str, history: Sequence[Delivery]) -> str:
        if dialect == "postgresql":
            server = request.getfixturevalue("shared_server")
            url: str = server.create_database(template=None)
            ending.append(lambda: server.drop_database(url))
            with psycopg.connect(url) as connection:
                connection.execute(
                    'CREATE TABLE deliveries (id serial, "order" text, tenant text, at timestamptz)'
                )
                insert = 'INSERT INTO deliveries ("order", tenant, at) VALUES (%s, %s, %s)'
                connection.cursor().executemany(insert, history)
            return url
        if dialect == "mysql":
            other = request.getfixturevalue("mariadb")
            name = other.create_database()
            ending.append(lambda: other.drop_database(name))
            with (
                other.connect(name, autocommit=True, charset="utf8mb4") as connection,
                connection.cursor() as cursor,
            ):
                cursor.execute(
                    "CREATE TABLE deliveries (id int auto_increment primary key, `order` varchar(80), tenant varchar(9), "
                    "at datetime(3)) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
                )
                rows = [(o, t, m.replace(tzinfo=None)) for o, t, m in history]
                cursor.executemany("INSERT INTO deliveries (`order`, tenant, at) VALUES (%s, %s, %s)", rows)
            return str(other.url(name))
        path = tmp_path / f"history-{len(ending)}.db"
        ending.append(lambda: None)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(
                "CREATE TABLE deliveries (id integer, `order` text COLLATE NOCASE, tenant, at text)"
            )
            rows = [(None, o, t, m.isoformat()) for o, t, m in history]
            connection.executemany("INSERT INTO deliveries VALUES (?, ?, ?, ?)", rows)
            connection.commit()
        return f"sqlite:///{path}"

    yield make
    for end in ending:
        end()


def execute(url: str, *statements: str) -> None:
    """Statements on a database that `make_table` made."""
    if url.startswith("mysql"):
        with connect_to(url, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
    elif url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
