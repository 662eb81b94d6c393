"""A session on this test's database, and jobs in any status."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from semel.store.drivers.psycopg3 import PsycopgSession
from semel.store.session import open_session

Insert = Callable[..., int]


@pytest.fixture
def session(database_url: str) -> Iterator[PsycopgSession]:
    with open_session(database_url) as opened:
        yield opened


@pytest.fixture
def insert(session: PsycopgSession) -> Insert:
    """Stores a job with any columns; answers its id. ``table`` is jobs or jobs_done."""

    def store(table: str = "jobs", **columns: object) -> int:
        values: dict[str, object] = {"kind": "k"} | columns
        if table == "jobs_done":
            defaults = {
                "id": "nextval(pg_get_serial_sequence('semel.jobs', 'id'))",
                "payload": "'{}'",
                "status": "'done'",
                "attempts": "1",
                "max_attempts": "8",
                "run_at": "now()",
                "created_at": "now()",
                "queue": "'default'",
                "priority": "0",
                "claim": "1",
                "crashes": "0",
                "finished_at": "now()",
                "errors": "'[]'",
            }
        else:
            defaults = {}
        named = {name: text for name, text in defaults.items() if name not in values}
        names = ", ".join([*named, *values])
        places = ", ".join([*named.values(), *(f"%({name})s" for name in values)])
        row = session.connection.execute(
            f"INSERT INTO semel.{table} ({names}) VALUES ({places}) RETURNING id", values
        ).fetchone()
        assert row is not None
        return int(row[0])

    return store
