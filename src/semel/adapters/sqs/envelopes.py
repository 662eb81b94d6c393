"""What other services of AWS put around a payload, taken off: give these to ``unwrap=``, one or a chain of them.

Each takes the parsed body and gives the payloads in it: JSON text, or what it parses to. A payload's fields are the
function's arguments by name. Write your own the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote_plus

from semel.errors import PayloadUnreadable

Unwrap: TypeAlias = Callable[[Any], Iterable[Any]]


def sns(body: Any) -> list[Any]:
    """The message that was published to a topic. Without it where the subscription has raw message delivery."""
    text = _field(body, "Message", "an SNS notification", "Is raw message delivery on? Then leave sns out.")
    return [text]


def eventbridge(body: Any) -> list[Any]:
    """The ``detail`` of an event. Its ``id`` is EventBridge's own and is no operation: take the key from the detail."""
    return [_field(body, "detail", "an EventBridge event", "Does the rule's target transform its input?")]


def s3(body: Any) -> list[Any]:
    """The objects of an S3 event notification: bucket, key (as it is, decoded), version, etag, size, sequencer, event.

    S3 delivers a notification at least once; key, version and sequencer together name one change of one object. The test
    event that S3 sends when notifications are set up has no object: it is done with nothing to do.
    """
    if isinstance(body, Mapping) and body.get("Event") == "s3:TestEvent":
        return []
    records = _field(body, "Records", "an S3 event notification", "Is another envelope around it?")
    return [_object(record) for record in records]


def _object(record: Any) -> dict[str, Any]:
    try:
        thing = record["s3"]["object"]
        return {
            "bucket": record["s3"]["bucket"]["name"],
            "key": unquote_plus(thing["key"]),
            "version": thing.get("versionId"),
            "etag": thing.get("eTag"),
            "size": thing.get("size"),
            "sequencer": thing.get("sequencer"),
            "event": record.get("eventName"),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise PayloadUnreadable(
            f"A record of the S3 event notification is incomplete: {error!r}.",
            remedy="Look at the message's body.",
        ) from error


def _field(body: Any, name: str, what: str, remedy: str) -> Any:
    if not isinstance(body, Mapping) or name not in body:
        raise PayloadUnreadable(f"The body is not {what}: it has no {name}.", remedy=remedy)
    return body[name]
