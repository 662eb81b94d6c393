"""How a worker waits for jobs without asking all the time: it notes that it sleeps, and hears of what is stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import psycopg

from semel.store.direct import is_direct_async
from semel.store.drivers.psycopg3 import AsyncPsycopgSession
from semel.store.run import run_async
from semel.store.statement import Operation, Statement, Steps

logger = logging.getLogger("semel.worker")

LONGEST_HEARD: Final = 200
"""Characters of a queue's name that a notification carries."""


@dataclass(frozen=True, slots=True)
class Serves:
    """What a worker claims: these queues (None: every one), and never those ``without``."""

    queues: tuple[str, ...] | None = None
    without: frozenset[str] = frozenset()

    @property
    def turn(self) -> str:
        """What those have in common that claim the same, and take turns at it."""
        return repr((self.queues and sorted(self.queues), sorted(self.without)))

    def includes(self, queue: str) -> bool:
        """Whether a queue, its name cut as a notification carries it, may be one of them."""
        if self.queues is None:
            return queue not in self.without
        return any(each[:LONGEST_HEARD] == queue for each in self.queues)


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a worker knows before it waits."""

    oldest: int
    """Transactions before this one have ended: none of them can still commit a job."""
    next: int
    """The number of the next transaction."""
    due_in: float | None
    """Seconds until the next job is due, less than zero where it just became so; None where there is none within reach."""


def fall_asleep(sleeper: int, serves: Serves, *, reach: timedelta, valid: timedelta) -> Operation[None]:
    """Note that this child has nothing to do. Whoever looked before the commit does not see it."""
    parameters = serving_parameters(serves) | {
        "sleeper": sleeper,
        "reach": reach.total_seconds(),
        "valid": valid.total_seconds(),
    }

    def steps() -> Steps[None]:
        yield Statement("queue/fall_asleep", parameters)

    return Operation("fall_asleep", steps, alone=True)


def wake_up(sleeper: int) -> Operation[None]:
    """Note that this child works."""

    def steps() -> Steps[None]:
        yield Statement("queue/wake_up", {"sleeper": sleeper})

    return Operation("wake_up", steps, alone=True)


def look_ahead(serves: Serves, *, reach: timedelta, missed: timedelta) -> Operation[Ahead]:
    """When the next job is due, and which transactions are open. What became due within ``missed`` counts as the next one."""
    seconds = {"reach": reach.total_seconds(), "missed": missed.total_seconds()}
    parameters = serving_parameters(serves) | seconds

    def steps() -> Steps[Ahead]:
        rows = yield Statement("queue/look_ahead", parameters)
        return Ahead(*rows[0])

    return Operation("look_ahead", steps, alone=True)


def serving_parameters(serves: Serves) -> dict[str, object]:
    """What a worker serves, for the statements that look for its jobs."""
    queues: Sequence[str] | None = None if serves.queues is None else list(serves.queues)
    return {"queues": queues, "without": sorted(serves.without)}


def _listen() -> Operation[None]:
    def steps() -> Steps[None]:
        yield Statement("queue/listen")

    return Operation("listen", steps, alone=True)


async def is_allowed(note: Operation[None], session: AsyncPsycopgSession) -> bool:
    """Run it; False where this role may not, which is no reason to stop working."""
    try:
        await run_async(note, session)
    except psycopg.errors.InsufficientPrivilege as error:
        logger.warning("this worker cannot be woken, it looks for new jobs: %s", error.diag.message_primary)
        return False
    return True


class Ear:
    """Hears on a worker's own connection which queue of its schema has a new job; ``heard`` is called with its name."""

    def __init__(self, session: AsyncPsycopgSession, heard: Callable[[str], None]) -> None:
        self.session = session
        self._heard = heard
        self._before = f'"{session.catalogue.schema}".'

    async def open(self) -> bool:
        """Begin to hear; False behind a pooler, where another client would hear it."""
        connection = self.session.connection
        if not await is_direct_async(self.session):
            return False
        connection.add_notify_handler(lambda notify: self._take(notify.payload))
        await run_async(_listen(), self.session)
        return True

    @contextmanager
    def listening(self, lost: Callable[[], None]) -> Iterator[None]:
        """Inside, while no statement runs on the connection, what arrives is heard; ``lost``: the connection has ended."""
        connection = self.session.connection
        loop, descriptor = asyncio.get_running_loop(), connection.fileno()

        def readable() -> None:
            try:
                connection.pgconn.consume_input()
            except psycopg.Error:
                loop.remove_reader(descriptor)
                lost()
                return
            while (notify := connection.pgconn.notifies()) is not None:
                self._take(notify.extra.decode(errors="replace"))

        loop.add_reader(descriptor, readable)
        try:
            yield
        finally:
            loop.remove_reader(descriptor)

    def _take(self, payload: str) -> None:
        if payload.startswith(self._before):
            self._heard(payload.removeprefix(self._before))
