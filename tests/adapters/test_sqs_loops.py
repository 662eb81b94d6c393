"""Receive loops of one's own: the decorator and the block."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.sqs_fixtures import *  # noqa: F403
from tests.adapters.sqs_fixtures import make_charge, state_of
from tests.adapters.sqs_local import Effects, Noting, Queue
from tests.adapters.sqs_servers import SqsServer
from tests.guard.stored import Stored
from tests.support.waiting import until

import semel
from semel.adapters.sqs import Fate, Inbox, Message, SqsResender, eventbridge, s3, sns
from semel.core.keys import compute_key
from semel.operate import held
from semel.operate.resending import Resender
from semel.store.guard_views import list_operations
from semel.store.own_connections import open_own
from semel.store.run import run


def receive(queue: Queue, count: int = 1) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    until(lambda: found.extend(queue.receive()) or len(found) >= count, "messages come")
    return found


def test_a_handler_settles_what_it_is_given(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server, dead_letters_after=3)
    inbox = Inbox(queue.url, client=queue.client)
    handle = inbox.handler(charge)
    for body in ({"name": "looped"}, {"name": "looped"}, "no json"):
        queue.send(body)
    fates = [handle(raw).fate for raw in receive(queue, 3)]
    assert sorted(fates) == [Fate.DELETE, Fate.DELETE, Fate.UNREADABLE]
    assert effects.happened == ["looped"]
    queue.wait_empty()


def test_a_handler_leaves_what_raised(server: SqsServer, charge: Any, effects: Effects) -> None:
    queue = Queue.on(server)
    effects.fail("raises", 1)
    queue.send({"name": "raises"})
    (raw,) = receive(queue)
    ending = Inbox(queue.url, client=queue.client, visibility="1 s").handler(charge)(raw)
    assert ending.fate is Fate.LEAVE
    assert isinstance(ending.error, RuntimeError)
    (raw,) = receive(queue)
    assert raw["Attributes"]["ApproximateReceiveCount"] == "2"


def test_a_block_deletes_extends_and_keeps_the_message(
    server: SqsServer, once: semel.Once, effects: Effects, path: Path
) -> None:
    queue = Queue.on(server, VisibilityTimeout=1)
    client = Noting(queue.client)
    inbox = Inbox(queue.url, client=client)
    charge = make_charge(once, effects)
    queue.send({"name": "block"})
    with inbox.delivery(receive(queue)[0]) as delivery:
        until(lambda: len(client.hidden_for()) >= 5, "extended, longer than its visibility")
        delivery.call(charge, **delivery.json())
    queue.wait_empty()
    assert effects.happened == ["block"]
    record = state_of(path, "block")
    assert record is not None
    assert record["message"] is None, "erased when it is completed"


def test_a_block_raises_what_is_no_answer(
    server: SqsServer, once: semel.Once, effects: Effects, path: Path
) -> None:
    queue = Queue.on(server, VisibilityTimeout=1)
    inbox = Inbox(queue.url, client=queue.client)
    charge = make_charge(once, effects)
    queue.send({"name": "fails"})
    effects.fail("fails", 1)
    with pytest.raises(RuntimeError, match="fails fails"), inbox.delivery(receive(queue)[0]) as delivery:
        delivery.call(charge, **delivery.json())
    with inbox.delivery(receive(queue)[0]) as delivery:
        delivery.call(charge, **delivery.json())
    with inbox.delivery(_sent_again(queue)) as delivery:
        delivery.call(charge, name="fails", amount=9)
        effects.act("not reached: the mismatch ends the block")
    queue.wait_empty()
    assert effects.happened == ["fails"]
    assert (state_of(path, "fails") or {})["state"] == "completed"


def _sent_again(queue: Queue) -> dict[str, Any]:
    queue.send({"name": "fails"})
    return receive(queue)[0]


def in_sns(number: int, fields: Any) -> dict[str, Any]:
    return {"Type": "Notification", "MessageId": f"m{number}", "Message": json.dumps(fields)}


def in_eventbridge(number: int, fields: Any) -> dict[str, Any]:
    return {"id": f"e{number}", "detail-type": "Order", "source": "shop", "detail": fields}


@pytest.mark.parametrize(
    ("steps", "wrap"),
    [
        ([sns], in_sns),
        ([eventbridge], in_eventbridge),
        ([sns, eventbridge], lambda number, fields: in_sns(number, in_eventbridge(number, fields))),
    ],
    ids=["SNS", "EventBridge", "EventBridge through SNS"],
)
def test_an_operation_in_two_envelopes_is_one(
    server: SqsServer, once: semel.Once, effects: Effects, steps: Any, wrap: Any
) -> None:
    """The envelopes' ids are new where it is published again: the key is made of what is inside."""
    queue = Queue.on(server)
    name = " in ".join(each.__name__ for each in steps)
    for number in (1, 2):
        queue.send(wrap(number, {"name": name}))
    handle = Inbox(queue.url, client=queue.client).handler(make_charge(once, effects), unwrap=steps)
    assert [handle(raw).fate for raw in receive(queue, 2)] == [Fate.DELETE] * 2
    assert effects.happened == [name]
    queue.wait_empty()


def test_a_change_of_an_object_that_s3_tells_twice_is_one(
    server: SqsServer, once: semel.Once, effects: Effects
) -> None:
    @once.operation("index", key=("bucket", "key", "sequencer"), acting="explicit")
    def index(op: semel.Operation, bucket: str, key: str, sequencer: str) -> None:
        with op.acting():
            effects.act(f"{bucket} {key} {sequencer}")

    queue = Queue.on(server)
    for sequencer in ("0055", "0055", "0056"):
        changed = {"key": "caf%C3%A9+12.pdf", "size": 1, "eTag": "d41d", "sequencer": sequencer}
        s3_part = {"bucket": {"name": "invoices"}, "object": changed}
        queue.send({"Records": [{"eventName": "ObjectCreated:Put", "s3": s3_part}]})
    handle = Inbox(queue.url, client=queue.client).handler(index, unwrap=s3, extra="ignore")
    assert [handle(raw).fate for raw in receive(queue, 3)] == [Fate.DELETE] * 3
    assert sorted(effects.happened) == ["invoices café 12.pdf 0055", "invoices café 12.pdf 0056"]


@pytest.mark.parametrize("fifo", [False, True])
def test_a_redo_sends_the_same_message_again(
    server: SqsServer, once: semel.Once, effects: Effects, path: Path, fifo: bool
) -> None:
    """In a FIFO queue too, within the five minutes in which SQS drops the same deduplication id."""
    queue = Queue.on(server, fifo=fifo)
    faults = iter([RuntimeError("no answer")])
    name = f"redone fifo={fifo}"

    @once.operation("charge", key="name", acting="explicit")
    def charge(op: semel.Operation, name: str) -> None:
        with op.acting():
            effects.act(name)
            for fault in faults:
                raise fault

    handle = Inbox(queue.url, client=queue.client, visibility="1 s").handler(charge)
    queue.send({"name": name}, group="g" if fifo else None, origin="shop")
    assert handle(receive(queue)[0]).fate is Fate.LEAVE
    assert handle(receive(queue)[0]).fate is Fate.DELETE, "held, and its record keeps the message"
    queue.wait_empty()
    resender: Resender = SqsResender(queue.client)
    own = open_own(path, schema="semel")
    with own.session() as session:
        page = run(list_operations(_labelled(name), limit=2, before_id=None), session)
        (shown,) = page.operations
        resolved = held.redo(session, shown.id, shown.claim, "ada", "no such charge", resenders=[resender])
    own.close()
    assert resolved.sent is True, resolved.note
    (again,) = receive(queue)
    assert again["MessageAttributes"]["origin"]["StringValue"] == "shop"
    assert again["Attributes"].get("MessageGroupId") == ("g" if fifo else None)
    assert handle(again).fate is Fate.DELETE
    assert effects.counts[name] == 2, "the person said that the first did not happen"


def _labelled(name: str) -> Any:
    from semel.core.operation_report import OperationFilter

    return OperationFilter(label=name)


def test_each_redo_into_a_fifo_queue_arrives(server: SqsServer) -> None:
    queue = Queue.on(server, fifo=True, ContentBasedDeduplication="true")
    queue.client.send_message(QueueUrl=queue.url, MessageBody="x", MessageGroupId="g")
    kept = json.loads(Message.from_boto(receive(queue)[0], queue.url).to_kept())
    queue.client.purge_queue(QueueUrl=queue.url)
    for _ in range(2):
        SqsResender(queue.client).send(kept, who="ada", why="because")
    assert sum(queue.counts()) == 2


def test_binary_attributes_are_kept_and_sent_again(server: SqsServer) -> None:
    queue = Queue.on(server)
    attributes = {
        "blob": {"DataType": "Binary", "BinaryValue": b"\0\xff"},
        "count": {"DataType": "Number", "StringValue": "3"},
    }
    queue.client.send_message(QueueUrl=queue.url, MessageBody="x", MessageAttributes=attributes)
    message = Message.from_boto(receive(queue)[0], queue.url)
    SqsResender(queue.client).send(json.loads(message.to_kept()), who="ada", why="because")
    (again,) = receive(queue)
    found = again["MessageAttributes"]
    assert found["blob"]["BinaryValue"] == b"\0\xff"
    assert (found["count"]["DataType"], found["count"]["StringValue"]) == ("Number", "3")


def test_a_block_ends_by_what_it_asked_for_by_delivery_call_only(
    server: SqsServer, once: semel.Once, effects: Effects, path: Path
) -> None:
    queue = Queue.on(server, VisibilityTimeout=1)
    inbox = Inbox(queue.url, client=queue.client)
    charge = make_charge(once, effects)
    charge("asked")
    stored = Stored.at("sqlite", path)
    stored.change(compute_key("asked").digest, outcome="abandoned")
    stored.close()
    queue.send({"name": "asked"})
    with pytest.raises(semel.Abandoned), inbox.delivery(receive(queue)[0]):
        charge("asked")
    with pytest.raises(semel.Abandoned), inbox.delivery(receive(queue)[0]) as delivery:
        delivery.call(lambda name: charge(name), "asked")
    with inbox.delivery(receive(queue)[0]) as delivery:
        delivery.call(charge, "asked")
    queue.wait_empty()
