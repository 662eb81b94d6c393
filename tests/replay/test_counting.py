"""Effects are counted where they arrive: rows of real databases, what an address answers, returns of the watched call."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.guard.conftest import make_database, mariadb
from tests.replay.test_proxy import run_upstream

from semel.errors import ConfigurationError, DatabaseUnreachable
from semel.replay.control import ControlRoom
from semel.replay.counting import HttpCounter, find_unreturned, open_counter, refuse_counted
from semel.replay.description import Command, CountCalls, CountHttp, CountSql, Description, Watch
from semel.replay.events import Event, Point

__all__ = ["make_database", "mariadb"]

QUERY = "SELECT count(*) FROM charges WHERE name = :name AND note <> ':name' AND note NOT LIKE '%x'; "
MESSAGE = {"name": "o'rder; DROP TABLE charges", "amount": 5}


class Charges:
    """A table of effects in a database of one dialect."""

    def __init__(self, dialect: str, made: Any) -> None:
        if dialect == "postgresql":
            self.target, self.mark = made, "%s"
            self.connection: Any = psycopg.connect(made, autocommit=True)
        elif dialect == "mysql":
            server, name = made
            self.target, self.mark = server.url(name), "%s"
            self.connection = server.connect(name, autocommit=True)
        else:
            self.target, self.mark = str(made), "?"
            self.connection = sqlite3.connect(made, isolation_level=None)

    def run(self, text: str, *values: Any) -> None:
        cursor = self.connection.cursor()
        cursor.execute(text.replace("?", self.mark), values)
        self.connection.commit()


@pytest.fixture(params=["postgresql", "mysql", "sqlite"])
def charges(request: pytest.FixtureRequest, make_database: Callable[[str], Any]) -> Iterator[Charges]:
    made = Charges(request.param, make_database(request.param))
    made.run("CREATE TABLE charges (name varchar(100), note varchar(100))")
    yield made
    made.connection.close()


def described(count: CountCalls | CountSql | CountHttp) -> Description:
    return Description(
        name="charge", deliver=Command(command=["x"]), watch=Watch(call="x.y"), message={}, count=count
    )


def counted(query: str, database: str | None, message: dict[str, Any] | None = None, number: int = 1) -> int:
    with open_counter(
        described(CountSql(query=query, database=database)), ControlRoom(), distinct=False
    ) as it:
        return it.count(number, MESSAGE if message is None else message)


def test_committed_rows_are_counted(charges: Charges) -> None:
    description = described(CountSql(query=QUERY, database=charges.target))
    with open_counter(description, ControlRoom(), distinct=True) as counter:
        for expected in range(3):
            assert counter.count(1, MESSAGE) == expected
            charges.run("INSERT INTO charges VALUES (?, ?)", MESSAGE["name"], "")
        charges.run("INSERT INTO charges VALUES (?, ?)", MESSAGE["name"], ":name")
        charges.run("INSERT INTO charges VALUES (?, ?)", "another", "")
        assert counter.count(1, MESSAGE) == 3
        assert counter.count(1, {"name": "another"}) == 1
        cursor = charges.connection.cursor()
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO charges VALUES ('another', '')")
        assert counter.count(1, {"name": "another"}) == 1, "what is not committed did not happen"
        cursor.execute("ROLLBACK")


def test_a_query_cannot_write(charges: Charges) -> None:
    charges.run("INSERT INTO charges VALUES ('kept', '')")
    with pytest.raises(ConfigurationError, match="The query that counts effects failed"):
        counted("DELETE FROM charges", charges.target)
    assert counted("SELECT count(*) FROM charges", charges.target) == 1


def test_the_sum_of_nothing_is_none(charges: Charges) -> None:
    assert counted("SELECT sum(1) FROM charges", charges.target) == 0


def test_the_operations_number_is_a_parameter(charges: Charges) -> None:
    charges.run("INSERT INTO charges VALUES ('7', '')")
    query = "SELECT count(*) FROM charges WHERE CAST(name AS decimal) = :n"
    assert counted(query, charges.target, number=7) == 1
    assert counted(query, charges.target, number=8) == 0


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT count(*) FROM charges WHERE name = :order", "asks for :order"),
        ("SELECT count(*) FROM nothing", "failed"),
        ("SELECT name FROM charges", "answered 0 rows"),
        ("SELECT 'many'", "not one number"),
    ],
)
def test_a_query_that_counts_nothing_is_refused(charges: Charges, query: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        counted(query, charges.target)


def test_no_database_is_made_by_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="There is no SQLite database"):
        counted("SELECT 1", str(tmp_path / "none.db"))
    assert [*tmp_path.iterdir()] == []
    monkeypatch.delenv("SEMEL_DATABASE_URL", raising=False)
    with pytest.raises(ConfigurationError, match="No database is named"):
        counted("SELECT 1", None)
    with pytest.raises(DatabaseUnreachable):
        counted("SELECT 1", "postgresql+psycopg://127.0.0.1:1/none")


def test_what_is_counted_before_anything_is_delivered_is_refused(charges: Charges) -> None:
    charges.run("INSERT INTO charges VALUES ('1', '')")
    everything = described(CountSql(query="SELECT count(*) FROM charges", database=charges.target))
    with open_counter(everything, ControlRoom(), distinct=False) as counter:
        with pytest.raises(
            ConfigurationError, match="Before anything is delivered, 1 effects of operation 7"
        ):
            refuse_counted(counter, 7, {"name": "7"})
    one = described(CountSql(query=QUERY, database=charges.target))
    with open_counter(one, ControlRoom(), distinct=False) as counter:
        refuse_counted(counter, 7, {"name": "7"})


def test_an_address_that_is_not_there_yet_has_no_effects() -> None:
    with run_upstream() as upstream:
        upstream.status = 404
        assert HttpCounter(upstream.url, "data.total").count(1, {}) == 0
        upstream.status = 500
        with pytest.raises(ConfigurationError, match="does not say how many"):
            HttpCounter(upstream.url, "data.total").count(1, {})


def test_an_address_answers() -> None:
    with run_upstream() as upstream:
        counter = HttpCounter(f"{upstream.url}/charges?of={{name}}&n={{n}}", "id")
        assert counter.count(4, {"name": "a b/&c"}) == 1
        assert counter.count(4, {"name": "x"}) == 2
        assert [path for _, path, _, _ in upstream.asked] == [
            "/charges?of=a%20b%2F%26c&n=4",
            "/charges?of=x&n=4",
        ]
        with pytest.raises(ConfigurationError, match="answered without 'data'"):
            HttpCounter(upstream.url, "data.total").count(1, {})
        with pytest.raises(ConfigurationError, match="no number and no list"):
            HttpCounter(upstream.url, None).count(1, {})
        upstream.status = 500
        with pytest.raises(ConfigurationError, match="500"):
            HttpCounter(upstream.url, "id").count(1, {})
    with pytest.raises(ConfigurationError, match="not 'file:"):
        HttpCounter("file:///etc/passwd", None).count(1, {})
    description = described(CountHttp(url="http://127.0.0.1:1/", field="id"))
    with open_counter(description, ControlRoom(), distinct=False) as opened:
        with pytest.raises(ConfigurationError, match="does not say"):
            opened.count(1, {})


def test_lists_are_counted_by_their_length() -> None:
    with run_upstream() as upstream:
        upstream.body = b'{"data": [{"items": [1, 2, 3]}]}'
        assert HttpCounter(upstream.url, "data.0.items").count(1, {}) == 3
        assert HttpCounter(upstream.url, "data").count(1, {}) == 1


def arrived(room: ControlRoom, point: Point, digest: str = "", pid: int = 1, **detail: Any) -> Event:
    event = Event(point=point, pid=pid, at=0.0, operation=1, digest=digest, detail=detail)
    room.arrive(event)
    return event


def test_calls_that_returned_are_counted() -> None:
    room = ControlRoom()
    for digest in ("a", "a", "b"):
        arrived(room, Point.ENTRY, digest)
        arrived(room, Point.RETURN, digest)
    arrived(room, Point.ENTRY, "c")
    arrived(room, Point.RAISED, "c")
    arrived(room, Point.ENTRY, "d", pid=2)
    arrived(room, Point.RETURN, "e", status=409)
    arrived(room, Point.RETURN, "f", status=201)
    for distinct, expected in ((False, 4), (True, 3)):
        with open_counter(described(CountCalls()), room, distinct=distinct) as counter:
            assert counter.count(1, {}) == expected
            assert counter.count(2, {}) == 0


def test_an_entry_without_its_end_is_a_maybe() -> None:
    room = ControlRoom()
    arrived(room, Point.ENTRY)
    arrived(room, Point.RETURN)
    arrived(room, Point.ENTRY)
    arrived(room, Point.RAISED)
    died = arrived(room, Point.ENTRY, pid=2)
    arrived(room, Point.RETURN, pid=3)
    again = arrived(room, Point.ENTRY, pid=2)
    assert find_unreturned(room.events(1)) == [died, again]
