"""The days of the history: a reader holds up neither completions nor the making of days, only the end of one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from tests.support.journal import Journal
from tests.support.rivals import Rival, pairs, settling
from tests.support.stored import ask, statuses
from tests.support.waiting import until, until_async

from semel import App
from semel.store.faults import HistoryDayMissing, LockBusy
from semel.store.upkeep import (
    detach_history_day,
    drop_history_day,
    find_history_days,
    make_history_days,
    set_lock_timeout,
)

TODAY = "(clock_timestamp() AT TIME ZONE 'UTC')::date"


@contextmanager
def reader(url: str) -> Iterator[None]:
    """Somebody who has the history open, in a transaction that does not end."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT count(*) FROM semel.jobs_done")
        yield
        connection.rollback()


def drop_day(url: str, ahead: int) -> None:
    (name,) = ask(url, f"SELECT to_char({TODAY} + %s::int, '\"jobs_done_\"YYYYMMDD')", ahead)[0]
    ask(url, f"DROP TABLE semel.{name}")


def completes(rival: Rival) -> None:
    """A completion that may not wait."""
    rival.session.connection.execute("SET lock_timeout = '200 ms'")
    held = rival.claims()
    assert rival.does(settling(held)) == pairs(held)


def test_a_completion_without_its_day_changes_nothing(app: App, winner: Rival, database_url: str) -> None:
    app.jobs["quick"].enqueue()
    held = winner.claims()
    drop_day(database_url, 0)
    with pytest.raises(HistoryDayMissing):
        winner.does(settling(held))
    assert statuses(database_url) == {"running": 1}
    assert winner.does(make_history_days()) == 1
    assert winner.does(settling(held)) == pairs(held)


def test_a_worker_makes_the_missing_day_and_repeats(app: App, journal: Journal, database_url: str) -> None:
    drop_day(database_url, 0)
    app.jobs["quick"].enqueue_many([()] * 20)

    async def work() -> None:
        async with app.worker(upkeep=False, schedules=False):
            await until_async(lambda: statuses(database_url) == {"done": 20}, "all are done")

    asyncio.run(work())
    assert journal.count("start") == 20


def test_days_are_made_while_the_history_is_read(app: App, winner: Rival, database_url: str) -> None:
    app.jobs["quick"].enqueue()
    drop_day(database_url, 5)
    with reader(database_url):
        winner.session.connection.execute("SET lock_timeout = '200 ms'")
        assert winner.does(make_history_days()) == 1
        completes(winner)


def test_two_who_make_the_same_day_do_not_disturb_each_other(
    app: App, winner: Rival, loser: Rival, database_url: str
) -> None:
    drop_day(database_url, 0)
    with winner.holds(make_history_days()) as made:
        assert made == 1
        late = loser.waits_for(make_history_days())
    assert late.result(10) == 0


def test_a_day_that_is_taken_out_waits_for_its_reader_alone(
    app: App, winner: Rival, rival: Callable[[], Rival], database_url: str
) -> None:
    """Interrupted by its lock_timeout, the detachment is finished the next time."""
    ask(database_url, f"SELECT semel.make_history_day({TODAY} - 9)")
    app.jobs["quick"].enqueue_many([()] * 2)
    upkeep = rival()
    keep = timedelta(days=3)

    def old_days() -> list[str]:
        return [day.state for day in upkeep.does(find_history_days("semel", keep=keep)) if day.expired]

    (day,) = [day for day in upkeep.does(find_history_days("semel", keep=keep)) if day.expired]
    with reader(database_url):
        upkeep.does(set_lock_timeout())
        detachment = upkeep.waits_for(detach_history_day(day))
        completes(winner)
        with pytest.raises(LockBusy):
            detachment.result(10)
        completes(winner)
    assert old_days() == ["detaching"]
    (day,) = [day for day in upkeep.does(find_history_days("semel", keep=keep)) if day.expired]
    upkeep.does(detach_history_day(day))
    assert old_days() == ["detached"]
    upkeep.does(drop_history_day(day))
    assert old_days() == []
    until(lambda: statuses(database_url) == {"done": 2}, "the jobs are in the history")
