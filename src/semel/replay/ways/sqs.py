"""Messages of an SQS queue, sent by boto3, and consumed by the application's own command."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from semel.errors import ConfigurationError
from semel.replay import peers
from semel.replay.description import Message, SqsQueue
from semel.replay.messages import fill
from semel.replay.processes import Victim, Worker, descendants, start_worker
from semel.replay.ways.addresses import shown_address
from semel.replay.ways.polling import has_polled
from semel.replay.ways.way import Sent, Surroundings

_COUNTS: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_PURGED_LATELY: Final = "AWS.SimpleQueueService.PurgeQueueInProgress"
_SOON: Final = 5.0
_SOON_ENOUGH: Final = 60.0
"""Seconds; what comes again later than that is not waited for."""
_HOLD: Final = 30
"""Seconds that a message of somebody else's is out of sight while the queue is cleared."""


class SqsWay:
    """SQS gives each message an id of its own: the same again is a second message with the same body and attributes.

    Who else consumes a queue cannot be seen in SQS. Its counts are approximate: at AWS a message can be missing in them
    for a while.
    """

    victims: tuple[Victim, ...] = ("parent", "group")

    def __init__(self, deliver: SqsQueue, plain: Surroundings) -> None:
        self._deliver = deliver
        self._environment = plain.environment
        self._client = self._connect()
        self._sent: set[str] = set()
        self._workers: list[Worker] = []
        told = self._attributes("All")
        self._fifo = told.get("FifoQueue") == "true"
        self._by_content = told.get("ContentBasedDeduplication") == "true"
        self._hidden = float(told.get("VisibilityTimeout", _HOLD))
        self._alone = not self.pending()
        """Nothing was there at the start: all that is there later is this run's."""

    def targets(self) -> Mapping[str, str]:
        return {"broker": shown_address(self._deliver.queue_url)}

    def foreign(self) -> list[str]:
        """Messages that this run did not send, as far as counts tell."""
        others = self.pending() - len(self._sent)
        return [f"{others} messages in the queue {self._deliver.queue_url}"] if others > 0 else []

    def start(self, surroundings: Surroundings, *, concurrency: int = 1) -> Worker:
        """The description's command (``{concurrency}`` is filled in); ready when it has asked the queue for messages."""
        name = f"sqs-{os.getpid()}-{secrets.token_hex(3)}.log"
        worker = start_worker(
            [fill(each, {"concurrency": concurrency}) for each in self._deliver.worker],
            environment={**surroundings.environment, **self._own_environment()},
            directory=surroundings.code,
            log=surroundings.directory / name,
            ready=partial(self._is_ready, surroundings.environment),
        )
        self._workers.append(worker)
        return worker

    def send(self, message: Message, number: int) -> Sent:
        """Send it; on a FIFO queue in the description's group."""
        group = fill(self._deliver.group or "replay-{n}", {**message, "n": number})
        attributes = {
            name: fill(value, {**message, "n": number}) for name, value in self._deliver.attributes.items()
        }
        extra = {"attributes": json.dumps(attributes), **({"group": group} if self._fifo else {})}
        delivery = self._send(message, attributes, group, by_content=self._by_content)
        return Sent(delivery, message, extra)

    def send_again(self, sent: Sent) -> Sent:
        """The same body and attributes in a second message; ``extra`` says in ``note`` what had to differ.

        A FIFO queue keeps a second message with the same de-duplication id, and a second one of a group that is being
        worked on. Past its visibility time-out it delivers the message again all the same: that is what this stands for.
        """
        attributes = json.loads(sent.extra["attributes"])
        if not self._fifo:
            return Sent(self._send(sent.message, attributes, "", by_content=False), sent.message, sent.extra)
        group = f"{sent.extra['group']}-again-{secrets.token_hex(4)}"
        delivery = self._send(sent.message, attributes, group, by_content=False)
        note = "a FIFO queue: sent with another de-duplication id and group, as a delivery past the time-out comes"
        if self._by_content:
            note = (
                f"{note}; the queue de-duplicates by content: a producer's second message would not have come"
            )
        extra = {**sent.extra, "note": note}
        if delivery == sent.delivery:
            extra["deduplicated"] = "the queue took it for the first one: it does not come again"
        return Sent(delivery, sent.message, extra)

    def pending(self) -> int:
        """Waiting, delayed, or received and not deleted."""
        told = self._attributes(*_COUNTS)
        return sum(int(told.get(name, 0)) for name in _COUNTS)

    def redelivers_within(self, victim: Victim) -> float:
        """When its visibility time-out is over, unless the consumer asks for one of its own."""
        return self._hidden + _SOON if self._hidden <= _SOON_ENOUGH else 0.0

    def clear(self) -> None:
        """Delete what this run sent and can be received; where nothing was there at the start, purge the queue.

        What a killed worker had, and others' messages beside it, stay out of sight until their time-out.
        """
        if self.pending() == 0 or (self._alone and self._purge()):
            return
        others: dict[str, str] = {}
        while True:
            told = self._client.receive_message(
                QueueUrl=self._deliver.queue_url,
                MaxNumberOfMessages=10,
                VisibilityTimeout=_HOLD,
                WaitTimeSeconds=1,
            )
            messages = told.get("Messages") or []
            if not messages or any(each["MessageId"] in others for each in messages):
                break
            for each in messages:
                if each["MessageId"] in self._sent:
                    self._client.delete_message(
                        QueueUrl=self._deliver.queue_url, ReceiptHandle=each["ReceiptHandle"]
                    )
                else:
                    others[each["MessageId"]] = each["ReceiptHandle"]
        for handle in others.values():
            self._client.change_message_visibility(
                QueueUrl=self._deliver.queue_url, ReceiptHandle=handle, VisibilityTimeout=0
            )

    def eager(self) -> str | None:
        """A message always passes the queue."""
        return None

    def close(self) -> None:
        for worker in self._workers:
            worker.end()
        self._client.close()

    def _send(self, message: Message, attributes: Mapping[str, str], group: str, *, by_content: bool) -> str:
        given: dict[str, Any] = {
            "QueueUrl": self._deliver.queue_url,
            "MessageBody": json.dumps(message),
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
            },
        }
        if self._fifo:
            given["MessageGroupId"] = group
            if not by_content:
                given["MessageDeduplicationId"] = secrets.token_hex(16)
        delivery = str(self._client.send_message(**given)["MessageId"])
        self._sent.add(delivery)
        return delivery

    def _purge(self) -> bool:
        """Whether it could be: once a minute at most."""
        try:
            self._client.purge_queue(QueueUrl=self._deliver.queue_url)
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"].rpartition(".")[2] != _PURGED_LATELY.rpartition(".")[2]:
                raise
            return False
        return True

    def _attributes(self, *names: str) -> dict[str, str]:
        told = self._client.get_queue_attributes(QueueUrl=self._deliver.queue_url, AttributeNames=list(names))
        found: dict[str, str] = told["Attributes"]
        return found

    def _is_ready(self, environment: Mapping[str, str], worker: Worker) -> bool:
        """Its wrapper says that it polled; without one, it has a connection to the queue's endpoint."""
        mine = (worker.pid, *descendants(worker.pid))
        if has_polled(environment, mine):
            return True
        parts = urlsplit(str(self._client.meta.endpoint_url))
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return peers.can_look() and bool(peers.ports_of(mine, port))

    def _own_environment(self) -> dict[str, str]:
        """What the worker's own boto3 is to know of the description."""
        own = {}
        if self._deliver.endpoint_url:
            own["AWS_ENDPOINT_URL_SQS"] = self._deliver.endpoint_url
        if self._deliver.region:
            own["AWS_REGION"] = own["AWS_DEFAULT_REGION"] = self._deliver.region
        return own

    def _connect(self) -> Any:
        """By the workers' environment, not this process's own."""
        try:
            import boto3
            from botocore.config import Config
        except ImportError as error:
            raise ConfigurationError("boto3 is not installed.", remedy="pip install 'semel[sqs]'") from error
        told = {**self._environment, **self._own_environment()}
        session = boto3.Session(
            aws_access_key_id=told.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=told.get("AWS_SECRET_ACCESS_KEY"),
            aws_session_token=told.get("AWS_SESSION_TOKEN"),
            region_name=told.get("AWS_REGION") or told.get("AWS_DEFAULT_REGION"),
            profile_name=told.get("AWS_PROFILE"),
        )
        return session.client(
            "sqs",
            endpoint_url=told.get("AWS_ENDPOINT_URL_SQS") or told.get("AWS_ENDPOINT_URL"),
            config=Config(retries={"total_max_attempts": 3}),
        )
