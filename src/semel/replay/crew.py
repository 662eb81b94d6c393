"""The workers of one bench."""

from __future__ import annotations

from typing import Final

from semel.replay.processes import Worker, descendants
from semel.replay.ways.way import Surroundings, Way

_LOG: Final = 4000
"""Characters of a log that are kept."""


class Crew:
    """Live workers of one message at a time, and those of this check that are not there any more."""

    def __init__(self, way: Way, surroundings: Surroundings) -> None:
        self._way = way
        self._surroundings = surroundings
        self._workers: list[Worker] = []
        self._past: list[Worker] = []

    def have(self, count: int) -> list[Worker]:
        """So many, started where they are missing; those over it end."""
        kept = [worker for worker in self._workers if worker.is_alive()][:count]
        for worker in self._workers:
            if worker not in kept:
                worker.end()
                self._past.append(worker)
        self._workers = kept
        while len(self._workers) < count:
            self._workers.append(self._way.start(self._surroundings, concurrency=1))
        return list(self._workers)

    def worker_of(self, pid: int) -> Worker:
        """The worker that a process belongs to; the first one where it cannot be told."""
        for worker in self._workers:
            if pid == worker.pid or pid in descendants(worker.pid):
                return worker
        return self._workers[0]

    def stop(self) -> None:
        """End those that are left."""
        for worker in self._workers:
            worker.end()
        self._past += self._workers
        self._workers = []

    def take_logs(self) -> list[str]:
        """The ends of this check's logs."""
        logs = [worker.read_log()[-_LOG:] for worker in (*self._past, *self._workers)]
        self._past = []
        return logs
