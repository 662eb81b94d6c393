"""A broker that is killed in the middle, and comes back: everything arrives, and nothing is charged or lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.relay.brokers import NATS, Broker, RabbitMQ, Redis
from tests.relay.processes import RelayProcess
from tests.relay.test_kills import check, done, enqueue, leave_some
from tests.support.stored import ask, statuses
from tests.support.waiting import until

from semel.embedded import EmbeddedServer

COUNT = 1_500
MORE = 50
"""Stored when the broker is back: whoever still had its old connection sends over a new one."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [NATS, Redis, RabbitMQ])
def test_a_broker_is_killed_in_the_middle(
    kind: type[Broker],
    own_broker: Callable[[type[Broker]], Broker],
    database_url: str,
    tmp_path: Path,
) -> None:
    broker = own_broker(kind)
    enqueue(database_url, COUNT)
    with RelayProcess(database_url, tmp_path, broker.target, lease=30) as relay:
        until(lambda: done(database_url) > COUNT // 5, "some are done")
        # An idle client of Redis would connect again unseen, so that much is left.
        stored = leave_some(database_url, COUNT, least=COUNT // 2)
        broker.restart()
        enqueue(database_url, MORE, stored)
        until(lambda: done(database_url) == stored + MORE, "all are done", 150)
        figures = relay.stop()
    assert figures["connections"] >= 2
    assert figures["failed"] == 0
    assert statuses(database_url, "out") == {"done": stored + MORE}
    check(broker.read(), stored + MORE)


@pytest.mark.timeout(300)
def test_the_database_is_killed_in_the_middle(
    own_broker: Callable[[type[Broker]], Broker], own_server: EmbeddedServer, tmp_path: Path
) -> None:
    broker = own_broker(Redis)
    url = own_server.url("semel")
    enqueue(url, COUNT)
    with RelayProcess(url, tmp_path, broker.target, lease=2) as relay:
        until(lambda: done(url) > COUNT // 5, "some are done")
        stored = leave_some(url, COUNT)
        own_server.kill()
        own_server.restart()
        until(lambda: done(url) == stored, "all are done", 150)
        relay.stop()
    check(broker.read(), stored)


def test_a_stop_loses_nothing_and_charges_nothing(
    own_broker: Callable[[type[Broker]], Broker], database_url: str, tmp_path: Path
) -> None:
    broker = own_broker(Redis)
    enqueue(database_url, COUNT)
    stored = COUNT
    for _ in range(3):
        stored = leave_some(database_url, stored, 51)
        with RelayProcess(database_url, tmp_path, broker.target, lease=30) as relay:
            before = done(database_url)
            until(lambda before=before: done(database_url) > before + 50, "some are done")
            stored = leave_some(database_url, stored)
            relay.stop()
    assert ask(database_url, "SELECT count(*) FROM semel.jobs WHERE status <> 'pending' OR attempts > 0") == [
        (0,)
    ]
    with RelayProcess(database_url, tmp_path, broker.target, lease=30, drain=True) as relay:
        relay.finish(120)
    assert check(broker.read(), stored) == 0, "a stop repeats nothing"
