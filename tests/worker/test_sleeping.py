"""An idle worker hears of a new job at once, and nobody is notified where nobody sleeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.worker.helpers import LIMIT, ask, until, wait_until
from tests.worker.processes import running

from semel import App
from semel.embedded import EmbeddedServer
from semel.queue.worker import sleeping, sweeping
from semel.queue.worker.embedded import EmbeddedWorker
from semel.queue.worker.lanes import Lanes
from semel.queue.worker.sleeping import Sleeping
from semel.store.connect import connect_async
from semel.store.sleep import Ear

SELDOM = {"poll": "1 h", "quiet_poll": "1 h", "lease": "12 h"}
"""A worker that would not look by itself while a test waits."""

NOTED = "SELECT 1 FROM sleepers WHERE until > now()"


@pytest.fixture
def ran() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
def app(database_url: str, ran: asyncio.Event) -> App:
    return make_app(database_url, ran)


def make_app(url: str, ran: asyncio.Event) -> App:
    app = App(url)

    @app.job
    async def mark() -> None:
        ran.set()

    return app


@asynccontextmanager
async def asleep(app: App, url: str, **options: Any) -> AsyncIterator[EmbeddedWorker]:
    """A worker that has noted that it sleeps, and waits."""
    async with app.worker(**SELDOM | options) as worker, asyncio.timeout(LIMIT):
        while not ask(url, NOTED) or not worker.idle:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)  # into its wait, so that a wake-up before it is not what the test sees
        yield worker


def by_plain_sql(url: str) -> None:
    ask(url, "INSERT INTO jobs (kind) VALUES ('mark')")


def delayed(url: str) -> None:
    ask(url, "INSERT INTO jobs (kind, run_at) VALUES ('mark', now() + interval '300 ms')")


def by_copy(url: str) -> None:
    with (
        psycopg.connect(url) as connection,
        connection.cursor() as cursor,
        cursor.copy("COPY semel.jobs (kind) FROM STDIN") as copy,
    ):
        copy.write_row(("mark",))


def retried(url: str) -> None:
    ask(url, "INSERT INTO jobs (kind, status, queue) VALUES ('mark', 'failed', 'default')")
    ask(url, "UPDATE jobs SET status = 'pending', attempts = 0 WHERE kind = 'mark'")


def moved_forward(url: str) -> None:
    ask(url, "INSERT INTO jobs (kind, run_at) VALUES ('mark', now() + interval '10 years')")
    ask(url, "UPDATE jobs SET run_at = now() WHERE kind = 'mark'")


def with_a_longer_name(url: str) -> None:
    """Longer than a notification can be."""
    ask(url, "INSERT INTO jobs (kind, queue) VALUES ('mark', %s)", "ñ" * 4500)


@pytest.mark.parametrize(
    "store", [by_plain_sql, delayed, by_copy, retried, moved_forward, with_a_longer_name]
)
def test_a_sleeping_worker_starts_a_job_that_becomes_due(
    app: App, database_url: str, ran: asyncio.Event, store: Callable[[str], None]
) -> None:
    async def work() -> None:
        async with asleep(app, database_url):
            await asyncio.to_thread(store, database_url)
            await ran.wait()

    asyncio.run(work())


@pytest.mark.parametrize("behind", ["nothing", "a slow answer"])
def test_a_job_that_becomes_due_between_the_last_look_and_the_look_ahead_is_not_missed(
    app: App, database_url: str, ran: asyncio.Event, monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    look_ahead = Sleeping._look_ahead
    slow = sleeping.run_async

    async def late(self: Sleeping, *given: Any) -> float:
        if ask(database_url, "SELECT 1 FROM jobs"):  # the look before did not take it: it was not due
            await until(lambda: bool(ask(database_url, "SELECT 1 FROM jobs WHERE run_at <= now()")))
            if behind != "nothing":
                monkeypatch.setattr(sleeping, "_MARGIN", 0.1)
                monkeypatch.setattr(sleeping, "run_async", slowly)
        return await look_ahead(self, *given)

    async def slowly(*given: Any) -> Any:
        """The server hears of the question long after it was sent."""
        monkeypatch.setattr(sleeping, "run_async", slow)
        await asyncio.sleep(0.5)
        return await slow(*given)

    async def work() -> None:
        async with asleep(app, database_url):
            monkeypatch.setattr(Sleeping, "_look_ahead", late)
            await asyncio.to_thread(delayed, database_url)
            await ran.wait()

    asyncio.run(work())


def test_a_transaction_that_was_open_when_the_worker_fell_asleep_is_waited_for(
    app: App, database_url: str, ran: asyncio.Event
) -> None:
    """It looked for sleepers before there was one, so that it notifies nobody."""

    async def work() -> None:
        with psycopg.connect(database_url) as early:
            early.execute("INSERT INTO semel.jobs (kind) VALUES ('mark')")
            async with asleep(app, database_url):
                early.commit()
                await ran.wait()

    asyncio.run(work())


def test_nobody_is_notified_but_who_sleeps_and_serves_the_queue(app: App, database_url: str) -> None:
    heard: list[str] = []

    async def work() -> None:
        session = await connect_async(database_url, app.catalogue)
        assert await Ear(session, heard.append).open()
        ask(database_url, "INSERT INTO jobs (kind) VALUES ('other')")
        async with asleep(app, database_url, queues=["mail"]):
            ask(database_url, "INSERT INTO jobs (kind, queue) VALUES ('other', 'calls')")
            ask(database_url, "INSERT INTO jobs (kind, queue, run_at) VALUES ('other', 'mail', 'infinity')")
            ask(database_url, "INSERT INTO jobs (kind, queue) VALUES ('other', 'mail')")
        await session.connection.execute("SELECT 1")
        await session.connection.close()

    asyncio.run(work())
    assert heard == ["mail"]


def test_a_worker_at_work_is_not_notified(app: App, database_url: str) -> None:
    """After a second in which every look found something."""

    async def work() -> None:
        async with asleep(app, database_url, concurrency=1):
            while ask(database_url, NOTED):
                ask(database_url, "INSERT INTO jobs (kind) SELECT 'mark' FROM generate_series(1, 100)")
                await asyncio.sleep(0)

    asyncio.run(work())


def test_a_worker_that_may_not_note_its_sleep_looks_by_itself(
    app: App, database_url: str, ran: asyncio.Event
) -> None:
    async def work() -> None:
        async with app.worker(**SELDOM | {"poll": "50 ms"}), asyncio.timeout(LIMIT):
            await asyncio.to_thread(by_plain_sql, database_url)
            await ran.wait()

    ask(database_url, "DROP TRIGGER jobs_stored ON jobs")
    ask(
        database_url,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RAISE insufficient_privilege; END$$",
    )
    ask(database_url, "CREATE TRIGGER refuse BEFORE INSERT ON sleepers EXECUTE FUNCTION refuse()")
    asyncio.run(work())


def test_an_idle_worker_asks_when_the_next_job_is_due_at_every_third_look(
    own_server: EmbeddedServer, ran: asyncio.Event
) -> None:
    """Of what is stored meanwhile it hears. Open transactions, of whatever database, would make it ask at each look."""
    database_url = own_server.url("semel")
    app, asked = make_app(database_url, ran), list[str]()
    claim, ahead = "queue/claim", "queue/look_ahead"

    def watch(moment: str, name: str) -> None:
        if moment == "before" and name in (claim, ahead):
            asked.append(name)

    async def work() -> None:
        async with asleep(app, database_url, poll="50 ms", quiet_poll="100 ms", lease="12 h"):
            await until(lambda: asked[-2:] == [claim, claim], "no transaction of before is open any more")
            asked.clear()
            await until(lambda: asked.count(claim) > 24, "claims")

    app.database.watch = watch
    asyncio.run(work())
    assert 3 <= asked.count(ahead) <= 10, asked


def test_but_for_the_first_no_sweep_comes_between_a_lone_job_and_its_end(
    app: App, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share a connection. The next sweep comes while work goes on, here in an hour."""
    monkeypatch.setattr(sweeping, "_WORKING", 3600.0)
    monkeypatch.setattr(Lanes, "undecided", False)
    asked: list[str] = []

    async def one_job() -> None:
        ended = asked.count("queue/settle")
        await asyncio.to_thread(by_plain_sql, database_url)
        await until(lambda: asked.count("queue/settle") > ended, "its end")

    async def work() -> None:
        async with asleep(app, database_url):
            await one_job()
            await until(lambda: "queue/sweep" in asked, "the first sweep")
            asked.clear()
            for _ in range(3):
                await one_job()

    app.database.watch = lambda moment, name: asked.append(name) if moment == "after" else None
    asyncio.run(work())
    assert "queue/sweep" not in asked


def test_an_idle_child_is_not_woken_by_a_clock_of_its_own(database_url: str) -> None:
    """A quiet second has a look after its handlers in it, and little else; a draining one also looks whether it is idle."""

    def switches(child: int) -> int:
        for line in Path(f"/proc/{child}/status").read_text("ascii").splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                return int(line.split()[1])
        raise AssertionError("this system does not count them")

    with running(database_url) as worker:
        wait_until(lambda: ask(database_url, NOTED), "it sleeps")
        (child,) = worker.children()

        def in_a_second() -> int:
            before = switches(child)
            time.sleep(1)
            return switches(child) - before

        wait_until(lambda: in_a_second() <= 8, "a second with few wake-ups")


def test_it_hears_of_jobs_that_are_due_before_it_asks_again(app: App, database_url: str) -> None:
    heard: list[str] = []

    async def work() -> None:
        session = await connect_async(database_url, app.catalogue)
        assert await Ear(session, heard.append).open()
        async with asleep(app, database_url):
            for queue, hours in (("late", 7), ("soon", 4)):
                ask(
                    database_url,
                    "INSERT INTO jobs (kind, queue, run_at) VALUES ('other', %s, now() + %s * interval '1 hour')",
                    queue,
                    hours,
                )
        await session.connection.execute("SELECT 1")
        await session.connection.close()

    asyncio.run(work())
    assert heard == ["soon"]
