"""The generic plans of the statements that every guarded operation passes, over 50,000 records: an index, never the table."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

import psycopg
import pytest
from tests.guard_people.test_plans import FILL
from tests.servers import SharedServer

from semel.sql import Catalogue

BY_KEY = (
    *(
        "insert",
        "insert_row",
        "read",
        "read_free",
        "read_locked",
        "read_payload",
        "claim",
        "act",
        "extend",
        "renew",
    ),
    *("complete", "complete_late", "complete_row", "release", "uncertain", "touch"),
    *("take_over", "take_over_to_look", "look_later", "hold", "hold_mine", "miss"),
)
"""What a delivery asks, always of one operation."""

BY_NUMBER = ("lock_operation", "operation", "person_complete", "person_release")
"""What a person's decision asks, of one operation too."""

EXEMPT = {
    "list_operations": "a list: tests/guard_people/test_plans.py",
    "count_operations": "a list: tests/guard_people/test_plans.py",
    "list_adapters": "asked by a person before a redo; as count_operations",
    "count_stale": "a list: tests/guard_people/test_plans.py",
    "count_open": "asked by a person: tests/doctor/test_database.py",
    "end_lease": "by a replay alone, on staging: tests/replay/test_judge_right.py",
    "measure_runs": "asked by a person: tests/note/test_measures.py",
    "find_unique": "reads the catalogue only",
    "operation_events": "one operation's history: tests/guard_people/test_plans.py",
    "events_window": "a view of the history in a span of time",
    "event": "inserts one line of history and reads nothing",
    "purge_completed": "retention: tests/guard_people/test_plans.py",
    "purge_released": "retention: tests/guard_people/test_plans.py",
    "purge_events": "retention of the history, once in a while",
    "count_purge": "asked by a person before a purge",
    "redact": "asked by a person",
    "redact_events": "asked by a person",
    "has_queue": "reads the catalogue only",
    "has_tables": "reads the catalogue only",
    "identify": "reads the catalogue only",
    "read_clock": "reads no table",
    "read_isolation": "reads no table",
    "read_only": "reads no table",
    "read_server": "reads no table",
}


@pytest.fixture(scope="module")
def connection(shared_server: SharedServer) -> Iterator[psycopg.Connection]:
    """To a database with 50,000 operations, which plans as if it knew no parameter's value."""
    url = shared_server.create_database()
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as opened:
        opened.execute(FILL)
        opened.execute("VACUUM ANALYZE semel.operations")
        opened.execute("SET plan_cache_mode = force_generic_plan")
        yield opened
    shared_server.drop_database(url)


def explain(connection: psycopg.Connection, name: str) -> str:
    text, names = Catalogue("semel").text(f"guard/{name}").numbered
    connection.execute(f"PREPARE {name} AS {text}".encode())
    given = f"({', '.join(['NULL'] * len(names))})" if names else ""
    return "\n".join(row[0] for row in connection.execute(f"EXPLAIN EXECUTE {name}{given}".encode()))


@pytest.mark.parametrize("name", BY_KEY)
def test_a_delivery_reads_by_the_key(connection: psycopg.Connection, name: str) -> None:
    plan = explain(connection, name)
    assert "operations_once" in plan, plan
    assert "Seq Scan" not in plan, plan


@pytest.mark.parametrize("name", BY_NUMBER)
def test_a_decision_reads_by_the_number(connection: psycopg.Connection, name: str) -> None:
    plan = explain(connection, name)
    assert "operations_pkey" in plan, plan
    assert "Seq Scan" not in plan, plan


def test_the_check_sees_a_whole_table(connection: psycopg.Connection) -> None:
    """The control: without the index it would fail."""
    plan = connection.execute("EXPLAIN SELECT * FROM semel.operations WHERE label = 'x'").fetchall()
    assert any("Seq Scan" in row[0] for row in plan)


def test_every_statement_is_planned_or_named() -> None:
    folder = resources.files("semel.sql").joinpath("guard/postgresql")
    there = sorted(each.name.removesuffix(".sql") for each in folder.iterdir() if each.name.endswith(".sql"))
    assert sorted([*BY_KEY, *BY_NUMBER, *EXEMPT]) == there
