"""Within a key, no message is sent before the earlier one was confirmed: two relays, kills, and pauses past the lease."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.relay.application import app, note
from tests.relay.brokers import Arrived, Broker, Redis
from tests.relay.forwarded import comes_true, make_app
from tests.relay.processes import RelayProcess
from tests.relay.test_kills import check, done
from tests.support.stored import ask
from tests.support.waiting import until

from semel.embedded import EmbeddedServer
from semel.relay import Message, Relay, Route

COUNT = 1_500
KEYS = 12
FEW = 300
"""As many are left at least when a relay is killed or paused."""


def enqueue_keyed(url: str, count: int = COUNT, start: int = 0) -> None:
    app.point_to(url)
    numbers = range(start, start + count)
    app.enqueue_many([note.using(ordering_key=f"key-{n % KEYS}").new(n, f"key-{n % KEYS}") for n in numbers])
    app.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["killed", "paused"])
def test_two_relays(
    how: str, own_broker: Callable[[type[Broker]], Broker], database_url: str, tmp_path: Path
) -> None:
    """One is always being killed, or paused past its lease while the other takes over what it held."""
    broker = own_broker(Redis)
    enqueue_keyed(database_url)
    chance = random.Random(3)
    places = ("one", "two")
    relays = {
        name: RelayProcess(database_url, tmp_path, broker.target, name=name, lease=0.5) for name in places
    }
    stored, arrived = COUNT, list[Arrived]()
    try:
        for turn in range(40):
            if stored - done(database_url) < FEW:
                enqueue_keyed(database_url, FEW, stored)
                stored += FEW
            name = places[turn % 2]
            relay = relays[name].started()
            _advance(database_url, "they work")
            time.sleep(chance.random() / 20)
            if how == "killed":
                relay.kill()
                relays[name] = RelayProcess(database_url, tmp_path, broker.target, name=name, lease=0.5)
            else:
                relay.send(signal.SIGSTOP)
                _advance(database_url, "the other takes over")
                relay.send(signal.SIGCONT)
            arrived += broker.read()
            if turn >= 3 and _repeats(arrived):
                break
        until(lambda: done(database_url) == stored, "all are done", 120)
    finally:
        for relay in relays.values():
            relay.send(signal.SIGCONT)
            relay.kill()
    assert check(arrived + broker.read(), stored) > 0, "what repeats nothing shows nothing"


def _repeats(arrived: Sequence[Arrived]) -> bool:
    """Whether one was on its way when its relay was hit, and came twice: chance decides, so it is looked for."""
    numbers = [each.number for each in arrived]
    return len(numbers) > len(set(numbers))


def _advance(url: str, what: str) -> None:
    before = done(url)
    until(lambda: done(url) > before + 20, what)


@dataclass
class Watched:
    """A broker that takes its time, and says at once when two messages of a key are on their way."""

    under_way: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    arrived: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    overlapping: list[str] = field(default_factory=list)
    most: int = 0

    async def open(self) -> Any:
        return WatchedSender(self)


@dataclass
class WatchedSender:
    broker: Watched
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, message: Message) -> None:
        broker, key = self.broker, message.key or ""
        broker.under_way[key] += 1
        broker.most = max(broker.most, sum(broker.under_way.values()))
        if broker.under_way[key] > 1:
            broker.overlapping.append(key)
        await asyncio.sleep(random.random() / 200)
        broker.under_way[key] -= 1
        broker.arrived[key].append(message.arguments["number"])

    async def close(self) -> None:
        pass


def test_many_keys_at_once_and_each_one_by_one(database_url: str) -> None:
    """Four relays over one broker; whatever their interleaving, a key is on its way once at a time."""
    application = make_app(database_url)
    kind = application.jobs["note"]
    application.enqueue_many([kind.using(ordering_key=f"k{n % 40}").new(n) for n in range(1_200)])
    broker = Watched()

    async def go() -> None:
        relays = [Relay(application, {"out": Route(broker, in_flight=50)}, poll="10 ms") for _ in range(4)]
        async with relays[0].running(), relays[1].running(), relays[2].running(), relays[3].running():
            await comes_true(lambda: sum(map(len, broker.arrived.values())) == 1_200, "all arrived")

    asyncio.run(go())
    assert broker.overlapping == []
    assert all(numbers == sorted(numbers) for numbers in broker.arrived.values())
    assert broker.most > 10, "keys do not wait for each other"


def test_a_delayed_message_delays_those_behind_it(database_url: str) -> None:
    application = make_app(database_url)
    kind = application.jobs["note"]
    kind.using(ordering_key="a", run_after="1.5 s").enqueue(1)
    kind.using(ordering_key="a", priority=100).enqueue(2)
    kind.using(ordering_key="b").enqueue(3)
    broker = Watched()

    async def go() -> None:
        async with Relay(application, {"out": broker}, poll="10 ms").running():
            await comes_true(lambda: broker.arrived["b"] == [3], "the other key does not wait")
            assert broker.arrived["a"] == []
            await comes_true(lambda: broker.arrived["a"] == [1, 2], "both, in order")

    asyncio.run(go())


@dataclass
class Gated(Watched):
    """A broker that can be told to wait."""

    free: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> Any:
        return GatedSender(self)


class GatedSender(WatchedSender):
    broker: Gated

    async def send(self, message: Message) -> None:
        await self.broker.free.wait()
        await super().send(message)


def test_what_follows_a_message_that_another_relay_took_over_waits_for_it(database_url: str) -> None:
    application = make_app(database_url)
    kind = application.jobs["note"]
    broker = Gated()

    async def go() -> None:
        relay = Relay(application, {"out": Route(broker, in_flight=2)}, lease="3 s", poll="10 ms")
        async with relay.running() as running:
            broker.free.set()
            application.enqueue_many([kind.using(ordering_key="k").new(n) for n in range(20)])
            await comes_true(lambda: len(broker.arrived["k"]) == 20, "how long one takes is known")
            await running.drain()
            broker.free.clear()
            application.enqueue_many([kind.using(ordering_key="k").new(n) for n in range(20, 28)])
            engine = running._lanes[0]._engine
            assert engine is not None
            board = engine.board
            await comes_true(lambda: len(board.waiting) >= 2, "two wait behind those that started")
            ask(
                database_url,
                "UPDATE semel.jobs SET claim = nextval('semel.claim_seq'), worker = 1, "
                "locked_until = now() + interval '4 s' WHERE id = %s",
                board.waiting[0].job.id,
            )
            first = board.waiting[0]
            await comes_true(lambda: board.slots.is_lost(first.slot, first.job.claim), "it is known")
            broker.free.set()
            await comes_true(lambda: len(broker.arrived["k"]) == 28, "all arrived")

    asyncio.run(go())
    assert broker.arrived["k"] == list(range(28))


def test_once_its_lease_may_be_over_a_relay_sends_nothing_more(own_server: EmbeddedServer) -> None:
    """Its database is away, so that nobody tells it whether others have taken over: its own clock has to."""
    application = make_app(own_server.url("semel"))
    kind = application.jobs["note"]
    broker, sent = Gated(), list[int]()

    async def go() -> None:
        async with Relay(application, {"out": broker}, lease="1 s", poll="10 ms").running() as running:
            engine = running._lanes[0]._engine
            assert engine is not None
            application.enqueue_many([kind.using(ordering_key="k").new(n) for n in range(5)])
            await comes_true(
                lambda: len(engine.board.running) == 5, "the first is on its way, others behind it"
            )
            own_server.kill()
            await asyncio.sleep(1.1)  # what passes is the lease
            broker.free.set()
            await comes_true(lambda: not engine.board.running, "what was on its way has ended")
            sent.extend(broker.arrived["k"])
            own_server.restart()
            await comes_true(lambda: done(own_server.url("semel")) == 5, "all are done")

    asyncio.run(go())
    assert sent == [0], "what was on its way, and no more"
    assert list(dict.fromkeys(broker.arrived["k"])) == list(range(5))
