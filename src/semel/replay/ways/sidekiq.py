"""A Sidekiq class, pushed to Redis as Sidekiq's own client does, and run by the application's own worker."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping
from typing import Any, Final

from semel.errors import ConfigurationError
from semel.replay import peers
from semel.replay.description import Message, SidekiqJob
from semel.replay.processes import Victim, Worker, descendants, start_worker
from semel.replay.ways.addresses import shown_address
from semel.replay.ways.ruby import loading_faults
from semel.replay.ways.way import Sent, Surroundings

_BETWEEN: Final = 0.05
"""Seconds between two looks: Sidekiq has a job in its hand for an instant while it moves it from set to queue."""
_SETS: Final = ("schedule", "retry")
_EACH_SET: Final = (*_SETS, "dead")


class SidekiqWay:
    """Free Sidekiq has a job in no other place than its process while it runs: what a killed one had is gone.

    Arguments are the message's values in their order. How often a job is retried the worker reads from its class, as the
    job that is pushed does not say.
    """

    victims: tuple[Victim, ...] = ("parent",)

    def __init__(self, deliver: SidekiqJob, surroundings: Surroundings) -> None:
        url = deliver.redis_url or surroundings.environment.get("REDIS_URL") or "redis://localhost:6379/0"
        self._deliver = deliver
        self._surroundings = surroundings
        self._url = url
        self._redis = _connect(url)
        self._sent: set[str] = set()
        self._workers: dict[int, tuple[Worker, int]] = {}
        """Each with its threads."""
        self._pids: set[str] = set()
        self._alone = not self._foreign_messages()
        """Nothing was there at the start: all that is there later is this run's."""

    def targets(self) -> Mapping[str, str]:
        """Redis, by its address and number."""
        return {"broker": shown_address(self._url, 6379)}

    def foreign(self) -> list[str]:
        """Jobs that this run did not push, and Sidekiq's processes that it did not start."""
        return [*self._foreign_messages(), *self._foreign_workers()]

    def start(self, surroundings: Surroundings, *, concurrency: int = 1) -> Worker:
        """The description's command with ``-c``; ready when it takes jobs."""
        number = len(self._workers)
        environment = {"REDIS_URL": self._url, **loading_faults(surroundings.environment)}
        worker = start_worker(
            [*self._deliver.worker, "-c", str(concurrency)],
            environment=environment,
            directory=surroundings.code,
            log=surroundings.directory / f"sidekiq-{os.getpid()}-{secrets.token_hex(3)}-{number}.log",
            ready=lambda worker: self._is_ready(worker, concurrency),
        )
        self._workers[worker.pid] = (worker, concurrency)
        self._pids |= {str(pid) for pid in (worker.pid, *descendants(worker.pid))}
        return worker

    def send(self, message: Message, number: int) -> Sent:
        """Push it under a jid of its own."""
        job = {
            "class": self._deliver.job_class,
            "args": list(message.values()),
            "queue": self._deliver.queue,
            "jid": secrets.token_hex(12),
            "created_at": time.time(),
        }
        self._sent.add(str(job["jid"]))
        sent = Sent(str(job["jid"]), message, {"job": json.dumps(job)})
        self._push(sent)
        return sent

    def send_again(self, sent: Sent) -> Sent:
        """Push it under the same jid."""
        self._push(sent)
        return sent

    def pending(self) -> int:
        """Waiting, to be retried, scheduled, or in a thread of a live worker. The larger of two looks."""
        first = self._pending_now()
        time.sleep(_BETWEEN)
        return max(first, self._pending_now())

    def redelivers_within(self, victim: Victim) -> float:
        """Never: the paid fetch would, under the same jid."""
        return 0.0

    def clear(self) -> None:
        """Take this run's jobs out; where nothing was there at the start, all jobs."""
        queue = f"queue:{self._deliver.queue}"
        for entry in self._redis.lrange(queue, 0, -1):
            if self._is_ours(entry):
                self._redis.lrem(queue, 0, entry)
        for name in _EACH_SET:
            for entry in self._redis.zrange(name, 0, -1):
                if self._is_ours(entry):
                    self._redis.zrem(name, entry)

    def eager(self) -> str | None:
        """Sidekiq's inline mode is for tests, and no worker runs in it."""
        return None

    def close(self) -> None:
        """End the workers and the connection."""
        for worker, _ in self._workers.values():
            worker.end()
        self._redis.close()

    def _push(self, sent: Sent) -> None:
        job = {**json.loads(sent.extra["job"]), "enqueued_at": time.time()}
        with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.sadd("queues", self._deliver.queue)
            pipeline.lpush(f"queue:{self._deliver.queue}", json.dumps(job))
            pipeline.execute()

    def _pending_now(self) -> int:
        with self._redis.pipeline(transaction=True) as look:
            look.llen(f"queue:{self._deliver.queue}")
            for name in _SETS:
                look.zcard(name)
            look.client_list()
            *counts, clients = look.execute()
        return sum(map(int, counts)) + sum(
            max(0, threads - self._waiting(worker, clients))
            for worker, threads in self._workers.values()
            if worker.is_alive()
        )

    def _waiting(self, worker: Worker, clients: list[dict[str, Any]]) -> int:
        """How many threads of a worker wait at Redis for a job, which shows as blocked connections."""
        blocked = {int(each["addr"].rpartition(":")[2]) for each in clients if "b" in each["flags"]}
        if not peers.can_look():
            return len(blocked)
        return len(blocked & peers.ports_of((worker.pid, *descendants(worker.pid))))

    def _is_ready(self, worker: Worker, concurrency: int) -> bool:
        """Its threads wait, or have a job already; then it has told that it is there."""
        if self._waiting(worker, self._redis.client_list()) >= concurrency:
            return True
        mine = {str(pid) for pid in (worker.pid, *descendants(worker.pid))}
        return any(identity.split(":")[1] in mine for identity in self._redis.smembers("processes"))

    def _is_ours(self, entry: str) -> bool:
        return self._alone or _jid(entry) in self._sent

    def _foreign_messages(self) -> list[str]:
        found = []
        names = {*self._redis.smembers("queues"), self._deliver.queue}
        for name in sorted(names):
            count = self._others(self._redis.lrange(f"queue:{name}", 0, -1))
            if count:
                found.append(f"{count} jobs in the queue {name}")
        for name in _SETS:
            count = self._others(self._redis.zrange(name, 0, -1))
            if count:
                found.append(f"{count} jobs in Sidekiq's set {name}")
        return found

    def _others(self, entries: list[str]) -> int:
        return sum(_jid(each) not in self._sent for each in entries)

    def _foreign_workers(self) -> list[str]:
        """A process that has not reported for a minute is a dead one's trace."""
        return [
            f"another Sidekiq process: {identity}"
            for identity in sorted(self._redis.smembers("processes"))
            if identity.split(":")[1] not in self._pids and self._redis.hexists(identity, "info")
        ]


def _jid(entry: str) -> str:
    try:
        return str(json.loads(entry).get("jid", ""))
    except (ValueError, AttributeError):
        return ""


def _connect(url: str) -> Any:
    try:
        from redis import Redis
    except ImportError as error:
        raise ConfigurationError(
            "To push to Sidekiq's Redis, redis-py is needed.", remedy="pip install 'semel[sidekiq]'"
        ) from error
    return Redis.from_url(url, decode_responses=True)
