"""Which ticks get a job: from when a schedule is known, what is caught up, and what a replica more changes."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

import pytest
from tests.schedules.helpers import plan, ticks_over
from tests.worker.helpers import LIMIT, ask, drain, make_app, until

from semel.queue.worker.messages import SchedulePlan

TICKS = "SELECT CAST(meta ->> 'tick' AS timestamptz) FROM jobs ORDER BY 1"
HOURLY = plan(every=3600.0)
RARE = plan(name="rare", expression="0 0 29 2 *", every=None)


def ticks(url: str) -> list[datetime]:
    return [row[0] for row in ask(url, TICKS)]


def start(url: str, *plans: SchedulePlan, replicas: int = 1) -> list[datetime]:
    """Start replicas, and stop them when they have looked back and wait for what is next; answers all jobs' ticks."""

    async def work() -> None:
        all_of_them = [ticks_over(url, *plans) for _ in range(replicas)]
        tasks = [asyncio.create_task(each.run()) for each in all_of_them]
        ready = lambda: all(len(each._position) == len(plans) for each in all_of_them)  # noqa: E731
        await until(ready, "the replicas to be ready")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(work())
    return ticks(url)


def known_since(url: str, schedule: SchedulePlan, ago: str) -> None:
    """As if the schedule had been noted so long ago, and nothing had run since."""
    start(url, schedule)
    ask(url, "DELETE FROM jobs")
    ask(url, "DELETE FROM schedule_ticks")
    ask(url, "UPDATE schedules SET since = now() - CAST(%s AS interval)", ago)


def note_tick(url: str, ago: str) -> None:
    """As if the tick of the hour so long ago had got its job."""
    sql = "INSERT INTO schedule_ticks VALUES ('beat', date_trunc('hour', now() - CAST(%s AS interval)))"
    ask(url, sql, ago)


def hours(url: str) -> datetime:
    return ask(url, "SELECT date_trunc('hour', now())")[0][0]


def test_a_tick_makes_a_job_with_the_job_s_options(database_url: str) -> None:
    async def work() -> None:
        task = asyncio.create_task(ticks_over(database_url).run())
        await until(lambda: ticks(database_url))
        task.cancel()

    asyncio.run(work())
    row = ask(
        database_url,
        "SELECT kind, payload, queue, priority, max_attempts, meta ->> 'schedule', run_at::text FROM jobs LIMIT 1",
    )[0]
    assert row[:6] == ("beat", {"order": 7}, "beats", 3, 2, "beat")
    assert datetime.fromisoformat(row[6]) == ticks(database_url)[0]


def test_a_new_schedule_does_not_fire_for_ticks_before_it_was_seen(database_url: str) -> None:
    assert start(database_url, HOURLY, RARE) == []
    assert start(database_url, plan(name="other", every=60.0, missed="all")) == []


def test_one_missed_tick_is_caught_up_once(database_url: str) -> None:
    known_since(database_url, HOURLY, "5 hours 30 minutes")
    assert start(database_url, HOURLY, replicas=2) == [hours(database_url)]
    assert start(database_url, HOURLY) == [hours(database_url)]


def test_a_caught_up_job_that_is_gone_does_not_come_again(database_url: str) -> None:
    known_since(database_url, HOURLY, "5 hours 30 minutes")
    assert len(start(database_url, HOURLY)) == 1
    ask(database_url, "DELETE FROM jobs")
    assert start(database_url, HOURLY) == []


def test_nothing_is_caught_up_that_is_older_than_a_day(database_url: str) -> None:
    daily = plan(every=48 * 3600.0)
    known_since(database_url, daily, "300 days")
    latest = daily.schedule.latest_tick(hours(database_url))
    assert latest is not None
    within = latest > hours(database_url) - timedelta(hours=24)
    assert start(database_url, daily) == ([latest] if within else [])
    known_since(database_url, RARE, "300 days")
    assert start(database_url, RARE) == []


def test_skip_makes_up_for_nothing(database_url: str) -> None:
    skipping = plan(every=3600.0, missed="skip")
    known_since(database_url, skipping, "5 hours 30 minutes")
    late = ask(database_url, "SELECT now() - interval '15 s'")[0][0]
    assert [tick for tick in start(database_url, skipping) if tick < late] == []


def test_all_makes_up_for_each_within_a_day(database_url: str) -> None:
    every = plan(every=3600.0, missed="all")
    known_since(database_url, every, "5 hours")
    now = hours(database_url)
    expected = [now - timedelta(hours=ago) for ago in (4, 3, 2, 1, 0)]
    assert start(database_url, every, replicas=3)[-5:] == expected
    known_since(database_url, every, "10 days")
    assert len(start(database_url, every)) == 24


def test_all_makes_up_for_the_last_hour_of_a_schedule_of_each_minute(database_url: str) -> None:
    """More ticks fit into a day than a replica makes up at once: those that got their job do not count."""
    minutely = plan(every=60.0, missed="all")
    known_since(database_url, minutely, "10 days")
    ask(
        database_url,
        """INSERT INTO schedule_ticks SELECT 'beat', date_trunc('minute', now()) - n * interval '1 minute'
             FROM generate_series(60, 3000) AS n""",
    )
    assert len(start(database_url, minutely)) in (60, 61)


def test_what_was_not_missed_is_not_said_to_be(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A restart between two ticks."""
    known_since(database_url, HOURLY, "10 days")
    note_tick(database_url, "0")
    with caplog.at_level(logging.WARNING, "semel.worker"):
        assert start(database_url, HOURLY) == []
    assert caplog.messages == []


def test_what_was_missed_is_said_to_be(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    known_since(database_url, HOURLY, "10 days")
    note_tick(database_url, "3 hours")
    with caplog.at_level(logging.WARNING, "semel.worker"):
        assert start(database_url, HOURLY) == [hours(database_url)]
    assert "schedule beat: nothing ran when it was due" in caplog.text


def test_a_changed_definition_starts_anew(database_url: str) -> None:
    known_since(database_url, HOURLY, "10 days")
    changed = plan(every=1800.0, missed="all")
    assert start(database_url, changed) == []
    assert ask(database_url, "SELECT count(*) FROM schedules WHERE since > now() - interval '1 minute'") == [
        (1,)
    ]


def test_an_unchanged_definition_keeps_its_past(database_url: str) -> None:
    known_since(database_url, HOURLY, "10 days")
    start(database_url, HOURLY)
    start(database_url, plan(every=3600.0, priority=5))
    assert ask(database_url, "SELECT count(*) FROM schedules WHERE since < now() - interval '9 days'") == [
        (1,)
    ]


def test_a_replica_that_stood_still_catches_up(database_url: str) -> None:
    """Its connection is cut, and the database's clock has gone on: here, its position is put back."""

    async def work() -> None:
        replica = ticks_over(database_url, plan(every=3600.0))
        task = asyncio.create_task(replica.run())
        await until(lambda: replica._position)
        replica._position["beat"] -= timedelta(hours=7)
        ask(
            database_url,
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()""",
        )
        other = ticks_over(database_url, plan(every=1.0, name="wake"), plan(every=3600.0))
        other._position = dict(replica._position)
        second = asyncio.create_task(other.run())
        await until(lambda: ask(database_url, "SELECT 1 FROM jobs WHERE meta ->> 'schedule' = 'beat'"))
        for each in (task, second):
            each.cancel()
        await asyncio.gather(task, second, return_exceptions=True)

    asyncio.run(work())
    beats = ask(database_url, "SELECT count(*) FROM schedule_ticks WHERE schedule = 'beat'")
    assert beats == [(1,)]


def test_a_schedule_s_jobs_run(database_url: str) -> None:
    app = make_app(database_url)
    ran: list[int] = []

    @app.schedule(every="1 h", name="nightly", arguments={"order": 7})
    @app.job
    async def charge(order: int) -> None:
        ran.append(order)

    drain(app)
    assert ran == []
    ask(database_url, "UPDATE schedules SET since = now() - interval '2 hours'")

    async def work() -> None:
        async with app.worker(), asyncio.timeout(LIMIT):
            await until(lambda: ran)

    asyncio.run(work())
    assert ran == [7]
