"""A relay that is killed at any point loses nothing: every message arrives, and one that comes twice has the same id."""

from __future__ import annotations

import itertools
import os
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.relay.application import app, note
from tests.relay.brokers import NATS, Arrived, Broker, RabbitMQ, Redis
from tests.relay.processes import RelayProcess
from tests.support.stored import ask, statuses
from tests.support.waiting import until

KILLS = 20
FEWER = 8
"""Kills where fewer messages pass."""
KEYS = 50
POINTS = [
    ("before", "queue/settle"),
    ("after", "queue/settle"),
    ("committed", "settle"),
    ("after", "queue/claim_in_order"),
    ("committed", "claim_in_order"),
    ("before", "queue/claim"),
    ("before", "queue/extend"),
]
MANY = 10_000
FEW = 1_500


def enqueue(url: str, count: int, start: int = 0) -> None:
    """Messages with the numbers from ``start`` on, half of them with an ordering key."""
    app.point_to(url)
    app.enqueue_many(
        [
            note.using(ordering_key=f"key-{number % KEYS}").new(number, f"key-{number % KEYS}")
            if number % 2
            else note.new(number)
            for number in range(start, start + count)
        ]
    )
    app.close()


def leave_some(url: str, stored: int, least: int = 1) -> int:
    """Store more where fewer than ``least`` are left: a slow machine comes late to look. Answers how many there are now."""
    if stored - done(url) >= least:
        return stored
    enqueue(url, FEW, stored)
    return stored + FEW


def done(url: str) -> int:
    return statuses(url, "out").get("done", 0)


def check(arrived: Sequence[Arrived], count: int) -> int:
    """Everything is there, under one id each, in order by key; answers how many came more than once."""
    ids: dict[int, set[str]] = defaultdict(set)
    for each in arrived:
        ids[each.number].add(each.id)
    assert sorted(ids) == list(range(count)), "none is lost"
    assert all(len(each) == 1 for each in ids.values()), "the same message has the same id"
    assert len(set(itertools.chain(*ids.values()))) == count, "and no other message has it"
    check_order(arrived)
    return len(arrived) - count


def check_order(arrived: Sequence[Arrived]) -> None:
    """By their first arrivals, the messages of a key come in the order in which they were stored."""
    seen: set[int] = set()
    newest: dict[str, int] = {}
    for each in arrived:
        if each.key is not None and each.number not in seen:
            assert each.number > newest.get(each.key, -1), each
            newest[each.key] = each.number
        seen.add(each.number)


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("kind", "count"), [(NATS, MANY if os.environ.get("CI") else 3_000), (Redis, FEW), (RabbitMQ, FEW)]
)
def test_kills(
    kind: type[Broker],
    count: int,
    own_broker: Callable[[type[Broker]], Broker],
    database_url: str,
    tmp_path: Path,
) -> None:
    broker = own_broker(kind)
    enqueue(database_url, count)
    points = itertools.cycle([None, *POINTS])
    chance = random.Random(7)
    kills = KILLS if kind is NATS else FEWER
    share = count // (2 * kills)
    for kill in range(kills):
        point = next(points)
        death = None if point is None else (*point, chance.randint(1, 3))
        count = leave_some(database_url, count, share)
        before = done(database_url)
        with RelayProcess(database_url, tmp_path, broker.target, death=death, lease=0.5) as relay:
            enough = before + share
            until(
                lambda relay=relay, enough=enough: relay.ended or done(database_url) >= enough, f"kill {kill}"
            )
            count = leave_some(database_url, count)
            relay.kill()
    with RelayProcess(database_url, tmp_path, broker.target, lease=0.5) as relay:
        until(lambda: done(database_url) == count, "all are done", 150)
        relay.stop()
    assert statuses(database_url, "out") == {"done": count}
    again = check(broker.read(), count)
    assert again > 0, "a kill that repeats nothing shows nothing"
    ((crashes,),) = ask(database_url, "SELECT count(*) FROM semel.jobs_done WHERE crashes > 0")
    assert crashes > 0
