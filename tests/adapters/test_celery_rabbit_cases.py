"""C5: RabbitMQ's acknowledgement time-out, scaled to seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.celery_rig import CeleryRig, rabbit_rig
from tests.adapters.rig import UNGUARDED
from tests.guard.conftest import make_database

__all__ = ["make_database"]


@pytest.fixture
def rig(
    request: pytest.FixtureRequest, make_database: Callable[[str], Any], tmp_path: Path
) -> Iterator[CeleryRig]:
    with rabbit_rig(request, make_database("postgresql"), tmp_path, consumer_timeout=10) as made:
        yield made


def test_c05_the_broker_takes_back_what_is_not_acknowledged_in_time(rig: CeleryRig) -> None:
    """The channel is closed during the work, which ends the worker when its task is done; the message comes again."""
    for _ in range(4):
        rig.start(lease=18)
    rig.stage.hold("guarded", "inside")
    rig.stage.hold("twin", "claimed")
    message = rig.send("guarded")
    rig.send("twin", how=UNGUARDED)
    rig.stage.wait_for("twin", "claimed", 2)
    rig.wait_answered("guarded", "in_progress")
    rig.stage.release("guarded", "inside")
    rig.stage.release("twin", "claimed")
    rig.wait_logged("delivery acknowledgement on channel", 2)
    rig.stage.wait_for("twin", "effect", 2)
    rig.wait_state("guarded", "completed acted")
    rig.wait_answered("guarded", "repeat")
    rig.wait_idle()
    assert rig.stage.effects["guarded"] == 1
    assert rig.stage.effects["twin"] == 2
    assert rig.result(message) == "charge-guarded-1"
