"""An idle relay hears of a new message at once, and asks the database little meanwhile."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg
import pytest
from tests.relay.forwarded import comes_true, make_app
from tests.support.stored import ask

from semel import App
from semel.embedded import EmbeddedServer
from semel.relay import Message, Relay, Running, Sender

SELDOM = {"poll": "1 h", "quiet_poll": "1 h", "lease": "12 h"}
"""A relay that would not look by itself while a test waits."""
ROUNDS = 20
SECONDS = 12.0
MOST = 20
"""Statements in so many seconds: two claims and a look ahead each five, the lag each ten; and room for one more of each."""


@dataclass
class Prompt:
    """A broker that says at once when a message is there."""

    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> Sender:
        return self

    async def send(self, message: Message) -> None:
        self.arrived.set()

    async def close(self) -> None:
        pass


async def asleep(url: str, running: Running) -> None:
    """Wait until it has noted that it sleeps, and waits."""
    noted = "SELECT 1 FROM semel.sleepers WHERE until > now()"
    await comes_true(lambda: ask(url, noted) and running.idle, "it sleeps")
    await asyncio.sleep(0.1)  # into its wait, so that a wake-up before it is not what the test sees


def by_the_application(app: App, url: str, key: str | None) -> None:
    with psycopg.connect(url) as connection:
        app.jobs["note"].using(tx=connection, ordering_key=key).enqueue(1, key)


def by_plain_sql(_: App, url: str, key: str | None) -> None:
    ask(
        url,
        """INSERT INTO semel.jobs (kind, payload, queue, ordering_key) VALUES ('note', '{"number": 1}', 'out', %s)""",
        key,
    )


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("store", [by_the_application, by_plain_sql])
def test_a_commit_wakes_it(store: Callable[..., None], key: str | None, database_url: str) -> None:
    app, broker = make_app(database_url), Prompt()

    async def go() -> list[float]:
        taken = []
        async with Relay(app, {"out": broker}, **SELDOM).running() as running:
            for _ in range(ROUNDS):
                await asleep(database_url, running)
                broker.arrived.clear()
                began = time.monotonic()
                await asyncio.to_thread(store, app, database_url, key)
                async with asyncio.timeout(30):
                    await broker.arrived.wait()
                taken.append(time.monotonic() - began)
        return taken

    taken = asyncio.run(go())
    print(f"median {statistics.median(taken) * 1000:.1f} ms, longest {max(taken) * 1000:.1f} ms")
    assert statistics.median(taken) < 0.5, "with the commit in it; without a signal it would be an hour"


def test_while_it_is_idle_it_asks_little(own_server: EmbeddedServer) -> None:
    """On a server of its own: transactions that others have open make it look again, in whatever database they are."""
    database_url = own_server.url("semel")
    app, broker = make_app(database_url), Prompt()
    asked: Counter[str] = Counter()

    def watch(moment: str, name: str) -> None:
        if moment == "before":
            asked[name] += 1

    app.database.watch = watch

    async def go() -> None:
        async with Relay(app, {"out": broker}).running() as running:
            await asleep(database_url, running)
            asked.clear()
            await asyncio.sleep(SECONDS)  # what is counted is what happens in it

    asyncio.run(go())
    print(dict(asked))
    assert sum(asked.values()) <= MOST, asked
