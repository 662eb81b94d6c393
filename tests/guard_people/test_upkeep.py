"""A worker's upkeep: retention of operations, and a word about what waits for somebody."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import psycopg
import pytest
from tests.guard_people.conftest import ME, Inbox

from semel import App
from semel.operate.held import done

YEAR = 366 * 86_400


async def keep_house(url: str, **settings: object) -> None:
    """An embedded worker for as long as its upkeep needs for one round."""
    app = App(database=url, **settings)  # type: ignore[arg-type]

    @app.job
    async def nothing() -> None: ...

    with suppress(TimeoutError):
        async with asyncio.timeout(3), app.worker(schedules=False):
            await asyncio.sleep(60)


def test_a_worker_keeps_the_operations_house(beside: Inbox, caplog: pytest.LogCaptureFixture) -> None:
    states = ("claimed", "stale", "held", "released", "completed")
    made = {state: beside.make(state)[0] for state in states}
    for state in ("stale", "held", "released", "completed"):
        for column in ("changed_at", "completed_at"):
            beside.shift(made[state], column, 100 * 86_400)
    forgotten, _ = beside.make("held", job_type="old")
    beside.act(done, forgotten, 1, ME, "found it")
    beside.shift(forgotten, "completed_at", YEAR)
    beside.shift(forgotten, "at", YEAR, "events")
    with caplog.at_level(logging.INFO, logger="semel.worker"):
        asyncio.run(keep_house(beside.url))
    left = {state for state in states if beside.find(made[state]) is not None}
    assert left == {"claimed", "stale", "held", "released"}
    assert "deleted 2 operations past their retention" in caplog.text
    (told,) = [record for record in caplog.records if "wait for somebody" in record.getMessage()]
    assert (told.job_type, told.held, told.stale, told.released) == ("charge", 1, 1, 1)  # type: ignore[attr-defined]
    with psycopg.connect(beside.url) as connection:
        rows = connection.execute("SELECT DISTINCT operation_id FROM semel.operation_events").fetchall()
    assert forgotten not in {row[0] for row in rows}


def test_retention_is_a_setting(beside: Inbox) -> None:
    made, _ = beside.make("completed")
    released, _ = beside.make("released")
    for column in ("changed_at", "completed_at"):
        for one in (made, released):
            beside.shift(one, column, 3 * 3600)
    asyncio.run(keep_house(beside.url, keep_operations="4 h", keep_released="2 h"))
    assert beside.find(made) is not None
    assert beside.find(released) is None
