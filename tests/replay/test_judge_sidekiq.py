"""Whole runs over Sidekiq: the gem's guard holds in every check, and with too wide a key it fails the one that is named."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.brokers import Redis
from tests.adapters.sidekiq_fixtures import redis_server
from tests.adapters.sidekiq_rig import ROOT
from tests.replay.judging import describe, run_replay

from semel.replay.description import Control, Description, GuardPlace, SidekiqJob, Watch
from semel.replay.ways.addresses import shown_address

__all__ = ["redis_server"]

pytestmark = pytest.mark.timeout(600)

CHECKS = {
    "killed": ("killed", "old"),
    "repeated": ("three", "two", "look", "changed", "young", "exception", "paused", "constraint", "without"),
}
WORKER = ["sidekiq", "-r", "./sidekiq_judged.rb", "-t", "2"]
KNOWN_WHERE = {"killed-past-claim", "late-completion", "late-look", "lost-connection", "lost-answer", "redo"}
"""Checks that need a guard whose records replay can ask for."""


@pytest.fixture
def describe_class(redis_server: Redis, database_url: str) -> Callable[..., Description]:
    """The job's description over a Redis of its own."""
    if shutil.which("sidekiq") is None:
        told = "Sidekiq is not installed (Debian: apt-get install ruby-sidekiq)"
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)

    def make(**changes: Any) -> Description:
        environment = {"RUBYLIB": str(ROOT / "ruby" / "lib"), **changes.pop("environment", {})}
        return describe(
            "",
            deliver=SidekiqJob(job_class="ChargeJob", worker=WORKER, redis_url=redis_server.new_url()),
            target=database_url,
            environment=environment,
            watch=Watch(call="Provider#charge", dwell="5 ms"),
            message={"order_id": "{n}", "customer": "{n}", "amount": 5},
            guard=GuardPlace(
                policy="hold",
                table="semel.operations",
                columns=["scope", "job_type", "key"],
                database=database_url,
                lease="2 s",
            ),
            **changes,
        )

    return make


@pytest.mark.parametrize("what", CHECKS)
def test_a_right_guard_holds(what: str, describe_class: Callable[..., Description], folder: Path) -> None:
    """Replay blinds it from outside, so that each check is seen to repeat without it."""
    description = describe_class()

    seen = run_replay(
        folder, description, broker=broker_of(description), only=CHECKS[what], constraint=what == "repeated"
    )

    assert seen.run.holds, seen.told()
    assert not seen.fails | seen.vacuous
    assert seen.skipped <= KNOWN_WHERE


def test_a_key_that_is_too_wide_fails_where_two_look_alike_and_there_alone(
    describe_class: Callable[..., Description], folder: Path
) -> None:
    description = describe_class(
        environment={"BROKEN": "key_too_wide"}, control=Control(none="it is shown with the right guard")
    )

    seen = run_replay(folder, description, broker=broker_of(description))

    assert seen.fails == {"look-alikes"}, seen.told()
    assert not seen.vacuous, seen.told()
    assert seen.skipped == KNOWN_WHERE
    assert "fewer than 1 effects" in seen.reasons("look-alikes")


def broker_of(description: Description) -> str:
    assert isinstance(description.deliver, SidekiqJob)
    return shown_address(str(description.deliver.redis_url), 6379)
