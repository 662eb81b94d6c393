"""Jobs of semel's own queue: the application's worker, and jobs enqueued by the application's code.

The queue delivers a job again only where an attempt of it ended without a word. A second job with the same arguments stands
for what callers do: enqueue the same operation twice.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from typing import Final

from semel.replay.aside import Aside
from semel.replay.description import Message, SemelJob
from semel.replay.messages import fill
from semel.replay.processes import Victim, Worker, start_worker
from semel.replay.ways.way import Sent, Surroundings
from semel.store.addresses import plain_address

DATABASE: Final = "SEMEL_DATABASE_URL"
_AT_ONCE: Final = 10.0


class SemelWay:
    """One kind of one application."""

    victims: tuple[Victim, ...] = ("child", "parent", "group")

    def __init__(self, deliver: SemelJob, plain: Surroundings) -> None:
        """``plain`` is without the wrapper: for the program that enqueues."""
        self._deliver = deliver
        self._added = {} if deliver.database is None else {DATABASE: deliver.database}
        self._workers: list[Worker] = []
        self._jobs = Aside(
            "semel.replay.inside.semel_jobs",
            [deliver.app, deliver.kind],
            code=plain.code,
            environment={**plain.environment, **self._added},
            log=plain.directory / f"enqueuing-{secrets.token_hex(3)}.log",
        )

    def targets(self) -> Mapping[str, str]:
        return {"database": plain_address(self._jobs.ask("target"))}

    def foreign(self) -> list[str]:
        found: list[str] = self._jobs.ask("foreign")
        return found

    def start(self, surroundings: Surroundings, *, concurrency: int = 1) -> Worker:
        worker = start_worker(
            [sys.executable, "-m", "semel", "worker", self._deliver.app, "--concurrency", str(concurrency)],
            environment={**surroundings.environment, **self._added},
            directory=surroundings.code,
            log=surroundings.directory / f"worker-{secrets.token_hex(3)}.log",
            ready=lambda worker: "worker started" in worker.read_log(),
        )
        self._workers.append(worker)
        return worker

    def send(self, message: Message, number: int) -> Sent:
        unique = self._deliver.unique_key
        key = None if unique is None else fill(unique, message)
        stored = self._jobs.ask("enqueue", message=dict(message), unique_key=key)
        extra = {} if stored["created"] else {"deduplicated": f"job {stored['id']} has its unique key"}
        return Sent(str(stored["id"]), message, extra)

    def send_again(self, sent: Sent) -> Sent:
        return self.send(sent.message, 0)

    def pending(self) -> int:
        return int(self._jobs.ask("pending"))

    def redelivers_within(self, victim: Victim) -> float:
        """A worker's child is seen to by its supervisor; a whole worker's jobs wait for their leases."""
        return _AT_ONCE if victim == "child" else 0.0

    def clear(self) -> None:
        self._jobs.ask("clear")

    def eager(self) -> str | None:
        return None

    def close(self) -> None:
        for worker in self._workers:
            worker.end()
        self._jobs.close()
