"""For a receive loop of your own: one message is handled, kept meanwhile, and settled by what came of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from semel.adapters.sqs.client import SqsClient
from semel.adapters.sqs.endings import DONE, LONGEST, Ending, Fate, ending_of
from semel.adapters.sqs.envelopes import Unwrap
from semel.adapters.sqs.handler import Extra, Function, Handler, call
from semel.adapters.sqs.in_hand import Heartbeat, InHand
from semel.adapters.sqs.message import Message
from semel.adapters.sqs.queue import Queue
from semel.adapters.sqs.running import log_ending
from semel.adapters.sqs.settling import Settlement, Settling
from semel.adapters.sqs.ways import SqsWay, tell_way
from semel.core.durations import Duration, to_timedelta
from semel.core.retry import Backoff
from semel.errors import SemelError, StaleMessage
from semel.guard.guarded import Guarded

P = ParamSpec("P")
R = TypeVar("R")
Raw: TypeAlias = Mapping[str, Any]
"""A message as boto3's ``receive_message`` gives it."""

_AGED: Final = Ending(Fate.LEAVE, "it was visible again before it was handled")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery of a message, while its block runs."""

    message: Message
    in_hand: InHand
    answers: list[SemelError] = field(default_factory=list)
    """What the operations that were asked for with this message answered."""

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a guarded function for this message: its record keeps the message, and the two are held together."""
        longest = function.declaration.longest_run if isinstance(function, Guarded) else LONGEST
        self.in_hand.start(longest.total_seconds())
        try:
            result: R = call(function, args, kwargs, self.message, self.in_hand)
        except SemelError as error:
            if isinstance(function, Guarded):
                self.answers.append(error)
            raise
        return result

    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.message.body)


class Inbox:
    """One queue whose messages you receive yourself, by boto3 or any other way that gives its dictionaries.

    ``visibility`` is the time-out that you receive them with (default: as the queue says). Before a message is handled its
    visibility is set anew, so that one that aged in your hands is noticed and left.
    """

    def __init__(
        self,
        queue: str,
        *,
        client: SqsClient | None = None,
        visibility: Duration | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self.queue = Queue(queue, client)
        self._visibility = None if visibility is None else to_timedelta(visibility, name="visibility")
        self._backoff = backoff
        self._heartbeat = Heartbeat(self.queue)
        self._settling = Settling(self.queue, self._heartbeat)

    def handler(
        self, function: Function, *, unwrap: Unwrap | Sequence[Unwrap] = (), extra: Extra = "refuse"
    ) -> Callable[[Raw], Ending]:
        """A decorator: the function as one that takes a message, calls it with the fields of the body, and settles.

        What is returned says what was done; it raises nothing that the function raised.
        """
        steps = (unwrap,) if callable(unwrap) else tuple(unwrap)
        handler = Handler(function, unwrap=steps, extra=extra)
        longest = (handler.longest_run or LONGEST).total_seconds()

        def handle(raw: Raw) -> Ending:
            started = time.monotonic()
            in_hand = self._take(raw)
            message = in_hand.message
            if in_hand.lost() is not None:
                log_ending(message, _AGED, 0.0)
                return _AGED
            ending = handler.run(
                message, in_hand, starting=lambda: in_hand.start(longest), backoff=self._backoff
            )
            return self._settle(in_hand, ending, time.monotonic() - started)

        return tell_way(handle, SqsWay("by the handler of an own loop", self.queue.given), function)

    @contextmanager
    def delivery(self, raw: Raw) -> Iterator[Delivery]:
        """One delivery as a block: the message is deleted at its end, or dealt with as what it raised says.

        The answers to `Delivery.call` end here; other exceptions are raised, with the message left. Raises StaleMessage where
        the message was visible again before it came to this.
        """
        started = time.monotonic()
        in_hand = self._take(raw)
        if in_hand.lost() is not None:
            log_ending(in_hand.message, _AGED, 0.0)
            raise StaleMessage(
                f"Message {in_hand.message.message_id} was visible again before it was handled.",
                holds="Nothing was claimed and nothing done; the message comes again.",
                remedy="Receive fewer at a time, or with a longer visibility time-out.",
            )
        delivery = Delivery(in_hand.message, in_hand)
        try:
            yield delivery
        except BaseException as error:
            ending = ending_of(
                error,
                asked=any(each is error for each in delivery.answers),
                receives=in_hand.message.receives,
                backoff=self._backoff,
            )
            self._settle(in_hand, ending, time.monotonic() - started)
            if ending.error is not None:
                raise
        else:
            self._settle(in_hand, DONE, time.monotonic() - started)

    def _take(self, raw: Raw) -> InHand:
        """The message in hand, if it still is: asked of SQS, since nobody knows how long it waited."""
        visibility = self._visibility or self.queue.settings.visibility
        in_hand = InHand(Message.from_boto(raw, self.queue.url), visibility=visibility.total_seconds())
        refused = self.queue.hide([(in_hand.message, in_hand.wanted(time.monotonic()))])
        if refused:
            in_hand.let_go(str(refused[0]))
        else:
            self._heartbeat.keep([in_hand])
        return in_hand

    def _settle(self, in_hand: InHand, ending: Ending, seconds: float) -> Ending:
        log_ending(in_hand.message, ending, seconds)
        self._settling.settle_now(Settlement(in_hand, ending))
        return ending
