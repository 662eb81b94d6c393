"""The workers of one bench, and what they wrote."""

from __future__ import annotations

from typing import Final

from semel.replay.processes import Worker, descendants
from semel.replay.ways.way import Surroundings, Way

_LOG: Final = 4000


class Crew:
    """Workers of one way, in the same surroundings, each with one job at a time."""

    def __init__(self, way: Way, surroundings: Surroundings) -> None:
        self._way = way
        self._surroundings = surroundings
        self._workers: list[Worker] = []
        self._past: list[Worker] = []
        """Those of this check that are not there any more."""

    def fill(self, count: int) -> None:
        """Keep so many of the live ones, and start those that are missing."""
        kept = [each for each in self._workers if each.is_alive()][:count]
        self._end([each for each in self._workers if each not in kept])
        self._workers = kept
        while len(self._workers) < count:
            self._workers.append(self._way.start(self._surroundings))

    def worker_of(self, pid: int) -> Worker:
        """The worker that a process belongs to; the first one where it cannot be told."""
        for worker in self._workers:
            if pid == worker.pid or pid in descendants(worker.pid):
                return worker
        return self._workers[0]

    def stop(self) -> None:
        """End those that are left."""
        self._end(self._workers)
        self._workers = []

    def logs(self) -> list[str]:
        """The end of what each wrote, those that are gone too; these are forgotten with it."""
        workers, self._past = [*self._past, *self._workers], []
        return [worker.read_log()[-_LOG:] for worker in workers]

    def _end(self, workers: list[Worker]) -> None:
        for worker in workers:
            worker.end()
        self._past += workers
