"""Celery's workers and messages, for the contract and the cases."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from celery import Celery
from celery.result import AsyncResult
from kombu import Connection, Queue
from tests.adapters import brokers, job
from tests.adapters.celery_app import DATABASE, SETUP, Setup, make_app
from tests.adapters.rig import UNGUARDED, Rig, Victim, Worker
from tests.adapters.stage import run_stage
from tests.support.keeping import run_directory
from tests.support.waiting import until

from semel.adapters.celery import CeleryResender

OLDER = Path(sys.prefix) / "celery-5.3" / "bin" / "python"
BESIDE = {pool: Path(sys.prefix) / pool for pool in ("gevent", "eventlet")}
"""Made by scripts/other-celery.sh: an environment of its own, and packages for PYTHONPATH."""
OPTIONS = ("--without-gossip", "--without-mingle", "--without-heartbeat")


@dataclass(frozen=True)
class Message:
    """What was sent: enough to send the same again, under the same id."""

    task: str
    id: str
    kwargs: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class CeleryRig(Rig):
    """Celery on one broker. What its workers and its sender share is in ``setup``."""

    name: ClassVar[str] = "celery"
    stores_results: ClassVar[bool] = True

    setup: Setup = field(kw_only=True)
    count: Callable[[str], int] = field(kw_only=True)
    """How many messages a queue of the broker has, with the unacknowledged."""
    python: str = sys.executable

    def __post_init__(self) -> None:
        self.app: Celery = make_app(self.setup)
        self.queues = {self.setup.queue}

    def start(
        self,
        *,
        concurrency: int = 1,
        lease: float = 60.0,
        pool: str = "prefork",
        queues: str | None = None,
        setup: Setup | None = None,
        python: str | None = None,
        arguments: tuple[str, ...] = (),
        **environment: Any,
    ) -> Worker:
        number = len(self.workers)
        self.before_start()
        command = [python or self.python, "-m", "celery", "-A", "tests.adapters.celery_jobs", "worker"]
        command += ["-P", pool, "-c", str(concurrency), "-n", f"w{number}-{self.setup.queue}@localhost"]
        command += ["-Q", queues or self.setup.queue, "-l", "INFO", *OPTIONS, *arguments]
        paths = [Path(__file__).parent.parent.parent, *([BESIDE[pool]] if pool in BESIDE else [])]
        told = {
            SETUP: (setup or self.setup).dump(),
            DATABASE: self.database,
            job.PORT: str(self.stage.port),
            job.LEASE: str(lease),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONUTF8": "1",
            "C_FORCE_ROOT": "1",
            **environment,
        }
        return self._begin(
            command,
            told,
            str(self.directory / f"worker-{number}.log"),
            ready=lambda worker: " ready." in self._log(worker),
            children=pool == "prefork",
        )

    def start_beat(self) -> Worker:
        """Start a scheduler of `celery_beat`, with a file of its own, as a deploy does beside the old one."""
        number = len(self.workers)
        command = [self.python, "-m", "celery", "-A", "tests.adapters.celery_beat", "beat", "-l", "INFO"]
        command += ["-s", str(self.directory / f"beat-{number}"), "--pidfile="]
        told = {SETUP: self.setup.dump(), "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
        return self._begin(
            command,
            told,
            str(self.directory / f"beat-{number}.log"),
            ready=lambda beat: "Sending due task" in self._log(beat),
            children=False,
        )

    def before_start(self) -> None:
        """What a worker of this kind needs to be so when it starts."""

    def send(self, name: str, *, how: str = "hold", amount: int = 100, **options: Any) -> Message:
        task = UNGUARDED if how == UNGUARDED else f"charge_{how}"
        return self.send_task(task, {"name": name, "amount": amount}, **options)

    def send_task(self, task: str, kwargs: dict[str, Any], **options: Any) -> Message:
        message = Message(task, secrets.token_hex(8), kwargs, options)
        self.send_again(message)
        return message

    def send_again(self, message: Message) -> None:
        self.app.send_task(
            message.task,
            kwargs=message.kwargs,
            task_id=message.id,
            **{"queue": self.setup.queue} | message.options,
        )

    def redelivers(self, victim: Victim) -> bool:
        return True

    def pending(self) -> int:
        """The larger of two looks: between taking a message and noting it, Redis shows none for an instant."""
        first = sum(self.count(queue) for queue in self.queues)
        time.sleep(0.05)
        return max(first, sum(self.count(queue) for queue in self.queues))

    def result_of(self, message: Message) -> AsyncResult:
        return AsyncResult(message.id, app=self.app)

    def result(self, message: Message) -> Any:
        found = self.result_of(message)
        assert found.state == "SUCCESS", found.state
        return found.result

    def wait_result(self, message: Message, state: str, patience: float = 60.0) -> AsyncResult:
        def is_so() -> bool:
            return bool(
                self.result_of(message).state == state
            )  # one that is ready is never asked about again

        until(is_so, f"the result of {message.task} is {state}", patience)
        return self.result_of(message)

    def resender(self) -> Any:
        return CeleryResender(self.app)

    def wait_stopping(self, worker: Worker) -> None:
        until(lambda: "Warm shutdown" in self._log(worker), "the worker is stopping")

    def wait_settled(self, name: str) -> None:
        self.wait_idle()

    def wait_logged(self, text: str, count: int = 1, patience: float = 60.0) -> None:
        """Wait until the workers' logs have it so often."""
        until(lambda: self.logged(text) >= count, f"{text!r} is logged x{count}", patience)

    def logged(self, text: str) -> int:
        return sum(self._log(worker).count(text) for worker in self.workers)

    def close(self) -> None:
        super().close()
        self.app.close()


class RedisRig(CeleryRig):
    """Redis gives a dead worker's messages to somebody else when its visibility time-out is over."""

    name: ClassVar[str] = "celery on redis"

    def before_start(self) -> None:
        """Celery 5.3 looks for messages past their time-out when it starts, and then for minutes no more."""
        if self.python != str(OLDER):
            return
        import redis

        with redis.Redis.from_url(self.setup.broker) as client:
            given = [score for _, score in client.zrange("unacked_index", 0, -1, withscores=True)]
        last = max(given, default=0.0) + self.setup.visibility + 0.5
        until(lambda: time.time() > last, "what others had is past its time-out")


class RabbitRig(CeleryRig):
    """RabbitMQ sees that the connection is gone."""

    name: ClassVar[str] = "celery on rabbitmq"


def older_python() -> str:
    """The Python of the environment with Celery 5.3."""
    _require(OLDER, "Celery 5.3")
    return str(OLDER)


def require_pool(pool: str) -> None:
    """Skip where what it needs is not installed beside the environment."""
    if pool in BESIDE:
        _require(BESIDE[pool], pool)


def _require(path: Path, what: str) -> None:
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"there is no {what}: run scripts/other-celery.sh")
        pytest.skip(f"there is no {what} (make it: scripts/other-celery.sh)")


@contextmanager
def redis_rig(
    request: pytest.FixtureRequest, database: str, directory: Path, **options: Any
) -> Iterator[RedisRig]:
    """A rig on a Redis database of its own."""
    import redis

    server = brokers.shared_redis(*run_directory(request))
    setup = Setup(server.new_url(), server.new_url(), "charges", **options.pop("setup", {}))
    client = redis.Redis.from_url(setup.broker)

    def count(queue: str) -> int:
        waiting = client.keys(f"{queue}*")
        lists = [key for key in waiting if client.type(key) == b"list"]
        return int(sum(client.llen(key) for key in lists) + client.hlen("unacked"))

    with run_stage() as stage:
        rig = RedisRig(
            stage, database, database, "postgresql", directory, setup=setup, count=count, **options
        )
        try:
            yield rig
        finally:
            rig.close()
            client.flushdb()
            client.close()


@contextmanager
def rabbit_rig(
    request: pytest.FixtureRequest, database: str, directory: Path, **options: Any
) -> Iterator[RabbitRig]:
    """A rig on a RabbitMQ queue of its own; results are in Redis."""
    redis = brokers.shared_redis(*run_directory(request))
    timeout = options.pop("consumer_timeout", None)
    rabbit = brokers.shared_rabbit(*run_directory(request), consumer_timeout=timeout)
    queue = f"charges-{secrets.token_hex(6)}"
    setup = Setup(rabbit.url, redis.new_url(), queue, **options.pop("setup", {}))
    with ExitStack() as ended:
        count = ended.enter_context(rabbit.counting())
        stage = ended.enter_context(run_stage())
        rig = RabbitRig(
            stage, database, database, "postgresql", directory, setup=setup, count=count, **options
        )
        try:
            yield rig
        finally:
            rig.close()
            with Connection(setup.broker) as connection:
                for name in rig.queues:
                    Queue(name, channel=connection.default_channel).delete()


def with_setup(rig: CeleryRig, **changes: Any) -> Setup:
    """The rig's set-up, but for these."""
    return replace(rig.setup, **changes)


def received(rig: CeleryRig, name: str) -> list[dict[str, Any]]:
    """What the deliveries of a job looked like, where the worker was started with ``SEMEL_TEST_NOTES``."""
    return [json.loads(each.delivery) for each in rig.stage.arrived(name, "received")]
