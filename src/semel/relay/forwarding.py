"""Forwards claimed jobs: many at once, one after the other within an ordering key, each done only when it is confirmed."""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from uuid import UUID

from semel.core.settings import Settings
from semel.core.states import Status
from semel.errors import BrokerUnavailable, BrokerUnreachable
from semel.queue.worker.board import Board, Ending, Held
from semel.queue.worker.outcomes import log_lost, to_detail
from semel.relay.connecting import Connecting, said
from semel.relay.figures import Figures
from semel.relay.message import make_message
from semel.relay.refusals import after_refusal, step_aside, tell_blocked
from semel.relay.route import Route
from semel.relay.suspects import Suspects
from semel.relay.target import Sender

logger = logging.getLogger("semel.relay")


class Forwarding:
    """The relay's `Starter`: what it starts is a message on its way."""

    def __init__(
        self, route: Route, settings: Settings, board: Board, installation: UUID, figures: Figures
    ) -> None:
        self.route = route
        self.board = board
        self.figures = figures
        self.stopping = False
        self._lease = settings.lease.total_seconds()
        self._installation = installation
        self._tails: dict[str, asyncio.Future[bool]] = {}
        """The last message under way of each key: true once it is confirmed."""
        self._sending: dict[int, asyncio.Task[bool]] = {}
        self._alone: set[int] = set()
        """Slots of messages that were the only one under way when their connection ended."""
        self._suspects = Suspects()
        self._broken: Sender | None = None
        self._careful = 0
        """After a connection ended: so many messages go one at a time, to find the one that ends connections."""
        self._connecting = Connecting(route.target, figures, self._opened, self._broke)

    @property
    def alone(self) -> Held | None:
        return None

    @property
    def paused(self) -> bool:
        sender = self._connecting.sender
        return sender is None or sender.lost.is_set()

    @property
    def concurrency(self) -> int:
        return 1 if self._careful else self.route.in_flight

    def start_waiting(self) -> None:
        board = self.board
        while board.waiting and len(board.running) < self.concurrency and not (self.stopping or self.paused):
            self._start(board.waiting.popleft())

    def interrupt(self, held: Held, why: str) -> None:
        held.ended_by = held.ended_by or why
        held.lost = held.lost or why == "lost"
        if held.interrupt is not None:
            held.interrupt()

    async def close(self) -> None:
        await self._connecting.close()

    def _opened(self) -> None:
        self.start_waiting()
        self.board.changed.set()

    def _start(self, held: Held) -> None:
        if self.board.slots.is_lost(held.slot, held.job.claim):
            self._lose(held)
            self._send_back_followers(held)
            return
        held.started = time.monotonic()
        self.board.slots.start(held.slot, 0.0)
        self.board.running[held.slot] = held
        before = mine = None
        if held.job.ordering_key is not None:
            before = self._tails.get(held.job.ordering_key)
            mine = asyncio.get_running_loop().create_future()
            self._tails[held.job.ordering_key] = mine
        task = asyncio.create_task(self._forward(held, before))
        held.interrupt = task.cancel
        task.add_done_callback(partial(self._ended, held, mine))

    async def _forward(self, held: Held, before: asyncio.Future[bool] | None) -> bool:
        """Send one message; answers whether it is confirmed. False: it was not sent, and goes back."""
        if before is not None and not await asyncio.shield(before):
            return False
        sender = self._connecting.sender
        message = make_message(held.job, self._installation, self.route.message_id)
        if sender is None or self.paused or self.stopping or not self._holds(held):
            return False
        task = asyncio.current_task()
        assert task is not None
        self._sending[held.slot] = task
        try:
            async with asyncio.timeout(self.route.patience):
                await sender.send(message)
        except (BrokerUnreachable, TimeoutError) as error:
            self._broke(sender, error)
            return False
        finally:
            self._sending.pop(held.slot, None)
        return True

    def _holds(self, held: Held) -> bool:
        """Whether the lease surely runs: a relay that was paused past it must not send what others may have sent."""
        since = self.board.slots.held_since(held.slot, held.job.claim)
        lost = self.board.slots.is_lost(held.slot, held.job.claim)
        return not lost and time.monotonic() < since + self._lease

    def _broke(self, sender: Sender, error: Exception) -> None:
        """The connection is of no use any more: all that is under way on it, or waits, goes back."""
        if sender is self._broken:
            return
        self._broken = sender
        self._connecting.give_up(sender, said(error))
        if not isinstance(error, BrokerUnavailable):
            self._careful = max(self._careful, len(self._sending))
            if len(self._sending) == 1:
                self._alone.update(self._sending)
        for task in self._sending.values():
            if task is not asyncio.current_task():
                task.cancel()
        while self.board.waiting:
            self.board.end(Ending(self.board.waiting.popleft(), None, give_back=True))

    def _ended(self, held: Held, mine: asyncio.Future[bool] | None, task: asyncio.Task[bool]) -> None:
        del self.board.running[held.slot]
        self.board.learn(held)
        error = None if task.cancelled() else task.exception()
        confirmed = not task.cancelled() and error is None and task.result()
        if confirmed:
            self._confirmed(held)
        elif held.lost:
            self._lose(held)
        elif error is not None:
            self._refused(held, error)
        elif held.slot in self._alone:
            self._step_aside(held)
        else:
            self.board.end(Ending(held, None, give_back=True))
        self._alone.discard(held.slot)
        if mine is not None:
            self._leave_line(held, mine, confirmed)
        self.start_waiting()
        self.board.changed.set()

    def _confirmed(self, held: Held) -> None:
        self._careful = max(0, self._careful - 1)
        self._connecting.works()
        self._suspects.forget(held.job.id)
        self.figures.sent += 1
        key = held.job.ordering_key
        if key is not None and self.figures.unblock(key):
            logger.info("queue %s: the key %r goes on with job %s", held.job.queue, key, held.job.id)
        self.board.end(Ending(held, None))

    def _step_aside(self, held: Held) -> None:
        """It was alone on its way when the connection ended: uncharged, but behind others, lest it ends all connections."""
        self._careful = max(0, self._careful - 1)
        times = self._suspects.note(held.job.id, self.figures.sent)
        settlement = step_aside(held.job, self._connecting.wait, times)
        self.board.end(Ending(held, to_detail(held, settlement), settlement))

    def _refused(self, held: Held, error: BaseException) -> None:
        self._careful = max(0, self._careful - 1)
        self.figures.refused += 1
        settlement = after_refusal(held.job, error, self.route)
        if settlement.status is Status.FAILED:
            self.figures.failed += 1
        elif held.job.ordering_key is not None:
            tell_blocked(held.job, settlement, self.figures)
        self.board.end(Ending(held, to_detail(held, settlement), settlement))

    def _lose(self, held: Held) -> None:
        self.figures.lost += 1
        log_lost(held, self.board.counts)
        self.board.release(held)

    def _leave_line(self, held: Held, mine: asyncio.Future[bool], confirmed: bool) -> None:
        key = held.job.ordering_key
        assert key is not None
        mine.set_result(confirmed)
        if self._tails.get(key) is mine:
            del self._tails[key]
        if not confirmed:
            self._send_back_followers(held)

    def _send_back_followers(self, held: Held) -> None:
        """Those that wait behind an unsent message of their key must not overtake it."""
        key, waiting = held.job.ordering_key, self.board.waiting
        if key is None:
            return
        for _ in range(len(waiting)):
            each = waiting.popleft()
            if each.job.ordering_key == key:
                self.board.end(Ending(each, None, give_back=True))
            else:
                waiting.append(each)
