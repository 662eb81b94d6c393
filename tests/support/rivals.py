"""Two connections at one row: the winner holds the lock, and the test knows when the loser waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from tests.support.stored import ask
from tests.support.waiting import until

from semel.sql import Catalogue
from semel.store.connect import connect
from semel.store.drivers.psycopg3 import PsycopgSession
from semel.store.jobs import Claims, Fence, claim, settle
from semel.store.run import run
from semel.store.statement import Operation

Answer = TypeVar("Answer")

LEASE = timedelta(minutes=1)
OVER = timedelta(seconds=-1)
"""A lease that is over when it begins."""

REMEMBER = timedelta(days=1)


class Rival:
    """One connection, as a worker or a person would have it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session: PsycopgSession = connect(url, Catalogue("semel"))
        self._threads = ThreadPoolExecutor(1)

    def does(self, operation: Operation[Answer]) -> Answer:
        return run(operation, self.session)

    @contextmanager
    def holds(self, operation: Operation[Answer]) -> Iterator[Answer]:
        """Inside, the operation is done and not yet committed."""
        with self.session.connection.transaction():
            yield run(operation, self.session)

    def starts(self, operation: Operation[Answer]) -> Future[Answer]:
        """Begin it on a thread."""
        return self._threads.submit(run, operation, self.session)

    def waits_for(self, operation: Operation[Answer]) -> Future[Answer]:
        """Begin it on a thread, and return once it waits for a lock."""
        future = self.starts(operation)
        until(lambda: self.is_waiting, f"{operation.name} waits")
        return future

    @property
    def is_waiting(self) -> bool:
        process = self.session.connection.info.backend_pid
        statement = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
        return bool(ask(self.url, statement, process))

    def claims(self, *, worker: int = 1, limit: int = 1, lease: timedelta = LEASE) -> list[Fence]:
        """Claim, and answer the fences."""
        return fences(self.does(claiming(worker=worker, limit=limit, lease=lease)))

    def close(self) -> None:
        self.session.connection.close()
        self._threads.shutdown()


def claiming(
    *, worker: int = 1, limit: int = 1, lease: timedelta = LEASE, max_crashes: int = 3
) -> Operation[Claims]:
    return claim(worker=worker, limit=limit, lease=lease, max_crashes=max_crashes, queues=None)


def settling(held: list[Fence], *details: Any) -> Operation[frozenset[tuple[int, int]]]:
    return settle(held, details, remember=REMEMBER)


def fences(claims: Claims) -> list[Fence]:
    return [Fence(job.id, job.claim, job.worker) for job in claims.taken]


def pairs(held: list[Fence]) -> frozenset[tuple[int, int]]:
    return frozenset((fence.job_id, fence.claim) for fence in held)
