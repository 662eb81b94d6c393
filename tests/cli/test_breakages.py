"""Rows that no Python date can hold, and words that no database takes: an answer or a usage error, no traceback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.cli.conftest import Command

from semel.sql import Catalogue
from semel.store.connect import connect, connect_async

Sql = Callable[..., list[tuple[Any, ...]]]


@pytest.mark.parametrize(
    ("instant", "shown"),
    [
        ("infinity", "9999"),
        ("-infinity", "0001"),
        ("0044-03-15 12:00 BC", "0001"),
        ("20000-01-01 00:00", "9999"),
    ],
)
def test_a_job_at_a_time_that_is_no_datetime_is_shown(
    semel: Command, sql: Sql, instant: str, shown: str
) -> None:
    ((number,),) = sql(
        "INSERT INTO semel.jobs (kind, payload, run_at) VALUES ('tick', '{}', %s) RETURNING id", (instant,)
    )
    assert semel("jobs").code == 0
    assert semel("job", "show", str(number)).code == 0
    assert shown in semel("job", "show", str(number), "--json").out


@pytest.mark.parametrize(
    ("value", "read"),
    [
        *((f"{'[' * depth}{']' * depth}", depth < 100) for depth in (50, 150, 900, 990, 5000)),
        ("9" * 5000, False),
    ],
    ids=["50 levels", "150", "900", "990", "5000", "digits"],
)
def test_a_payload_that_nobody_can_read_is_shown(semel: Command, sql: Sql, value: str, read: bool) -> None:
    """Whoever looks for the job that its worker cannot read must see it: then as text."""
    payload = f'{{"order": {value}}}'
    ((number,),) = sql(
        "INSERT INTO semel.jobs (kind, payload) VALUES ('tick', %s::jsonb) RETURNING id", (payload,)
    )
    shown = semel("job", "show", str(number))
    assert (shown.code, shown.err) == (0, "")
    assert value in shown.out
    found = semel("job", "show", str(number), "--json").json()["payload"]
    assert found == (json.loads(payload) if read else payload)


@pytest.mark.parametrize(
    "words",
    [
        ("jobs", "--kind", "\udcff"),
        ("enqueue", "--raw", "tick", "--args", '{"a": "\udcff"}'),
        ("enqueue", "--raw", "tick", "--run", "99999999999 days"),
        ("enqueue", "--raw", "tick", "--args", '{"a": "\\u0000"}'),
        ("job", "retry", "99999999999999999999999"),
    ],
)
def test_words_that_no_database_takes_are_wrong_usage(semel: Command, words: tuple[str, ...]) -> None:
    answer = semel(*words)
    assert answer.code in (1, 2) if words[:2] == ("job", "retry") else answer.code == 2, answer
    assert "Error" in answer.err


@pytest.mark.parametrize("name", ["semel worker", "semel keeper", "semel supervisor"])
def test_a_workers_connections_have_no_time_limits_of_their_role(
    sql: Sql, database_url: str, name: str
) -> None:
    database = conninfo_to_dict(database_url)["dbname"]
    for setting in ("statement_timeout = '2 s'", "lock_timeout = '1 s'", "datestyle = 'SQL, DMY'"):
        sql(f'ALTER DATABASE "{database}" SET {setting}')

    async def work() -> list[Any]:
        session = await connect_async(database_url, Catalogue(), name=name)
        try:
            return [
                await shown(session.connection, setting) for setting in ("statement_timeout", "lock_timeout")
            ]
        finally:
            await session.connection.close()

    async def shown(connection: psycopg.AsyncConnection[Any], setting: str) -> Any:
        row = await (await connection.execute(f"SHOW {setting}".encode())).fetchone()
        return row and row[0]

    assert asyncio.run(work()) == ["0", "0"]


def test_own_connections_read_times_whatever_the_style_and_the_encoding(sql: Sql, database_url: str) -> None:
    database = conninfo_to_dict(database_url)["dbname"]
    sql(f"ALTER DATABASE \"{database}\" SET datestyle = 'SQL, DMY'")
    session = connect(psycopg.conninfo.make_conninfo(database_url, client_encoding="LATIN1"), Catalogue())
    try:
        row = session.connection.execute("SELECT now(), '€'").fetchone()
        assert row is not None
        assert (row[0].year >= 2024, row[1]) == (True, "€")
    finally:
        session.connection.close()
