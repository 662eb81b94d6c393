"""What is written at the end of an attempt (DESIGN 4.5)."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from semel.core.durations import describe
from semel.core.job import Attempt
from semel.core.outcomes import Cancel, JobOutcome, Snooze
from semel.core.retry import Decision, Policy, Random, decide_retry
from semel.core.states import Status
from semel.errors import PayloadUnreadable, TimedOut, UnknownKind

LONGEST_MESSAGE = 2_048
"""Bytes of UTF-8 kept of an error's message, or of a reason."""

LONGEST_TRACEBACK = 8_192
"""Bytes of UTF-8 kept of a traceback: its end, where the error is."""

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Returned:
    """The handler returned; ``result`` is JSON, or None to store nothing."""

    result: bytes | None = None


@dataclass(frozen=True, slots=True)
class Raised:
    """The handler raised: an error, an outcome, or a cancellation or exit that nobody asked for."""

    exception: BaseException


@dataclass(frozen=True, slots=True)
class RanTooLong:
    """The attempt passed its time-out."""

    limit: timedelta


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The worker stopped the attempt for a reason of its own, such as a shutdown; ``why`` says which."""

    why: str = "the worker stopped"


@dataclass(frozen=True, slots=True)
class NoHandler:
    """This worker knows no handler for the kind; perhaps the next deployment does."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The payload does not fit the handler's signature."""

    error: PayloadUnreadable


Ending: TypeAlias = Returned | Raised | RanTooLong | Interrupted | NoHandler | Unreadable


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """One attempt's error, cut to size and cleaned of what PostgreSQL cannot store."""

    attempt: int
    type: str
    message: str
    traceback: str
    reason: str


@dataclass(frozen=True, slots=True)
class Settlement:
    """What to write. For ``pending`` exactly one of ``delay`` and ``run_at`` is set."""

    status: Status
    delay: timedelta | None
    run_at: datetime | None
    refund: bool
    """The attempt is not charged."""
    error: ErrorRecord | None
    result: bytes | None
    reason: str


PLAINLY_DONE: Final = Settlement(Status.DONE, None, None, refund=False, error=None, result=None, reason="")
"""Of a handler that returned nothing: one object for all of them."""


def decide(attempt: Attempt, ending: Ending, policy: Policy, random: Random) -> Settlement:
    """The settlement of an attempt that ended so, by the handler's policy (a default where there is none)."""
    match ending:
        case Returned(None):
            return PLAINLY_DONE
        case Returned(result):
            return _settlement(Decision(status=Status.DONE), result=result)
        case Interrupted(why):
            given_back = Decision(
                status=Status.PENDING, reason=f"interrupted: {why}", delay=timedelta(0), refund=True
            )
            return _settlement(given_back)
    exception = _exception(attempt, ending)
    decision = decide_retry(policy, exception, attempt.attempt, attempt.max_attempts, random)
    if isinstance(exception, Snooze | Cancel):  # chosen, not an error: its reason is all there is to keep
        return _settlement(decision)
    return _settlement(decision, error=error_record(exception, attempt.attempt, decision.reason))


def error_record(exception: BaseException, attempt: int, reason: str) -> ErrorRecord:
    """The record of an exception; its own ``__str__`` may fail."""
    return ErrorRecord(
        attempt=attempt,
        type=_head(_type_name(type(exception)), LONGEST_MESSAGE),
        message=_head(_message(exception), LONGEST_MESSAGE),
        traceback=_tail(_traceback(exception), LONGEST_TRACEBACK),
        reason=_head(reason, LONGEST_MESSAGE),
    )


def _settlement(
    decision: Decision, *, error: ErrorRecord | None = None, result: bytes | None = None
) -> Settlement:
    return Settlement(
        status=decision.status,
        delay=decision.delay,
        run_at=decision.run_at,
        refund=decision.refund,
        error=error,
        result=result,
        reason=_head(decision.reason, LONGEST_MESSAGE),
    )


def _exception(attempt: Attempt, ending: Raised | RanTooLong | NoHandler | Unreadable) -> BaseException:
    match ending:
        case Raised(exception):
            return exception
        case RanTooLong(limit):
            return TimedOut(
                f"Attempt {attempt.attempt} of {attempt.kind} ran past its time-out of {describe(limit)}.",
                remedy="Raise the time-out, or split the job.",
            )
        case NoHandler():
            return UnknownKind(
                f"This worker has no handler for the kind {attempt.kind!r}.",
                remedy="Import the module that declares it, or deploy the version that does.",
            )
        case Unreadable(error):
            return error


def _type_name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _message(exception: BaseException) -> str:
    try:
        return exception.reason if isinstance(exception, JobOutcome) else str(exception)
    except BaseException as error:  # the user's __str__
        return f"<its str() raised {type(error).__name__}>"


def _traceback(exception: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(exception))
    except Exception as error:  # the user's __str__, notes or attributes
        return f"<its traceback could not be shown: {type(error).__name__}>"


def _head(text: str, limit: int) -> str:
    encoded = _storable(text[: limit + 1]).encode()
    if len(encoded) <= limit:
        return encoded.decode()
    return encoded[: limit - 3].decode(errors="ignore") + "…"


def _tail(text: str, limit: int) -> str:
    encoded = _storable(text[-limit - 1 :]).encode()
    if len(encoded) <= limit:
        return encoded.decode()
    return "…" + encoded[-(limit - 3) :].decode(errors="ignore")


def _storable(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)
