"""The messages of a description: one operation's, one that looks alike, one with another payload."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from semel.replay.description import Description, Message, MessageOf

_NUMBER: Final = "{n}"
_FIELD: Final = re.compile(r"\{(\w+)\}")


def message_of(description: Description, number: int) -> Message:
    """The message of the operation with this number."""
    return _made(description.message, number)


def look_alike_of(description: Description, number: int, other: int) -> Message | None:
    """A message like that of ``number``, of another operation, whose own number is ``other``."""
    if description.look_alike is None:
        return None
    return {**message_of(description, number), **_made(description.look_alike, other)}


def changed_of(description: Description, number: int) -> Message | None:
    """The same operation's message with another payload."""
    if description.changed is None:
        return None
    return {**message_of(description, number), **_made(description.changed, number)}


def fill(text: str, values: Mapping[str, Any]) -> str:
    """The text with ``{name}`` replaced; a name that is not there stays as it is."""
    return _FIELD.sub(lambda found: str(values.get(found[1], found[0])), text)


def _made(template: Mapping[str, Any] | MessageOf, number: int) -> Message:
    return template(number) if callable(template) else _filled(template, number)


def _filled(value: Any, number: int) -> Any:
    """``"{n}"`` alone is the number itself; within a text, its digits."""
    match value:
        case str() if value == _NUMBER:
            return number
        case str():
            return value.replace(_NUMBER, str(number))
        case Mapping():
            return {name: _filled(each, number) for name, each in value.items()}
        case list():
            return [_filled(each, number) for each in value]
        case _:
            return value
