"""celery-once on Celery and Redis: it keeps back what is sent twice, and nothing of what is delivered twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.adapters.brokers import Redis, shared_redis
from tests.replay.judging import JOBS, describe, run_replay
from tests.support.keeping import run_directory

from semel.replay.description import CeleryTask, Description, GuardPlace
from semel.replay.ways.addresses import shown_address
from semel.replay.ways.celery import CeleryWay
from semel.replay.ways.way import Surroundings

pytestmark = pytest.mark.timeout(600)

TASK = CeleryTask(app="once_app", task="once_app.charge")
KILLS = {
    "killed-on-entry-child": False,
    "killed-on-return-child": True,
    "killed-on-return-group": True,
    "killed-past-completion": True,
    "old-claim": True,
}
"""Whether it fails there: what a killed worker had is delivered again, and the lock is not asked."""
OTHERS = {
    "three-deliveries": True,
    "two-at-once": True,
    "look-alikes": False,
    "young-claim": True,
    "exception-after-effect": True,
    "paused-past-lease": True,
}


@pytest.fixture
def redis(request: pytest.FixtureRequest) -> Redis:
    return shared_redis(*run_directory(request))


@pytest.fixture
def description(redis: Redis) -> Description:
    return describe(
        "",
        guarded=False,
        deliver=TASK,
        environment={"BROKER": redis.new_url(), "LOCKS": redis.new_url()},
        guard=GuardPlace(lease="2 s"),
    )


@pytest.mark.parametrize("fails", [KILLS, OTHERS], ids=["kills", "others"])
def test_it_fails_where_it_is_weak_and_nowhere_else(
    fails: dict[str, bool], description: Description, folder: Path
) -> None:
    broker = shown_address(description.environment["BROKER"], 6379)

    seen = run_replay(folder, description, broker=broker, only=tuple(fails))

    assert seen.fails == {name for name, is_so in fails.items() if is_so}, seen.told()
    assert seen.holds == {name for name, is_so in fails.items() if not is_so}, seen.told()
    assert not seen.run.holds


def test_what_is_sent_twice_is_kept_back(description: Description, folder: Path) -> None:
    """Its strength, which no delivery meets: replay tells that the second message was not sent."""
    environment = {**os.environ, **description.environment, "PYTHONPATH": str(JOBS)}
    way = CeleryWay(TASK, Surroundings(JOBS, environment, folder))
    try:
        assert "deduplicated" not in way.send({"order_id": 1}, 1).extra
        assert "published nothing" in way.send({"order_id": 1}, 1).extra["deduplicated"]
        assert "deduplicated" not in way.send({"order_id": 2}, 2).extra
        assert way.pending() == 2
    finally:
        way.close()
