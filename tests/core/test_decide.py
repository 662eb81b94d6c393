import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.decide import (
    LONGEST_MESSAGE,
    LONGEST_TRACEBACK,
    Ending,
    Interrupted,
    NoHandler,
    Raised,
    RanTooLong,
    Returned,
    Settlement,
    Unreadable,
    decide,
    error_record,
)
from semel.core.job import Attempt
from semel.core.outcomes import Cancel, HoldForPerson, Retry, Snooze
from semel.core.retry import RetryPolicy
from semel.core.states import MOVES, Status
from semel.errors import PayloadUnreadable

AT = datetime(2026, 1, 2, tzinfo=UTC)


def settle(ending: Ending, attempt: int = 1, policy: Any = None) -> Settlement:
    job = Attempt(job_id=7, claim=41, worker=9, kind="send_invoice", attempt=attempt, max_attempts=3)
    return decide(job, ending, policy or RetryPolicy(), random.random)


ENDINGS: list[Ending] = [
    Returned(b"1"),
    Returned(None),
    Interrupted(),
    RanTooLong(timedelta(minutes=5)),
    NoHandler(),
    Unreadable(PayloadUnreadable("bad")),
    *(Raised(each) for each in (ValueError("x"), Retry(), Retry(at=AT), Retry(after=1), Snooze(until=AT))),
    *(
        Raised(each)
        for each in (Snooze(for_=1), Cancel("c"), HoldForPerson("h"), KeyboardInterrupt(), SystemExit(1))
    ),
]


@pytest.mark.parametrize("attempt", [1, 2, 3, 4])
@pytest.mark.parametrize("ending", ENDINGS, ids=repr)
def test_every_settlement_is_an_allowed_move_and_complete(ending: Ending, attempt: int) -> None:
    settlement = settle(ending, attempt)
    assert (Status.RUNNING, settlement.status) in MOVES
    waits = [settlement.delay is not None, settlement.run_at is not None]
    assert sum(waits) == (1 if settlement.status is Status.PENDING else 0)
    assert settlement.status is Status.DONE or settlement.reason
    assert not settlement.refund or settlement.status is Status.PENDING


def test_returning_is_done_with_the_result() -> None:
    settlement = settle(Returned(b'{"sent":true}'), attempt=3)
    assert (settlement.status, settlement.result, settlement.error) == (Status.DONE, b'{"sent":true}', None)


def test_an_interrupted_attempt_runs_again_at_once_and_is_not_charged() -> None:
    settlement = settle(Interrupted("deployment"), attempt=3)
    assert (settlement.status, settlement.delay, settlement.refund) == (Status.PENDING, timedelta(0), True)
    assert settlement.error is None
    assert "deployment" in settlement.reason


@pytest.mark.parametrize(
    ("ending", "type_name", "words"),
    [
        (Raised(ValueError("no such card")), "ValueError", "no such card"),
        (RanTooLong(timedelta(minutes=5)), "semel.errors.TimedOut", "5 min"),
        (NoHandler(), "semel.errors.UnknownKind", "send_invoice"),
        (Unreadable(PayloadUnreadable("argument 'n'")), "semel.errors.PayloadUnreadable", "argument 'n'"),
        (Raised(asyncio.CancelledError()), "asyncio.exceptions.CancelledError", ""),
        (Raised(KeyboardInterrupt()), "KeyboardInterrupt", ""),
        (Raised(SystemExit(3)), "SystemExit", "3"),
    ],
)
def test_what_counts_as_an_error(ending: Ending, type_name: str, words: str) -> None:
    again, last = settle(ending, attempt=2), settle(ending, attempt=3)
    assert (again.status, again.refund, last.status) == (Status.PENDING, False, Status.FAILED)
    assert again.error is not None
    assert (again.error.type, again.error.attempt) == (type_name, 2)
    assert words in again.error.message


def test_snooze_and_cancel_leave_no_error_but_retry_and_hold_do() -> None:
    for quiet in (Snooze(for_=5, reason="bank closed"), Cancel("bank closed")):
        settlement = settle(Raised(quiet), attempt=3)
        assert settlement.error is None
        assert settlement.reason == "bank closed"
    for kept in (Retry(after=5, reason="bank closed"), HoldForPerson("bank closed")):
        error = settle(Raised(kept)).error
        assert error is not None
        assert error.message == "bank closed"


def test_the_policy_of_the_handler_decides() -> None:
    settlement = settle(Raised(KeyError("x")), policy=lambda _exception, _attempt: HoldForPerson("look"))
    assert settlement.status is Status.HELD
    assert settlement.error is not None
    assert settlement.error.type == "KeyError"


def test_a_record_is_cut_to_size_and_keeps_the_end_of_the_traceback() -> None:
    def deep(left: int) -> None:
        if left:
            deep(left - 1)
        else:
            raise ValueError("é" * 1_000_000 + "the end")

    with pytest.raises(ValueError, match="é") as caught:
        deep(300)
    record = error_record(caught.value, 1, "r" * 10_000)
    assert LONGEST_MESSAGE - 4 <= len(record.message.encode()) <= LONGEST_MESSAGE
    assert LONGEST_TRACEBACK - 4 <= len(record.traceback.encode()) <= LONGEST_TRACEBACK
    assert record.traceback.endswith("the end\n")
    assert len(record.reason.encode()) <= LONGEST_MESSAGE


@given(st.text(st.characters(), max_size=4_000) | st.text("\0\ud800a😀", max_size=9_000))
def test_what_is_kept_of_any_message_can_be_stored(message: str) -> None:
    record = error_record(ValueError(message), 1, message)
    for text, limit in ((record.message, 2_048), (record.reason, 2_048), (record.traceback, 8_192)):
        assert "\0" not in text
        assert len(text.encode()) <= limit  # encode() refuses a lone surrogate
    if len(message) < 500 and message.isascii() and "\0" not in message:
        assert record.message == message


def test_an_exception_that_cannot_be_shown_is_still_recorded() -> None:
    class Shy(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    record = error_record(Shy(), 1, "")
    assert "RuntimeError" in record.message
    assert "Shy" in record.traceback
