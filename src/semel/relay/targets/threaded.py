"""A sender over a client that blocks: a few threads, each with a connection of its own, take what waits in batches."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from semel.errors import BrokerUnreachable
from semel.relay.message import Message

Connection = TypeVar("Connection")
Answers = Sequence[Exception | None]
"""Of each message of a batch: None where it is confirmed, else why not."""


class ThreadedSender(Generic[Connection]):
    """``connect`` and ``publish`` run on the threads; what ``publish`` raises is every message's answer."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        publish: Callable[[Connection, Sequence[Message]], Answers],
        close: Callable[[Connection], object],
        *,
        most: int,
        threads: int,
    ) -> None:
        self.lost = asyncio.Event()
        self._connect = connect
        self._publish = publish
        self._close = close
        self._most = most
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._condition = threading.Condition()
        self._waiting: deque[tuple[Message, asyncio.Future[None]]] = deque()
        self._closed = False

    async def open(self) -> ThreadedSender[Connection]:
        """Start the threads, and wait until each is connected; raises what kept one from it."""
        opened: list[asyncio.Future[None]] = [self._loop.create_future() for _ in range(self._threads)]
        for each in opened:
            threading.Thread(target=self._run, args=(each,), name="semel-relay", daemon=True).start()
        try:
            await asyncio.gather(*opened)
        except BaseException:
            await self.close()
            raise
        return self

    async def send(self, message: Message) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        with self._condition:
            if self._closed:
                raise BrokerUnreachable("The connection is closed.")
            self._waiting.append((message, future))
            self._condition.notify()
        await future

    async def close(self) -> None:
        with self._condition:
            self._closed = True
            left = list(self._waiting)
            self._waiting.clear()
            self._condition.notify_all()
        self._answer(left, [BrokerUnreachable("The connection was given up.")] * len(left))

    def _run(self, opened: asyncio.Future[None]) -> None:
        try:
            connection = self._connect()
        except Exception as error:
            self._later(settle, opened, error)
            return
        self._later(settle, opened, None)
        try:
            while batch := self._take():
                self._later(self._answer, batch, self._try(connection, [message for message, _ in batch]))
        finally:
            with contextlib.suppress(Exception):
                self._close(connection)

    def _try(self, connection: Connection, messages: Sequence[Message]) -> Answers:
        try:
            return self._publish(connection, messages)
        except Exception as error:
            return [error] * len(messages)

    def _take(self) -> list[tuple[Message, asyncio.Future[None]]]:
        """The next batch; empty at the end."""
        with self._condition:
            while True:
                while not self._waiting and not self._closed:
                    self._condition.wait()
                taken = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
                wanted = [each for each in taken if not each[1].done()]  # else nobody waits for it any more
                if wanted or self._closed:
                    return wanted

    def _answer(self, batch: Sequence[tuple[Message, asyncio.Future[None]]], answers: Answers) -> None:
        """The confirmed first: an error may end the connection, and what is not settled by then is sent again."""
        pairs = sorted(zip(batch, answers, strict=True), key=lambda pair: pair[1] is not None)
        for (_, future), answer in pairs:
            settle(future, answer)

    def _later(self, call: Callable[..., object], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(call, *arguments)


def settle(future: asyncio.Future[None], error: Exception | None) -> None:
    """Answer who waits for a message's confirmation, unless nobody does any more."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
