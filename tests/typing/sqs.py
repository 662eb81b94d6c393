"""What a type checker sees of the SQS adapter, without any stubs of boto3's.

Each ignored error must be one: mypy warns of an ignore that is not needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_type

from semel import Once, Operation
from semel.adapters.sqs import (
    BatchResponse,
    Consumer,
    Ending,
    Inbox,
    Message,
    SqsClient,
    SqsResender,
    eventbridge,
    lambda_handler,
    s3,
    sns,
)
from semel.operate.resending import Resender

once = Once("postgresql://x/y")


@once.operation("charge", key="order")
def charge(op: Operation, order: int, amount: int = 1) -> str:
    return ""


class Client:
    """Precise signatures, as stubs have them, are as good as boto3's own."""

    def receive_message(self, *, QueueUrl: str, MaxNumberOfMessages: int = 1) -> dict[str, Any]:  # noqa: N803
        return {}

    def send_message(self, *, QueueUrl: str, MessageBody: str) -> dict[str, Any]:  # noqa: N803
        return {}

    def delete_message_batch(self, *, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:  # noqa: N803
        return {}

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:  # noqa: N803
        return {}

    def get_queue_attributes(self, *, QueueUrl: str) -> dict[str, Any]:  # noqa: N803
        return {}

    def get_queue_url(self, *, QueueName: str) -> dict[str, Any]:  # noqa: N803
        return {}


client: SqsClient = Client()
Consumer("q", charge, unwrap=sns, client=client, visibility="60 s")
Consumer("q", {"charge": charge}, kind=lambda message: message.attribute("type"), unwrap=[sns, s3])
Consumer("q", charge, concurency=3)  # type: ignore[call-arg]
Consumer("q", charge, extra="perhaps")  # type: ignore[arg-type]
assert_type(Consumer("q", charge).run(), int)

inbox = Inbox("q", client=client)
raw: Mapping[str, Any] = {}
assert_type(inbox.handler(charge, unwrap=eventbridge)(raw), Ending)
with inbox.delivery(raw) as delivery:
    assert_type(delivery.message, Message)
    assert_type(delivery.call(charge, 3, amount=2), str)
    delivery.call(charge, "3")  # type: ignore[arg-type]

assert_type(lambda_handler(charge)({}, None), BatchResponse)
resender: Resender = SqsResender(client)
