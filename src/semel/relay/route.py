"""One queue's way: its target, and how it is served."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal

from semel.core.durations import Duration, to_timedelta
from semel.core.retry import Backoff, Policy, RetryPolicy, Rule
from semel.errors import ConfigurationError, MessageUnfit
from semel.relay.message import MessageId
from semel.relay.target import Target

AGAIN: Final = Backoff(base="1 s", cap="1 min")
"""When a message that keeps its key waiting is tried again."""


def _default_retry() -> Policy:
    return RetryPolicy(rules=(Rule(MessageUnfit, "fail"),))


@dataclass(frozen=True, slots=True)
class Route:
    """Where the messages of one queue go, and how. A target alone is a route with these defaults."""

    target: Target
    in_flight: int = 200
    """Messages that wait for the broker's confirmation at once."""
    timeout: Duration = timedelta(seconds=30)
    """Without a confirmation for so long, the connection is given up and the message sent again over the next."""
    message_id: MessageId | None = None
    """Makes a message's id where it is to be one of your own; by default it is the job's reference."""
    when_refused: Literal["block", "dead-letter"] = "block"
    """What becomes of a refused message with an ordering key: it keeps its key waiting until it is taken (or a person
    cancels it), or it fails after its attempts and the key goes on. One without a key fails after its attempts."""
    retry: Policy = field(default_factory=_default_retry)
    """For refused messages, up to the job's ``max_attempts``. A broker that is away costs no attempt."""

    def __post_init__(self) -> None:
        if (
            isinstance(self.in_flight, bool)
            or not isinstance(self.in_flight, int)
            or not 1 <= self.in_flight <= 2_000
        ):
            raise ConfigurationError(f"in_flight is {self.in_flight!r}: give a whole number from 1 to 2000.")
        object.__setattr__(self, "timeout", to_timedelta(self.timeout, name="timeout of a route"))
        if self.when_refused not in ("block", "dead-letter"):
            raise ConfigurationError(
                f"when_refused is {self.when_refused!r}.", remedy='Give "block" or "dead-letter".'
            )

    @property
    def patience(self) -> float:
        """``timeout`` in seconds."""
        return to_timedelta(self.timeout, name="timeout of a route").total_seconds()


def to_route(queue: str, given: Any) -> Route:
    """``given`` itself, or the route of a target."""
    if isinstance(given, Route):
        return given
    if not callable(getattr(given, "open", None)):
        raise ConfigurationError(
            f"The queue {queue} has {given!r}, which is no target.",
            remedy="Give a target such as ToRabbitMQ(…), or Route(target, …).",
        )
    return Route(given)
