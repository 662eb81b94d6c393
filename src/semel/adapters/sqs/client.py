"""The client of boto3, as far as it is used here: made lazily, so that nothing needs boto3 before a queue is spoken to."""

from __future__ import annotations

import re
from typing import Any, Final, Protocol, cast

from semel.errors import ConfigurationError

_REGION: Final = re.compile(r"^https?://(?:[^/]*\.)?sqs(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-\d+)\.")
POLL_SECONDS: Final = 30
"""A long poll takes 20."""
_READ_SECONDS: Final = 5
_CONNECT_SECONDS: Final = 3


class SqsClient(Protocol):
    """What is used of ``boto3.client("sqs")``; anything with these methods will do."""

    def receive_message(self, *args: Any, **kwargs: Any) -> Any: ...
    def send_message(self, *args: Any, **kwargs: Any) -> Any: ...
    def delete_message_batch(self, *args: Any, **kwargs: Any) -> Any: ...
    def change_message_visibility_batch(self, *args: Any, **kwargs: Any) -> Any: ...
    def get_queue_attributes(self, *args: Any, **kwargs: Any) -> Any: ...
    def get_queue_url(self, *args: Any, **kwargs: Any) -> Any: ...


def make_client(queue: str = "", *, read: int = _READ_SECONDS) -> SqsClient:
    """A client of the environment's account (``AWS_PROFILE``, ``AWS_ENDPOINT_URL_SQS`` … count), in the queue's region.

    Its time-outs are short: what is to be extended does not wait for a minute. ``read`` is that of an answer, in seconds.
    """
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise ConfigurationError("boto3 is not installed.", remedy="pip install 'semel[sqs]'") from error
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=read,
        retries={"mode": "standard", "total_max_attempts": 2},
    )
    region = _REGION.match(queue)
    more = {"region_name": region[1]} if region else {}
    return cast("SqsClient", boto3.client("sqs", config=config, **more))
