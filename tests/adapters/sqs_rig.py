"""What the contract needs to know of SQS; and the fixtures of all its tests."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.adapters import job
from tests.adapters.rig import Rig, Victim, Worker
from tests.adapters.sqs_servers import Counts, Name, SqsServer, shared
from tests.adapters.stage import run_stage
from tests.support.keeping import run_directory
from tests.support.waiting import until

from semel.adapters.sqs import SqsResender

VISIBILITY = 2
"""Seconds: what a killed worker had comes again after so long."""


@dataclass
class SqsRig(Rig):
    name: ClassVar[str] = "sqs"
    victims: ClassVar[tuple[Victim, ...]] = ("parent", "group")

    server: SqsServer = field(kw_only=True)
    client: Any = None
    url: str = ""

    def __post_init__(self) -> None:
        self.client = self.server.client()
        self.url = self.server.create_queue(VisibilityTimeout=VISIBILITY)

    def start(self, *, concurrency: int = 1, lease: float = 60.0, **options: Any) -> Worker:
        environment = {
            **self.server.environment,
            "SEMEL_DATABASE_URL": self.database,
            "SEMEL_TEST_QUEUE": self.url,
            "SEMEL_TEST_CONCURRENCY": str(concurrency),
            job.PORT: str(self.stage.port),
            job.LEASE: str(lease),
        }
        return self._begin(
            [sys.executable, "-m", "semel", "sqs", "worker", "tests.adapters.sqs_consumer:consumer"],
            environment,
            str(self.directory / f"worker-{len(self.workers)}.log"),
            ready=lambda worker: "consuming" in self._log(worker),
            children=False,
        )

    def send(self, name: str, *, how: str = "hold", amount: int = 100, **options: Any) -> Any:
        message = {
            "MessageBody": json.dumps({"name": name, "amount": amount}),
            "MessageAttributes": {"kind": {"DataType": "String", "StringValue": how}},
        }
        self.send_again(message)
        return message

    def send_again(self, message: Any) -> None:
        """SQS gives each message an id of its own; the same delivery again comes from its time-outs alone."""
        self.client.send_message(QueueUrl=self.url, **message)

    def redelivers(self, victim: Victim) -> bool:
        return True

    def pending(self) -> int:
        return Counts(self.client, self.url).all()

    def result(self, message: Any) -> Any:
        return None

    def resender(self) -> SqsResender:
        return SqsResender(self.client)

    def log_of(self, worker: Worker) -> str:
        return self._log(worker)

    def wait_stopping(self, worker: Worker) -> None:
        until(lambda: "stopping" in self._log(worker), "the consumer is stopping")


def server_of(name: Name, request: pytest.FixtureRequest) -> SqsServer:
    """The run's server of that name."""
    return shared(name, *run_directory(request))


@contextmanager
def make_rig(server: SqsServer, url: str, directory: Path, *, rounds: int) -> Iterator[SqsRig]:
    """A rig with a queue of its own."""
    with run_stage() as stage:
        made = SqsRig(stage, url, url, "postgresql", directory, rounds=rounds, server=server)
        try:
            yield made
        finally:
            made.close()


def expire_mid_run(rig: SqsRig, rounds: int) -> None:
    """A worker is stopped past its visibility, others get its messages; it wakes, acts, and deletes by stale receipts."""
    names = [f"expired-{number}" for number in range(rounds)]
    worker = rig.start(concurrency=rounds, lease=60)
    for name in names:
        rig.stage.hold(name, "inside")
        rig.send(name)
    for name in names:
        rig.stage.wait_for(name, "inside")
    os.kill(worker.pid, signal.SIGSTOP)
    received: dict[str, str] = {}

    def take() -> bool:
        told = rig.client.receive_message(
            QueueUrl=rig.url, MaxNumberOfMessages=10, VisibilityTimeout=60, WaitTimeSeconds=1
        )
        for message in told.get("Messages") or ():
            received[json.loads(message["Body"])["name"]] = message["ReceiptHandle"]
        return len(received) == rounds

    until(take, "all are delivered again")
    for name in names:
        rig.stage.release(name, "inside")
    os.kill(worker.pid, signal.SIGCONT)
    for name in names:
        rig.wait_state(name, "completed acted")
    until(lambda: rig.log_of(worker).count(": delete: done") == rounds, "all are said to be done")
    worker.stop()
    assert rig.pending() == rounds, "what was delivered again is still there: a stale receipt deletes nothing"
    for handle in received.values():
        rig.client.change_message_visibility(QueueUrl=rig.url, ReceiptHandle=handle, VisibilityTimeout=0)
    rig.start(concurrency=rounds)
    rig.wait_idle()
    assert [rig.stage.effects[name] for name in names] == [1] * rounds
    assert all(rig.answered(name, "repeat") == 1 for name in names)
