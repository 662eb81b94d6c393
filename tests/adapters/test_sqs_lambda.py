"""The handler for Lambda, at its documented contract: Lambda itself cannot be had here (see `EventSource`)."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.sqs_fixtures import *  # noqa: F403
from tests.adapters.sqs_fixtures import make_charge, state_of
from tests.adapters.sqs_local import Effects, EventSource, Noting, Queue
from tests.adapters.sqs_servers import SqsServer
from tests.guard.stored import Stored

import semel
from semel.adapters.sqs import Message, lambda_handler
from semel.core.keys import compute_key


class Left:
    """Lambda's context, with so much time left."""

    def __init__(self, *seconds: float) -> None:
        self._seconds = list(seconds)

    def get_remaining_time_in_millis(self) -> int:
        return int(1000 * (self._seconds.pop(0) if len(self._seconds) > 1 else self._seconds[0]))


def test_only_what_failed_is_answered(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server)
    source = EventSource(queue)
    effects.fail("l3", 1)
    sent = [queue.send({"name": f"l{number}"}) for number in range(1, 6)]
    assert source.poll(lambda_handler(charge), visibility=1) == [sent[2]]
    assert sorted(effects.happened) == ["l1", "l2", "l4", "l5"]
    while source.poll(lambda_handler(charge)) or effects.counts["l3"] == 0:
        pass
    assert effects.counts == dict.fromkeys(["l1", "l2", "l3", "l4", "l5"], 1)
    queue.wait_empty()


def test_of_a_group_all_after_the_first_that_failed(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server, fifo=True)
    effects.fail("f2", 1)
    a = [queue.send({"name": f"f{number}"}, group="a") for number in (1, 2, 3)]
    b = [queue.send({"name": f"o{number}"}, group="b") for number in (1, 2)]
    messages = queue.receive(wait=1)
    assert len(messages) == 5
    answer = lambda_handler(charge)(EventSource(queue).event(messages), None)
    assert {each["itemIdentifier"] for each in answer["batchItemFailures"]} == set(a[1:])
    assert effects.begun.count("f3") == 0
    assert [name for name in effects.happened if name.startswith("o")] == ["o1", "o2"]
    assert len(b) == 2


def test_a_young_claim_is_a_failure_and_no_success(
    server: SqsServer, once: semel.Once, effects: Effects
) -> None:
    """With a client it comes again when the lease ends, else when the queue's visibility does."""
    queue = Queue.on(server)
    charge = make_charge(once, effects, lease="90 s")
    client = Noting(queue.client)
    inner: list[Any] = []

    @once.operation("charge", key="name", payload=("amount",), acting="explicit", lease="90 s")
    def outer(op: semel.Operation, name: str, amount: Decimal = Decimal(1)) -> None:
        sent = queue.send({"name": name})
        event = EventSource(queue).event(queue.receive(wait=1))
        inner.append((sent, lambda_handler(charge, client=client)(event, None)))
        with op.acting():
            effects.act(name)

    outer("young")
    ((sent, answer),) = inner
    assert answer == {"batchItemFailures": [{"itemIdentifier": sent}]}
    assert 85 <= client.hidden_for()[0] <= 100
    assert effects.happened == ["young"]


def test_what_nobody_can_read_fails_and_goes_where_the_queue_sends_it(
    server: SqsServer, charge: Any, effects: Effects
) -> None:
    queue = Queue.on(server, dead_letters_after=1, VisibilityTimeout=1)
    assert queue.letters is not None
    sent = queue.send("no json")
    source = EventSource(queue)
    assert source.poll(lambda_handler(charge), visibility=1) == [sent]
    while queue.counts() != (0, 0):
        source.poll(lambda_handler(charge), visibility=1)
    assert [each["Body"] for each in queue.letters.receive()] == ["no json"]


def test_with_a_client_it_goes_there_at_once(server: SqsServer, charge: Any) -> None:
    queue = Queue.on(server, dead_letters_after=5)
    assert queue.letters is not None
    queue.send("no json")
    assert EventSource(queue).poll(lambda_handler(charge, client=queue.client)) == []
    assert [each["Body"] for each in queue.letters.receive()] == ["no json"]
    queue.wait_empty()


def test_what_there_is_no_time_for_is_not_started(
    server: SqsServer, once: semel.Once, effects: Effects
) -> None:
    queue = Queue.on(server)
    charge = make_charge(once, effects, lease="60 s", longest_run="10 s")
    sent = [queue.send({"name": f"t{number}"}) for number in range(3)]
    failed = EventSource(queue).poll(lambda_handler(charge), context=Left(30, 11, 9))
    assert len(failed) == 1
    assert set(failed) < set(sent)
    assert len(effects.happened) == 2


def test_a_record_that_is_none_costs_no_other(charge: Any, effects: Effects) -> None:
    good = {
        "messageId": "1",
        "receiptHandle": "r",
        "body": json.dumps({"name": "beside"}),
        "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:orders",
    }
    bad: list[dict[str, Any]] = [
        good | {"messageId": "2", "eventSourceARN": "arn:aws:sns:eu-central-1:123456789012:topic"},
        {"messageId": "3"},
    ]
    answer = lambda_handler(charge)({"Records": [*bad, good]}, None)
    assert [each["itemIdentifier"] for each in answer["batchItemFailures"]] == ["2", "3"]
    assert effects.happened == ["beside"]


def test_its_record_keeps_the_message_with_the_queues_url(
    once: semel.Once, effects: Effects, path: Path
) -> None:
    @once.operation("charge", key="name", acting="explicit")
    def charge(op: semel.Operation, name: str) -> None:
        with op.acting():
            raise RuntimeError("no answer")

    record = {
        "messageId": "1",
        "receiptHandle": "r",
        "body": json.dumps({"name": "kept by lambda"}),
        "attributes": {"MessageGroupId": "g"},
        "messageAttributes": {"by": {"stringValue": "shop", "dataType": "String"}},
        "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:orders.fifo",
    }
    assert lambda_handler(charge)({"Records": [record]}, None)["batchItemFailures"]
    stored = state_of(path, "kept by lambda")
    assert stored is not None
    assert json.loads(stored["message"]) == {
        "adapter": "sqs",
        "id": "1",
        "queue": "https://sqs.eu-central-1.amazonaws.com/123456789012/orders.fifo",
        "body": record["body"],
        "attributes": {"by": {"type": "String", "text": "shop"}},
        "group": "g",
    }


@pytest.mark.parametrize(
    ("arn", "url"),
    [
        ("arn:aws:sqs:us-east-1:1:q", "https://sqs.us-east-1.amazonaws.com/1/q"),
        ("arn:aws-cn:sqs:cn-north-1:1:q", "https://sqs.cn-north-1.amazonaws.com.cn/1/q"),
        ("arn:aws-us-gov:sqs:us-gov-west-1:1:q", "https://sqs.us-gov-west-1.amazonaws.com/1/q"),
    ],
)
def test_a_queues_url_is_known_by_its_arn(arn: str, url: str) -> None:
    record = {"messageId": "1", "receiptHandle": "r", "body": "{}", "eventSourceARN": arn}
    assert Message.from_lambda(record).queue == url


def test_the_answer_of_an_operation_inside_is_a_failure_of_its_record(
    server: SqsServer, once: semel.Once, charge: Any, effects: Effects, path: Path
) -> None:
    queue = Queue.on(server)
    charge("inside")
    stored = Stored.at("sqlite", path)
    stored.change(compute_key("inside").digest, outcome="abandoned")
    stored.close()

    @once.operation("whole", key="name", acting="explicit")
    def whole(op: semel.Operation, name: str) -> None:
        charge("inside")

    sent = queue.send({"name": "around"})
    assert EventSource(queue).poll(lambda_handler(whole), visibility=1) == [sent]
    assert (state_of(path, "around") or {})["state"] == "released"
