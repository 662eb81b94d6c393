"""One run of a consumer: a thread that receives, threads that call functions, one that extends, and one that settles."""

from __future__ import annotations

import logging
import queue as queues
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from semel.adapters.sqs.endings import GIVE_BACK, Ending, Fate, ending_of
from semel.adapters.sqs.handler import Handlers
from semel.adapters.sqs.in_hand import Heartbeat, InHand
from semel.adapters.sqs.message import Message
from semel.adapters.sqs.queue import Queue
from semel.adapters.sqs.settling import Settler, Settling
from semel.core.retry import Backoff
from semel.errors import PayloadUnreadable

logger = logging.getLogger("semel.sqs")

_PAUSES: Final = Backoff(base=1, factor=2, cap=30)
"""Between receives that fail."""
_SETTLING_PATIENCE: Final = 10.0
_LEFT: Final = Ending(Fate.LEAVE, "it may be in other hands")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """As `Consumer` takes them; wait and visibility in seconds."""

    concurrency: int
    batch: int
    wait: int
    visibility: int
    longest_run: timedelta
    backoff: Backoff | None


class Running:
    """The threads of a run, and the messages that they hand to one another.

    A *lane* is what one thread does in order: one message, or those of one FIFO group of a batch.
    """

    def __init__(self, queue: Queue, handlers: Handlers, options: Options) -> None:
        self._queue = queue
        self._handlers = handlers
        self._options = options
        self._heartbeat = Heartbeat(queue)
        self._settling = Settling(queue, self._heartbeat)
        self._settler = Settler(self._settling)
        self._lanes: queues.SimpleQueue[list[InHand] | None] = queues.SimpleQueue()
        self._changed = threading.Condition()
        self._free = options.concurrency
        self._stopping = False
        self._receiving = True

    def start(self) -> None:
        """Begin to receive."""
        for number in range(self._options.concurrency):
            threading.Thread(target=self._work, name=f"semel-sqs-{number}", daemon=True).start()
        threading.Thread(target=self._receive, name="semel-sqs-receive", daemon=True).start()

    def stop(self, grace: float, *, hurried: Callable[[], bool]) -> int:
        """Receive no more, and wait for what runs; the number of functions that did not end in time.

        A long poll that is under way is waited for too: what it still brings is given back.
        """
        ends = time.monotonic() + grace
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            while (self._receiving or self._busy) and time.monotonic() < ends and not hurried():
                self._changed.wait(0.1)
            left = self._busy
        for _ in range(self._options.concurrency):
            self._lanes.put(None)
        if not self._settler.close(_SETTLING_PATIENCE):
            logger.warning("not every message that is done could be deleted: they come again, as repeats")
        return left

    @property
    def _busy(self) -> int:
        return self._options.concurrency - self._free

    def _receive(self) -> None:
        failures = 0
        while self._wait_for_room():
            try:
                messages = self._queue.receive(
                    most=min(self._free, self._options.batch),
                    wait=self._options.wait,
                    visibility=self._options.visibility,
                )
                failures = 0
                self._take(messages)
            except Exception as error:  # whatever boto3 raises: it costs time only
                failures += 1
                pause = _PAUSES.delay(failures, random.random)
                logger.error("nothing could be received, again in %.0f s: %s", pause.total_seconds(), error)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, pause.total_seconds())
        with self._changed:
            self._receiving = False
            self._changed.notify_all()

    def _wait_for_room(self) -> bool:
        """Wait until a function can be called at once; False: stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._free > 0)
            return not self._stopping

    def _take(self, messages: Sequence[Message]) -> None:
        lanes: dict[str, list[InHand]] = {}
        for message in messages:
            name = message.group if message.group is not None else f"\0{message.receipt_handle}"
            lanes.setdefault(name, []).append(InHand(message, visibility=self._options.visibility))
        for lane in lanes.values():
            self._heartbeat.keep(lane)
            with self._changed:
                self._free -= 1
            self._lanes.put(lane)

    def _work(self) -> None:
        while (lane := self._lanes.get()) is not None:
            try:
                self._run_lane(lane)
            except BaseException:  # a fault of ours costs these messages a delivery, and no thread
                logger.exception("messages could not be handled: they come again")
                for message in lane:
                    self._heartbeat.drop(message)
            finally:
                with self._changed:
                    self._free += 1
                    self._changed.notify_all()

    def _run_lane(self, lane: Sequence[InHand]) -> None:
        """In order; what comes after one that did not end is given back, so that it stays behind it."""
        stuck = False
        for message in lane:
            if stuck or self._stopping:
                logger.info("message %s: given back, not started", message.message.message_id)
                self._settler.put(message, GIVE_BACK)
                stuck = True
                continue
            ending = self._handle(message)
            self._settler.put(message, ending)
            stuck = not self._settling.ends(ending)

    def _handle(self, in_hand: InHand) -> Ending:
        message = in_hand.message
        reason = in_hand.lost()
        if reason is not None:
            logger.warning("message %s: not started: %s", message.message_id, reason)
            return _LEFT
        started = time.monotonic()
        try:
            handler = self._handlers.pick(message)
            longest = (handler.longest_run or self._options.longest_run).total_seconds()
            ending = handler.run(
                message, in_hand, starting=lambda: in_hand.start(longest), backoff=self._options.backoff
            )
        except PayloadUnreadable as error:
            ending = ending_of(error)
        log_ending(message, ending, time.monotonic() - started)
        return ending


def log_ending(message: Message, ending: Ending, seconds: float) -> None:
    """One line for each delivery that a function was called for, or that could not be read."""
    level = {Fate.DELETE: logging.INFO, Fate.LATER: logging.WARNING}.get(ending.fate, logging.ERROR)
    logger.log(
        logging.ERROR if ending.error is not None else level,
        "message %s: %s: %s",
        message.message_id,
        ending.word,
        ending.why,
        exc_info=ending.error,
        extra={
            "message_id": message.message_id,
            "queue": message.queue.rpartition("/")[2],
            "receives": message.receives,
            "group": message.group,
            "ending": ending.word,
            "seconds": round(seconds, 3),
        },
    )
