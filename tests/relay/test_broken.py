"""The checks of this folder are worth something: each relay that is wrong in one way is seen to be wrong, by that check."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.relay.application import app, note
from tests.relay.broken import (
    Deaf,
    Early,
    Hostile,
    whatever_came_before,
    with_followers_left,
    with_ids_by_attempt,
    with_new_ids,
    without_waiting,
)
from tests.relay.brokers import Broker, Redis
from tests.relay.forwarded import QUICK, comes_true, relaying
from tests.relay.processes import RelayProcess
from tests.relay.test_kills import check, done
from tests.support.waiting import until

from semel.relay import Target

COUNT = 240
KEYS = 3
FAULTS = {number: ("lost", "unconfirmed")[number % 2] for number in range(15, COUNT, 23)}
FAULTS |= dict.fromkeys((67, 97, 108, 140, 170, 201), "refused")
FAULTS |= dict.fromkeys((44, 121, 182), "kept")
"""Of messages with a key and without; those that are refused have one."""


def enqueue(url: str, *, one_key: bool = False) -> None:
    """Half of them with a key, or all of them with one."""
    app.point_to(url)
    keys = ["k" if one_key else f"k{n % 6}" if n % 6 < KEYS else None for n in range(COUNT)]
    app.enqueue_many([note.using(ordering_key=key).new(number, key) for number, key in enumerate(keys)])
    app.close()


def forward(url: str, broker: Hostile, target: Target, *, one_key: bool = False) -> int:
    """Forward all, and check what arrived; answers how many came more than once."""
    enqueue(url, one_key=one_key)

    async def go() -> None:
        async with relaying(app, target, in_flight=1 if one_key else 4, retry=QUICK):
            await comes_true(lambda: done(url) == COUNT, "all are done")
            if isinstance(target, Early):
                await asyncio.gather(*target.sending, return_exceptions=True)

    asyncio.run(go())
    repeats = check(broker.arrived, COUNT)
    assert broker.overlapping == [], "one of a key at a time"
    return repeats


def test_one_that_is_right(database_url: str) -> None:
    broker = Hostile(dict(FAULTS))
    assert forward(database_url, broker, broker) >= 3
    assert broker.faults == {}, "each was met"


@pytest.mark.parametrize(
    ("wrong", "seen"),
    [
        (with_new_ids, "the same message has the same id"),
        (with_ids_by_attempt, "the same message has the same id"),
        (without_waiting, "Arrived|one of a key at a time"),
        (whatever_came_before, "Arrived"),
    ],
)
def test_one_that_is_wrong(
    wrong: Callable[[pytest.MonkeyPatch], None],
    seen: str,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Hostile(dict(FAULTS))
    wrong(monkeypatch)
    with pytest.raises(AssertionError, match=seen):
        forward(database_url, broker, broker)


@pytest.mark.parametrize("wrong", [False, True])
def test_what_follows_one_that_is_refused(
    wrong: bool, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one on its way at a time, those behind it are claimed with it, and wait."""
    broker = Hostile(dict.fromkeys((100, 104, 108, 113), "refused"))
    if not wrong:
        assert forward(database_url, broker, broker, one_key=True) == 0
        return
    with_followers_left(monkeypatch)
    with pytest.raises(AssertionError, match="Arrived"):
        forward(database_url, broker, broker, one_key=True)


@pytest.mark.parametrize("wrong", [Early, Deaf])
def test_one_that_is_done_before_the_broker_confirmed(wrong: type[Early | Deaf], database_url: str) -> None:
    broker = Hostile(dict(FAULTS))
    with pytest.raises(AssertionError, match="none is lost"):
        forward(database_url, broker, wrong(broker))


@pytest.mark.parametrize("early", [0.0, 0.3], ids=["right", "wrong"])
def test_a_kill_between_the_claim_and_the_broker(
    early: float, own_broker: Callable[[type[Broker]], Broker], database_url: str, tmp_path: Path
) -> None:
    broker = own_broker(Redis)
    enqueue(database_url)
    death = ("committed", "settle", 1)
    with RelayProcess(database_url, tmp_path, broker.target, death=death, lease=0.5, early=early) as relay:
        until(lambda: relay.ended, "it was killed")
        assert done(database_url) > 0
    with RelayProcess(database_url, tmp_path, broker.target, lease=0.5) as relay:
        until(lambda: done(database_url) == COUNT, "all are done")
        relay.stop()
    if early:
        with pytest.raises(AssertionError, match="none is lost"):
            check(broker.read(), COUNT)
    else:
        check(broker.read(), COUNT)
