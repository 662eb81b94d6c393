"""The pools of Celery's worker: threads, solo, gevent and eventlet; prefork is the contract's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.celery_rig import BESIDE, CeleryRig, redis_rig, require_pool
from tests.guard.conftest import make_database

__all__ = ["make_database"]

ROUNDS = 5


@pytest.fixture
def rig(
    request: pytest.FixtureRequest, make_database: Callable[[str], Any], tmp_path: Path
) -> Iterator[CeleryRig]:
    with redis_rig(request, make_database("postgresql"), tmp_path) as made:
        yield made


@pytest.mark.parametrize("pool", ["threads", "gevent", "eventlet"])
def test_two_deliveries_at_once_in_one_process(rig: CeleryRig, pool: str) -> None:
    require_pool(pool)
    rig.start(pool=pool, concurrency=4, lease=3)
    names = [f"both-{number}" for number in range(ROUNDS)]
    for name in names:
        rig.stage.hold(name, "inside")
        message = rig.send(name)
        rig.send_again(message)
        rig.stage.wait_for(name, "inside")
        rig.wait_answered(name, "in_progress")
        rig.stage.release(name, "inside")
        rig.wait_state(name, "completed acted")
        rig.wait_answered(name, "repeat")
    rig.wait_idle()
    assert [rig.stage.effects[name] for name in names] == [1] * ROUNDS


@pytest.mark.parametrize("pool", ["threads", "gevent", "eventlet", "solo"])
def test_a_killed_worker(rig: CeleryRig, pool: str) -> None:
    """No pool but prefork has children: the process goes, and Redis delivers again after its time-out.

    An idle gevent or eventlet worker of Celery's does not look for messages past it, so another kind has to be there.
    """
    require_pool(pool)
    worker = rig.start(pool=pool, lease=2)
    rig.stage.hold("killed", "effect")
    rig.send("killed", how="lookup")
    rig.stage.wait_for("killed", "effect")
    worker.kill("parent", worker.pid)
    rig.start(pool="threads" if pool in BESIDE else pool, lease=2)
    assert rig.wait_state("killed", "completed found") == "completed found"
    rig.stage.release("killed", "effect")
    assert rig.stage.effects["killed"] == 1


@pytest.mark.parametrize("pool", ["threads", "gevent", "eventlet", "solo"])
def test_a_graceful_stop(rig: CeleryRig, pool: str) -> None:
    require_pool(pool)
    worker = rig.start(pool=pool)
    rig.stage.hold("stop", "inside")
    rig.send("stop")
    rig.stage.wait_for("stop", "inside")
    worker.process.terminate()
    rig.stage.release("stop", "inside")
    worker.process.wait(60)
    assert rig.state("stop") == "completed acted"
    assert rig.stage.effects["stop"] == 1
    assert rig.pending() == 0
