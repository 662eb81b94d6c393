"""The consumer: receives messages, has functions called for them in threads, and settles each by what came of it."""

from __future__ import annotations

import logging
import queue as queues
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from semel.adapters.sqs.client import SqsClient
from semel.adapters.sqs.endings import LONGEST
from semel.adapters.sqs.envelopes import Unwrap
from semel.adapters.sqs.handler import Extra, Function, Handlers, Kind
from semel.adapters.sqs.queue import BATCH, Queue
from semel.adapters.sqs.running import Options, Running
from semel.adapters.sqs.ways import SqsWay
from semel.core.durations import Duration, describe, to_timedelta
from semel.core.retry import Backoff
from semel.errors import ConfigurationError

logger = logging.getLogger("semel.sqs")

_LONGEST_WAIT: Final = timedelta(seconds=20)


class Consumer:
    """Consumes one queue by guarded functions, or plain ones. Nothing is asked of SQS before `run`.

    ``queue`` is a URL or a name. ``handler`` is a function whose arguments are the fields of a message's JSON body, or
    several by kind, where ``kind`` names the attribute of the messages that tells. ``unwrap`` takes envelopes off (`sns`,
    `eventbridge`, `s3`). A field that the function does not take makes a message unreadable, unless ``extra="ignore"``.

    ``concurrency`` threads call functions; no more is received than can start at once. ``batch`` is how much one receive
    takes. ``visibility`` is how long a message is hidden between two extensions (default: as the queue says), ``longest_run``
    for how long an unguarded function's message is extended; a guarded one declares its own. ``backoff`` hides a message
    whose function raised for a growing time (default: for what is left of its visibility). ``stop_grace`` is how long a
    stop waits.
    """

    def __init__(
        self,
        queue: str,
        handler: Function | Mapping[str, Function],
        *,
        kind: Kind | None = None,
        unwrap: Unwrap | Sequence[Unwrap] = (),
        extra: Extra = "refuse",
        concurrency: int = 10,
        batch: int = BATCH,
        wait: Duration = _LONGEST_WAIT,
        visibility: Duration | None = None,
        longest_run: Duration = LONGEST,
        backoff: Backoff | None = None,
        stop_grace: Duration = "30 s",
        client: SqsClient | None = None,
    ) -> None:
        if concurrency < 1:
            raise ConfigurationError(f"concurrency is {concurrency}: give at least 1.")
        if not 1 <= batch <= BATCH:
            raise ConfigurationError(f"batch is {batch}: SQS gives from 1 to {BATCH} messages at a time.")
        self.queue = Queue(queue, client)
        self.handlers = Handlers(handler, kind=kind, unwrap=unwrap, extra=extra)
        self.concurrency = concurrency
        self.batch = batch
        self._wait = to_timedelta(wait, name="wait")
        self._visibility = None if visibility is None else to_timedelta(visibility, name="visibility")
        self._longest_run = to_timedelta(longest_run, name="longest_run")
        self._backoff = backoff
        self._stop_grace = to_timedelta(stop_grace, name="stop_grace")
        self._told: queues.SimpleQueue[str] = queues.SimpleQueue()
        if self._wait > _LONGEST_WAIT or self._wait.microseconds:
            raise ConfigurationError(
                f"wait is {describe(self._wait)}: SQS waits whole seconds, {describe(_LONGEST_WAIT)} at most."
            )
        if self._visibility is not None:
            _check_visibility(self._visibility, "")

    @property
    def semel_way(self) -> SqsWay:
        """What a note says of it."""
        return SqsWay(f"{self.concurrency} at a time, by the consumer", self.queue.given)

    @property
    def semel_functions(self) -> tuple[Function, ...]:
        """What it calls."""
        return self.handlers.functions

    @property
    def visibility(self) -> timedelta:
        """How long a message is hidden between two extensions. Asks the queue where it was not given."""
        return self.queue.settings.visibility if self._visibility is None else self._visibility

    def run(self) -> int:
        """Consume until `stop`. Answers how many functions were still running when the stop's grace was over.

        Raises BrokerUnreachable where the queue's attributes cannot be read. Once it runs, nothing that SQS or a function
        does ends it.
        """
        visibility = self.visibility
        _check_visibility(visibility, f" of {self.queue.settings.name}")
        running = Running(
            self.queue,
            self.handlers,
            Options(
                concurrency=self.concurrency,
                batch=self.batch,
                wait=int(self._wait.total_seconds()),
                visibility=int(visibility.total_seconds()),
                longest_run=self._longest_run,
                backoff=self._backoff,
            ),
        )
        running.start()
        logger.info("consuming %s, %d at a time", self.queue.settings.name, self.concurrency)
        self._told.get()
        logger.info("stopping: what has started goes on, at most %s", describe(self._stop_grace))
        left = running.stop(self._stop_grace.total_seconds(), hurried=lambda: not self._told.empty())
        if left:
            logger.warning("stopped; %d functions still run, their messages come again", left)
        else:
            logger.info("stopped")
        return left

    def stop(self) -> None:
        """Receive no more, give back what has not started, and let `run` return once the rest has ended.

        A second call does not wait for the rest. May be called from a signal handler and from any thread.
        """
        self._told.put("stop")


def _check_visibility(visibility: timedelta, whose: str) -> None:
    if not timedelta(seconds=1) <= visibility <= LONGEST or visibility.microseconds:
        raise ConfigurationError(
            f"The visibility{whose} is {describe(visibility)}: a message would be in other hands before it is done.",
            remedy="Give visibility= from 1 s to 12 h, in whole seconds; 30 s or more is usual.",
        )
