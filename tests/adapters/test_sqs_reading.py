"""How bodies become calls, and ends become what is done with a message; no server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from semel.adapters.sqs import Fate, Message, eventbridge, s3, sns
from semel.adapters.sqs.endings import DONE, Ending, ending_of, spread, whole_seconds, worst
from semel.adapters.sqs.handler import Handler
from semel.adapters.sqs.in_hand import InHand
from semel.core.retry import Backoff
from semel.errors import (
    Abandoned,
    Busy,
    ClaimLost,
    Held,
    InProgress,
    KeyRefused,
    PayloadMismatch,
    PayloadUnreadable,
    RetryTransaction,
    TooOld,
)

SOON = timedelta(seconds=5)
OBJECT_CREATED = {
    "Records": [
        {
            "eventSource": "aws:s3",
            "eventName": "ObjectCreated:Put",
            "s3": {
                "bucket": {"name": "invoices"},
                "object": {
                    "key": "2026/caf%C3%A9+12.pdf",
                    "size": 1024,
                    "eTag": "d41d",
                    "versionId": "v1",
                    "sequencer": "0055",
                },
            },
        },
        {"s3": {"bucket": {"name": "invoices"}, "object": {"key": "b.pdf"}}},
    ]
}


def message(body: Any) -> Message:
    text = body if isinstance(body, str) else json.dumps(body)
    return Message(message_id="1", receipt_handle="r", body=text, queue="https://sqs/1/q")


def charge(order: UUID, amount: Decimal, note: str = "") -> None: ...


def whole(name: str) -> None: ...


ORDER = UUID("6f0d1c5e-8a53-4a8c-9d0e-3f0f5f6f7a10")


def test_fields_are_arguments_by_their_types() -> None:
    ((args, kwargs),) = Handler(charge).read(message(f'{{"order": "{ORDER}", "amount": 12.10}}'))
    assert args == (ORDER, Decimal("12.10"), "")
    assert str(args[1]) == "12.10", "no float on the way"
    assert kwargs == {}


def test_a_field_that_is_not_taken_is_refused_unless_said() -> None:
    body = {"order": str(ORDER), "amount": 1, "ammount": 2}
    with pytest.raises(PayloadUnreadable, match="ammount"):
        Handler(charge).read(message(body))
    ((args, _),) = Handler(charge, extra="ignore").read(message(body))
    assert args == (ORDER, Decimal(1), "")
    with pytest.raises(PayloadUnreadable):
        Handler(charge, extra="ignore").read(message([1]))


def test_envelopes() -> None:
    inner = json.dumps({"name": "x"})
    notification = {"Type": "Notification", "MessageId": "m", "TopicArn": "t", "Message": inner}
    event = {"version": "0", "id": "e", "detail-type": "Order", "source": "shop", "detail": {"name": "x"}}
    for steps, body in (
        ([sns], notification),
        ([eventbridge], event),
        ([sns, eventbridge], {"Message": json.dumps(event)}),
    ):
        assert Handler(whole, unwrap=steps).read(message(body)) == [(("x",), {})]
        with pytest.raises(PayloadUnreadable):
            Handler(whole, unwrap=steps).read(message({"name": "x"}))
        with pytest.raises(PayloadUnreadable):
            Handler(whole, unwrap=steps).read(message("[]"))
    with pytest.raises(PayloadUnreadable):
        Handler(whole, unwrap=[sns]).read(message({"Message": "no json"}))


def test_an_s3_event_is_one_call_for_each_object() -> None:
    def index(bucket: str, key: str, version: str | None = None) -> None: ...

    calls = Handler(index, unwrap=[s3], extra="ignore").read(message(OBJECT_CREATED))
    assert [args for args, _ in calls] == [
        ("invoices", "2026/café 12.pdf", "v1"),
        ("invoices", "b.pdf", None),
    ]
    through_sns = {"Message": json.dumps(OBJECT_CREATED)}
    assert Handler(index, unwrap=[sns, s3], extra="ignore").read(message(through_sns)) == calls
    assert Handler(index, unwrap=[s3]).read(message({"Service": "Amazon S3", "Event": "s3:TestEvent"})) == []
    for broken in ({"Records": [{"s3": {}}]}, {"Records": 3}, {"records": []}):
        with pytest.raises(PayloadUnreadable):
            Handler(index, unwrap=[s3]).read(message(broken))


def test_of_several_calls_in_a_message_each_is_made_and_the_worst_counts() -> None:
    seen: list[str] = []

    def index(key: str) -> None:
        seen.append(key)
        if key.startswith("2026"):
            raise ValueError(key)

    ending = Handler(index, unwrap=[s3], extra="ignore").run(message(OBJECT_CREATED), None)
    assert seen == ["2026/café 12.pdf", "b.pdf"]
    assert ending.fate is Fate.LEAVE


@pytest.mark.parametrize(
    ("error", "fate"),
    [
        (InProgress("x", retry_after=SOON), Fate.LATER),
        (Busy("x", retry_after=SOON), Fate.LATER),
        (Held("x", message_kept=True), Fate.DELETE),
        (Held("x"), Fate.LEAVE),
        (PayloadMismatch("x"), Fate.REFUSE),
        (TooOld("x"), Fate.REFUSE),
        (KeyRefused("x"), Fate.UNREADABLE),
        (PayloadUnreadable("x"), Fate.UNREADABLE),
        (Abandoned("x"), Fate.DELETE),
        (RetryTransaction("x"), Fate.LEAVE),
        (ClaimLost("x"), Fate.LEAVE),
        (ValueError("x"), Fate.LEAVE),
        (SystemExit(1), Fate.LEAVE),
    ],
)
def test_each_answer_has_its_end(error: BaseException, fate: Fate) -> None:
    assert ending_of(error).fate is fate


def test_backoff_is_for_what_raised_only() -> None:
    backoff = Backoff(base=4, factor=2, jitter=0)
    assert ending_of(ValueError("x"), receives=3, backoff=backoff).after == timedelta(seconds=16)
    assert ending_of(ClaimLost("x"), receives=3, backoff=backoff).fate is Fate.LEAVE


def test_the_worst_of_several() -> None:
    later = Ending(Fate.LATER, "x", SOON)
    assert worst([]) is DONE
    assert worst([DONE, Ending(Fate.REFUSE, "x"), later]) is later
    assert worst([later, Ending(Fate.LATER, "x", SOON * 2)]).after == SOON * 2


def test_what_is_left_of_a_lease_is_never_less() -> None:
    for rest in (timedelta(0), timedelta(milliseconds=10), timedelta(minutes=5), timedelta(hours=5)):
        found = spread(rest)
        assert rest <= found <= rest + max(timedelta(seconds=1), min(rest / 10, timedelta(seconds=30)))


def test_no_more_than_the_twelve_hours_of_sqs() -> None:
    assert whole_seconds(timedelta(seconds=1.2), since_receipt=0) == 2
    assert whole_seconds(timedelta(hours=13), since_receipt=0) == 12 * 3600 - 60
    assert whole_seconds(timedelta(hours=1), since_receipt=12 * 3600 - 90) == 30
    assert whole_seconds(timedelta(hours=1), since_receipt=13 * 3600) == 0


def test_a_message_in_hand_is_lost_by_its_own_clock_and_kept_for_its_longest_run() -> None:
    now = time.monotonic()
    assert InHand(message("x"), visibility=30).lost() is None
    assert InHand(message("x"), visibility=30, received=now - 31).lost() is not None
    kept = InHand(message("x"), visibility=30, received=now - 31)
    kept.extended(now, 30)
    assert kept.lost() is None
    kept.start(100)
    assert kept.wanted(now + 99) == 30
    assert kept.wanted(now + 102) == 0, "it runs longer than longest_run"
    old = InHand(message("x"), visibility=600, received=now - 12 * 3600 + 120)
    assert 0 < old.wanted(now) <= 60, "what is left of the twelve hours"
    assert old.wanted(now + 61) == 0


def test_a_claim_that_is_lost_loses_the_message() -> None:
    kept = InHand(message("x"), visibility=30)
    kept.claim_lost()
    assert kept.lost() == "the claim is lost"


def test_nothing_needs_boto3_before_a_queue_is_spoken_to() -> None:
    code = "import sys, semel.adapters.sqs; print(sorted(m for m in sys.modules if m.startswith('boto')))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
