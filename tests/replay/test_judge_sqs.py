"""Whole runs over a queue of SQS: a right guard holds in every check, and a broken one fails the one that is named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.sqs_rig import server_of
from tests.adapters.sqs_servers import SqsServer
from tests.replay.judging import describe, run_replay

from semel.replay.description import Control, Description, SqsQueue

pytestmark = pytest.mark.timeout(600)

VISIBILITY = 1
CHECKS = {
    "killed inside": ("killed-on",),
    "killed besides": ("killed-past", "old", "exception", "redo"),
    "repeated": ("three", "two", "look", "changed", "young", "constraint", "without"),
    "late": ("paused", "late", "lost"),
}
WORKER = [sys.executable, "-m", "semel", "sqs", "worker", "sqs_app:consumer"]


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> SqsServer:
    return server_of("ministack", request)


@pytest.fixture
def describe_queue(server: SqsServer, sqlite: Path) -> Callable[..., Description]:
    """A job's description over a queue of its own."""

    def make(job: str, **changes: Any) -> Description:
        url = server.create_queue(VisibilityTimeout=VISIBILITY)
        environment = {**server.environment, "QUEUE": url, "JOB": job, **changes.pop("environment", {})}
        deliver = SqsQueue(queue_url=url, worker=WORKER, endpoint_url=server.url, region="us-east-1")
        return describe(f"{job}:charge", deliver=deliver, target=sqlite, environment=environment, **changes)

    return make


@pytest.mark.parametrize("what", CHECKS)
def test_a_right_guard_holds(what: str, describe_queue: Callable[..., Description], folder: Path) -> None:
    """In parts, since consumers take their time."""
    description = describe_queue("guarded")

    seen = run_replay(
        folder, description, broker=broker_of(description), only=CHECKS[what], constraint=what == "repeated"
    )

    assert seen.run.holds, seen.told()
    assert not seen.fails | seen.vacuous


def test_a_guard_that_an_exception_frees_fails_there_alone(
    describe_queue: Callable[..., Description], folder: Path
) -> None:
    description = describe_queue(
        "broken",
        environment={"BROKEN": "exception_frees"},
        control=Control(none="it is shown with the right guard"),
        patience="10 s",
    )
    only = (*CHECKS["repeated"][:-2], *CHECKS["late"], "old", "exception", "killed-on-return-group", "redo")

    seen = run_replay(folder, description, broker=broker_of(description), only=only)

    assert seen.fails == {"exception-after-effect"}, seen.told()
    assert not seen.vacuous, seen.told()
    assert "more than 1 effects" in seen.reasons("exception-after-effect")


def broker_of(description: Description) -> str:
    assert isinstance(description.deliver, SqsQueue)
    return description.deliver.queue_url
