"""Sends what a record keeps of a message to its queue again, for a person's redo."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from semel.adapters.sqs.client import SqsClient, make_client
from semel.adapters.sqs.message import ADAPTER, from_kept
from semel.adapters.sqs.queue import send
from semel.errors import NotFound


class SqsResender:
    """A `Resender` for the messages that consumers of SQS kept. The account is the client's, or the environment's."""

    adapter = ADAPTER

    def __init__(self, client: SqsClient | None = None) -> None:
        self._client = client

    def send(self, message: Mapping[str, Any], *, who: str, why: str) -> str:
        """Send the same body with the same attributes, in its group.

        SQS gives it an id of its own. In a FIFO queue it goes under a new deduplication id: within five minutes of the first
        SQS would take the old one and deliver nothing.
        """
        url, body = message.get("queue"), message.get("body")
        if not isinstance(url, str) or not isinstance(body, str):
            raise NotFound("The record keeps no queue or no body.")
        attributes = {name: from_kept(each) for name, each in (message.get("attributes") or {}).items()}
        sent = send(
            self._client or make_client(url),
            url,
            body,
            attributes,
            group=message.get("group"),
            deduplication=uuid.uuid4().hex,
        )
        return f"Sent to {url.rpartition('/')[2]} again, as message {sent}."
