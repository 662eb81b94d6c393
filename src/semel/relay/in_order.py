"""The claims of a relayed queue: in order by key, the keys taking turns; then what has no key."""

from __future__ import annotations

from collections.abc import Sequence

from semel.core.settings import Settings
from semel.queue.worker.claiming import Take
from semel.store.jobs import Claims, claim, claim_in_order
from semel.store.statement import Operation, Steps


class InOrder:
    """Remembers after which key to begin, where there was no room for all."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._start = ""

    @property
    def takes(self) -> Sequence[Take]:
        """From the key that was served last on; from the first key on; and without a key."""
        return self._from_mark, self._from_first, self._keyless

    def _from_mark(self, worker: int, limit: int, settings: Settings) -> Operation[Claims] | None:
        return self._keyed(worker, limit, settings, self._start) if self._start else None

    def _from_first(self, worker: int, limit: int, settings: Settings) -> Operation[Claims]:
        return self._keyed(worker, limit, settings, "")

    def _keyless(self, worker: int, limit: int, settings: Settings) -> Operation[Claims]:
        return claim(
            worker=worker,
            limit=limit,
            lease=settings.lease,
            max_crashes=settings.max_crashes,
            queues=[self._queue],
            keyless=True,
        )

    def _keyed(self, worker: int, limit: int, settings: Settings, start: str) -> Operation[Claims]:
        operation = claim_in_order(
            worker=worker,
            limit=limit,
            lease=settings.lease,
            max_crashes=settings.max_crashes,
            queue=self._queue,
            start=start,
        )

        def steps() -> Steps[Claims]:
            found = yield from operation.steps()
            keys = [job.ordering_key for job in found.taken if job.ordering_key is not None]
            self._start = max(keys, default="") if found.more else ""
            return found

        return Operation(operation.name, steps, alone=operation.alone)
