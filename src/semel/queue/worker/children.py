"""Child processes as their supervisor sees them: started, heard, stopped, and what they leave behind."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import msgspec

from semel.queue.worker.child import ChildOptions
from semel.queue.worker.engine import SLOTS
from semel.queue.worker.messages import Broken, Channel, Go, Hello, Idle, Stop
from semel.queue.worker.slots import SlotTable

logger = logging.getLogger("semel.worker")

COMMAND: tuple[str, ...] = (sys.executable, "-m", "semel.queue.worker.child")


@dataclass(slots=True, eq=False)
class Child:
    """One running child. Its slots outlive it."""

    process: asyncio.subprocess.Process
    channel: Channel
    slots: SlotTable
    born: float = field(default_factory=time.monotonic)
    idle: bool = False
    blamed: set[tuple[int, int]] = field(default_factory=set)
    """(job, claim) pairs that it was killed for: they ignored their time-out."""

    @classmethod
    async def start(cls, options: ChildOptions, command: Sequence[str] = COMMAND) -> Child:
        """Start a process in a session of its own, so that a terminal's Ctrl-C reaches only the supervisor."""
        with ExitStack() as made:
            ours, theirs = socket.socketpair()
            made.callback(ours.close)
            with theirs:
                slots = SlotTable.create(SLOTS)
                made.callback(slots.close)
                told = msgspec.structs.replace(
                    options, channel=theirs.fileno(), slots=slots.descriptor, capacity=SLOTS
                )
                process = await asyncio.create_subprocess_exec(
                    *command,
                    msgspec.json.encode(told).decode(),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(), slots.descriptor),
                    start_new_session=True,
                )
            made.callback(_kill, process)
            child = cls(process, await Channel.open(ours), slots)
            made.pop_all()
        return child

    async def hello(self) -> Hello | Broken | None:
        """The child's first word; None where it died without one."""
        while True:
            match await self.channel.receive(Hello | Broken | Idle):
                case Hello() | Broken() as word:
                    return word
                case None:
                    return None

    async def listen(self) -> None:
        """Take what the child says, until it says no more."""
        while True:
            match await self.channel.receive(Hello | Broken | Idle):
                case Idle(idle=idle):
                    self.idle = idle
                case None:
                    return

    def go(self) -> None:
        self.channel.send(Go())

    def stop(self, grace: float) -> None:
        self.channel.send(Stop(grace))

    def kill(self) -> None:
        """SIGKILL, by its own process id; a process that is gone is left alone."""
        _kill(self.process)

    async def discard(self) -> None:
        """End a child that holds nothing."""
        self.kill()
        await self.process.wait()
        self.close()

    def close(self) -> None:
        self.channel.close()
        self.slots.close()


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):  # it ended, and asyncio has not said so yet
            os.kill(process.pid, signal.SIGKILL)
