"""What a supervisor and its child say to each other: one JSON object a line, over a socket pair.

A child that hears the end of the stream knows that its supervisor is gone, and the other way round.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from datetime import timedelta
from typing import Final, TypeVar

import msgspec

from semel.core.schedule import Schedule
from semel.queue.recurring import ScheduledJob
from semel.store.schedules import Recurring

Message = TypeVar("Message")
logger = logging.getLogger("semel.worker")

_LONGEST: Final = 64 * 2**20
"""Bytes of one message: a `Hello` carries every schedule with its payload."""


class SchedulePlan(msgspec.Struct, frozen=True):
    """A schedule as the supervisor needs it, which loads no application."""

    name: str
    expression: str | None
    every: float | None
    tz: str
    missed: str
    kind: str
    payload: str
    queue: str
    priority: int
    max_attempts: int

    @classmethod
    def of(cls, scheduled: ScheduledJob) -> SchedulePlan:
        schedule, options = scheduled.schedule, scheduled.options
        every = schedule.every
        return cls(
            name=schedule.name,
            expression=schedule.expression,
            every=every.total_seconds() if isinstance(every, timedelta) else None,
            tz=schedule.tz,
            missed=scheduled.missed,
            kind=scheduled.kind,
            payload=scheduled.payload.decode(),
            queue=options.queue,
            priority=options.priority,
            max_attempts=options.max_attempts,
        )

    @property
    def schedule(self) -> Schedule:
        every = None if self.every is None else timedelta(seconds=self.every)
        return Schedule(self.name, self.expression, every, self.tz)

    @property
    def recurring(self) -> Recurring:
        definition = self.expression if self.expression is not None else f"every {self.every} s"
        return Recurring(
            name=self.name,
            definition=f"{definition} {self.tz}",
            kind=self.kind,
            payload=self.payload,
            queue=self.queue,
            priority=self.priority,
            max_attempts=self.max_attempts,
        )


class Numbers(msgspec.Struct, frozen=True):
    """The numbers that a supervisor keeps leases and house by."""

    lease: timedelta
    timeout_grace: timedelta
    stop_grace: timedelta
    keep_done: timedelta
    keep_failed: timedelta
    keep_ticks: timedelta
    keep_operations: timedelta
    keep_released: timedelta
    keep_events: timedelta


class ToSupervisor(msgspec.Struct, frozen=True, tag_field="type"):
    """What a child says."""


class Hello(ToSupervisor, frozen=True, tag="hello"):
    """The application is loaded; the child waits for `Go` before it claims."""

    url: str
    schema: str
    numbers: Numbers
    schedules: tuple[SchedulePlan, ...]
    kinds: int
    guarded: bool = False
    """Whether some job is a guarded operation: its record's lease follows the job's."""


class Broken(ToSupervisor, frozen=True, tag="broken"):
    """The child cannot start."""

    happened: str
    holds: str = ""
    remedy: str = ""
    code: str = "configuration"
    exit_code: int = 2

    @property
    def message(self) -> str:
        return " ".join(part for part in (self.happened, self.holds, self.remedy, f"[{self.code}]") if part)


class Idle(ToSupervisor, frozen=True, tag="idle"):
    """The last look found nothing to do (or that is over)."""

    idle: bool


class Go(msgspec.Struct, frozen=True, tag_field="type", tag="go"):
    """The supervisor keeps leases now: claim."""


class Stop(msgspec.Struct, frozen=True, tag_field="type", tag="stop"):
    """End in stages, within ``grace`` seconds."""

    grace: float


class Channel:
    """One end of the pair, on an event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, end: socket.socket) -> Channel:
        end.setblocking(False)
        return cls(*await asyncio.open_connection(sock=end, limit=_LONGEST))

    def send(self, message: msgspec.Struct) -> None:
        """Send without waiting; to an end that is gone, nothing."""
        if not self._writer.is_closing():
            self._writer.write(msgspec.json.encode(message) + b"\n")

    async def drain(self) -> None:
        try:
            await self._writer.drain()
        except ConnectionError:
            return

    async def receive(self, kind: object) -> object | None:
        """The next message, of the (union) type ``kind``; None when the other end is gone, or not to be understood."""
        try:
            line = await self._reader.readline()
            return msgspec.json.decode(line, type=kind) if line else None
        except (ConnectionError, asyncio.IncompleteReadError):
            return None
        except msgspec.MsgspecError as error:
            logger.error("a message between supervisor and child cannot be read: %s", error)
        except ValueError:  # the reader's word for a line over its limit
            logger.error(
                "a message between supervisor and child is over %s MiB: are the schedules' arguments so large?",
                _LONGEST // 2**20,
            )
        return None

    def close(self) -> None:
        self._writer.close()
