"""For AWS Lambda: the event of an SQS event source mapping, answered by the records that did not end.

Lambda deletes what is not in that answer, and lets the rest become visible again. It reads the answer only where the mapping
has ``FunctionResponseTypes=["ReportBatchItemFailures"]``: without it Lambda deletes *every* message of a call that returns.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Protocol, TypedDict

from semel.adapters.sqs.client import SqsClient
from semel.adapters.sqs.endings import Ending, Fate, ending_of, whole_seconds
from semel.adapters.sqs.envelopes import Unwrap
from semel.adapters.sqs.handler import Extra, Function, Handlers, Kind
from semel.adapters.sqs.message import Message
from semel.adapters.sqs.queue import Queue
from semel.adapters.sqs.running import log_ending
from semel.adapters.sqs.ways import SqsWay, tell_way
from semel.core.durations import Duration, describe, to_timedelta
from semel.errors import PayloadUnreadable

logger = logging.getLogger("semel.sqs")


class LambdaContext(Protocol):
    """What is used of Lambda's context."""

    def get_remaining_time_in_millis(self) -> int: ...


class ItemFailure(TypedDict):
    """One record that did not end."""

    itemIdentifier: str


class BatchResponse(TypedDict):
    """What Lambda takes as the answer to a batch."""

    batchItemFailures: list[ItemFailure]


LambdaHandler = Callable[[Mapping[str, Any], LambdaContext | None], BatchResponse]
_NOT_STARTED: Final = Ending(Fate.LATER, "not started: a message of its group before it did not end")
_NO_TIME: Final = Ending(Fate.LATER, "not started: the function's time is nearly over")


def lambda_handler(
    handler: Function | Mapping[str, Function],
    *,
    kind: Kind | None = None,
    unwrap: Unwrap | Sequence[Unwrap] = (),
    extra: Extra = "refuse",
    longest_run: Duration = 0,
    client: SqsClient | None = None,
) -> LambdaHandler:
    """A Lambda function's handler that calls a guarded function, or a plain one, for each record of a batch.

    The answer names what did not end; in a FIFO queue, all of a group after the first that did not. A record is not started
    where less is left of the function's time than its declared ``longest_run`` (here: that of an unguarded function).

    With a ``client`` a message in progress comes again when the lease ends, and what never succeeds goes to the dead-letter
    queue at once: the role then also needs ChangeMessageVisibility, GetQueueAttributes, and GetQueueUrl and SendMessage of
    the dead-letter queue. Without one SQS does both in its own time: by the visibility time-out, and by maxReceiveCount.
    """
    handlers = Handlers(handler, kind=kind, unwrap=unwrap, extra=extra)
    batch = _Batch(handlers, to_timedelta(longest_run, name="longest_run"), client)

    def handle(event: Mapping[str, Any], context: LambdaContext | None = None) -> BatchResponse:
        return batch.run(event, context)

    return tell_way(handle, SqsWay("by the Lambda handler", None), *handlers.functions)


class _Batch:
    def __init__(self, handlers: Handlers, longest_run: timedelta, client: SqsClient | None) -> None:
        self._handlers = handlers
        self._longest_run = longest_run
        self._client = client
        self._queues: dict[str, Queue] = {}

    def run(self, event: Mapping[str, Any], context: LambdaContext | None) -> BatchResponse:
        stuck: set[str] = set()
        left = [each["messageId"] for each in event["Records"] if not self._ended(each, context, stuck)]
        return {"batchItemFailures": [{"itemIdentifier": each} for each in left]}

    def _ended(self, record: Mapping[str, Any], context: LambdaContext | None, stuck: set[str]) -> bool:
        """Handle one record; whether Lambda may delete it. No record costs the others their answer."""
        started = time.monotonic()
        try:
            message = Message.from_lambda(record)
            ending = self._handle(message, context, stuck)
            log_ending(message, ending, time.monotonic() - started)
            ended = self._settle(message, ending, started)
        except Exception:
            logger.exception("record %s could not be handled: it comes again", record.get("messageId"))
            ended = False
        group = (record.get("attributes") or {}).get("MessageGroupId")
        if not ended and group is not None:
            stuck.add(group)
        return ended

    def _handle(self, message: Message, context: LambdaContext | None, stuck: set[str]) -> Ending:
        if message.group in stuck:
            return _NOT_STARTED
        try:
            handler = self._handlers.pick(message)
        except PayloadUnreadable as error:
            return ending_of(error)
        needed = handler.longest_run or self._longest_run
        if context is not None and context.get_remaining_time_in_millis() < needed.total_seconds() * 1000:
            logger.warning("message %s: less than %s is left", message.message_id, describe(needed))
            return _NO_TIME
        return handler.run(message, None)

    def _settle(self, message: Message, ending: Ending, started: float) -> bool:
        match ending.fate:
            case Fate.DELETE:
                return True
            case Fate.REFUSE | Fate.UNREADABLE if self._client is not None:
                copied = self._queue(message).send_to_dead_letters(message, ending.why)
                return copied or ending.fate is Fate.REFUSE
            case Fate.LATER if self._client is not None:
                seconds = whole_seconds(ending.after, since_receipt=time.monotonic() - started)
                refused = self._queue(message).hide([(message, seconds)])
                if refused:
                    logger.warning(
                        "message %s: its visibility was not set: %s", message.message_id, refused[0]
                    )
        return False

    def _queue(self, message: Message) -> Queue:
        return self._queues.setdefault(message.queue, Queue(message.queue, self._client))
