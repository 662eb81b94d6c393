"""What the end of a delivery means for its message: the table of docs/sqs.md."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Final

from semel.core.retry import Backoff
from semel.errors import (
    Abandoned,
    ClaimLost,
    Held,
    InProgress,
    KeyRefused,
    PayloadMismatch,
    PayloadUnreadable,
    RetryTransaction,
    SemelError,
    TooOld,
)

_POSTPONES: Final = (InProgress, ClaimLost, RetryTransaction)
LONGEST: Final = timedelta(hours=12)
"""SQS hides a received message no longer than this, all extensions taken together."""
MARGIN: Final = timedelta(minutes=1)
"""Kept from it, as SQS counts from its own receiving."""


class Fate(IntEnum):
    """What becomes of a message, in the order of what counts where one message held several operations."""

    DELETE = 0
    REFUSE = 1
    """It never succeeds: deleted, after a copy went to the dead-letter queue where one is set."""
    UNREADABLE = 2
    """As REFUSE, but nothing knows of it: without a dead-letter queue it is left."""
    LATER = 3
    """Hidden for a while."""
    LEAVE = 4
    """Visible again when its visibility time-out ends."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What is to be done with a message, and why."""

    fate: Fate
    why: str
    after: timedelta = timedelta(0)
    """For LATER."""
    error: BaseException | None = None
    """What was raised, where it was no answer of the guard."""

    @property
    def word(self) -> str:
        """For the log."""
        return self.fate.name.lower()


DONE: Final = Ending(Fate.DELETE, "done")
GIVE_BACK: Final = Ending(Fate.LATER, "not started")
"""Visible at once: for messages that no function was called for."""


def ending_of(
    error: BaseException, *, asked: bool = True, receives: int = 1, backoff: Backoff | None = None
) -> Ending:
    """What is done with the message whose function raised this.

    ``asked`` says whether it answers the operation that was asked for with this message. The answer of another one ends no
    message; where the function is no operation itself, it can postpone it.
    """
    match error:
        case SemelError() if error.nested or not (asked or isinstance(error, _POSTPONES)):
            pass  # an exception of the function
        case InProgress():  # and Busy
            return Ending(Fate.LATER, error.happened, spread(error.retry_after))
        case Held(message_kept=True):
            return Ending(Fate.DELETE, f"{error.happened} Its record keeps the message.")
        case Held() | ClaimLost() | RetryTransaction():
            return Ending(Fate.LEAVE, error.happened)
        case Abandoned():
            return Ending(Fate.DELETE, error.happened)
        case PayloadMismatch() | TooOld():
            return Ending(Fate.REFUSE, str(error))
        case PayloadUnreadable() | KeyRefused():
            return Ending(Fate.UNREADABLE, str(error))
    why = f"{type(error).__name__}: {error}"
    if backoff is None:
        return Ending(Fate.LEAVE, why, error=error)
    return Ending(Fate.LATER, why, backoff.delay(receives, random.random), error)


def worst(endings: Iterable[Ending]) -> Ending:
    """Of several operations in one message: it ends only with the last of them."""
    return max(endings, key=lambda ending: (ending.fate, ending.after), default=DONE)


def spread(rest: timedelta) -> timedelta:
    """What is left of a lease, and up to a tenth more (a second at least, half a minute at most)."""
    seconds = max(rest.total_seconds(), 0.0)
    return timedelta(seconds=seconds + random.random() * min(max(seconds / 10, 1.0), 30.0))  # noqa: S311


def whole_seconds(wanted: timedelta, *, since_receipt: float) -> int:
    """As SQS takes it: whole seconds, rounded up, within what is left of its twelve hours."""
    left = (LONGEST - MARGIN).total_seconds() - since_receipt
    return max(0, min(math.ceil(wanted.total_seconds()), math.floor(left)))
