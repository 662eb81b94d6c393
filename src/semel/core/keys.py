"""The key of one business operation, and the fingerprint of its payload: canonical, typed, and the same in every language.

A key is one value or a tuple of parts. Each part is written with its type and its length, so that no two lists of parts
give the same text; the text is hashed (SHA-256, or HMAC-SHA-256 with a secret). ``tests/keys.json`` holds vectors.
"""

from __future__ import annotations

import datetime as dates
import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from semel.errors import KeyRefused

Part: TypeAlias = str | int | bool | UUID | dates.date | dates.datetime | Decimal | Enum
"""What a key can be made of."""

FORMAT: Final = "semel-key-1"
_FINGERPRINT_FORMAT: Final = "semel-fingerprint-1"
_LONGEST_LABEL: Final = 200
_MOST_DIGITS: Final = 1000
_TOO_LARGE: Final = 10**_MOST_DIGITS


@dataclass(frozen=True, slots=True)
class OperationKey:
    """A computed key. ``text`` is what was hashed; it can hold personal data and is never stored."""

    digest: str
    """64 hexadecimal digits."""
    label: str | None
    text: str
    version: int = 0
    """Which secret it was made with; 0 for none."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret for keys that hold personal data, with a number that rises at each rotation (from 1)."""

    value: bytes
    version: int = 1

    def __post_init__(self) -> None:
        if len(self.value) < 16:
            raise KeyRefused("A secret for keys needs at least 16 bytes.")
        if self.version < 1:
            raise KeyRefused("A secret's version starts at 1; 0 means that there is none.")


def compute_key(value: object, *, secret: Secret | None = None, label: bool = True) -> OperationKey:
    """The key for one value or a tuple of parts. Raises KeyRefused for what makes no stable key."""
    parts = value if isinstance(value, tuple) else (value,)
    if not parts:
        raise KeyRefused("The key is an empty tuple.", remedy="Give at least one part.")
    text = f"{FORMAT}|{len(parts)}|" + "".join(_key_part(part, place) for place, part in enumerate(parts))
    if secret is None:
        digest = hashlib.sha256(text.encode()).hexdigest()
        return OperationKey(digest, _label(parts) if label else None, text)
    digest = hmac.new(secret.value, text.encode(), hashlib.sha256).hexdigest()
    return OperationKey(digest, None, text, secret.version)


def compute_fingerprint(payload: Mapping[str, object], *, secret: Secret | None = None) -> str:
    """The fingerprint of named payload fields, 64 hexadecimal digits. Their order does not matter."""
    try:
        plain = msgspec.to_builtins(dict(payload), builtin_types=_KEPT_TYPES, order="deterministic")
    except (TypeError, ValueError, RecursionError) as error:
        raise KeyRefused(
            f"The payload has no fingerprint: {error}.", remedy="Name fields of plain types."
        ) from error
    text = f"{_FINGERPRINT_FORMAT}|{_value(plain)}".encode()
    if secret is None:
        return hashlib.sha256(text).hexdigest()
    return hmac.new(secret.value, text, hashlib.sha256).hexdigest()


_KEPT_TYPES: Final = (dates.datetime, dates.date, Decimal, UUID)


def _key_part(part: object, place: int) -> str:
    part = part.value if isinstance(part, Enum) else part
    name = f"Part {place + 1} of the key"
    if part is None:
        raise KeyRefused(f"{name} is None.", remedy="Give every operation a key of its own.")
    if isinstance(part, float):
        raise KeyRefused(
            f"{name} is a float ({part!r}), which has no one way to be written.",
            remedy="Give a Decimal or an int.",
        )
    if isinstance(part, str) and not part:
        raise KeyRefused(f"{name} is an empty string.", remedy="Give every operation a key of its own.")
    encoded = _scalar(part, name)
    if encoded is None:
        raise KeyRefused(
            f"{name} is of the type {type(part).__name__}, which makes no key.",
            remedy="Give str, int, bool, UUID, date, aware datetime, Decimal or an enum.",
        )
    return encoded


def _scalar(value: object, name: str) -> str | None:
    """``value`` with its type and length, or None for a type that is no scalar of a key."""
    match value:
        case bool():
            return _tagged("b", "1" if value else "0")
        case int():
            return _tagged("i", _whole(value, name))
        case str():
            return _tagged("s", _text(value, name))
        case UUID():
            return _tagged("u", str(value))
        case Decimal():
            return _tagged("n", _decimal(value, name))
        case dates.datetime():
            return _tagged("t", _instant(value, name))
        case dates.date():
            return _tagged("d", value.isoformat())
    return None


def _tagged(tag: str, text: str) -> str:
    """Length in bytes of UTF-8, so that every language counts alike."""
    return f"{tag}{len(text.encode())}:{text},"


def _text(value: str, name: str) -> str:
    """Its characters as they are, also of a subclass that shows itself otherwise."""
    try:
        return str.encode(value).decode()
    except UnicodeEncodeError as error:
        raise KeyRefused(f"{name} has a lone surrogate, which is no text.") from error


def _whole(value: int, name: str) -> str:
    if abs(value) >= _TOO_LARGE:
        raise _too_long(name)
    return int.__repr__(value)


def _decimal(value: Decimal, name: str) -> str:
    """Plain digits without an exponent or trailing zeros: 1.00, 1.0 and 1 are one number."""
    if not value.is_finite():
        raise KeyRefused(f"{name} is {value}, which is no number.")
    if value == 0:
        return "0"
    exponent = value.as_tuple().exponent
    if value.adjusted() >= _MOST_DIGITS or int(exponent) < -_MOST_DIGITS:
        raise _too_long(name)
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _instant(value: dates.datetime, name: str) -> str:
    if value.utcoffset() is None:
        raise KeyRefused(
            f"{name} is {value.isoformat()}, which has no time zone and so names no instant.",
            remedy="Give an aware datetime.",
        )
    try:
        moved = value.astimezone(dates.UTC)
    except OverflowError as error:
        raise KeyRefused(f"{name} is {value.isoformat()}, which lies outside the years 1 to 9999.") from error
    return moved.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def _too_long(name: str) -> KeyRefused:
    return KeyRefused(
        f"{name} is a number of more than {_MOST_DIGITS} digits.", remedy="Give it as text, if it is meant."
    )


def _value(value: Any) -> str:
    """A payload's value: scalars as in keys, and besides None, floats, lists and objects with sorted names."""
    if value is None:
        return "z0:,"
    if isinstance(value, float):
        return _tagged("f", repr(value))
    if isinstance(value, Mapping):
        return _tagged("m", "".join(_tagged("k", str(key)) + _value(value[key]) for key in sorted(value)))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return _tagged("l", "".join(_value(each) for each in value))
    encoded = _scalar(value, "A payload field")
    if encoded is None:
        raise KeyRefused(f"A payload field is of the type {type(value).__name__}, which has no fingerprint.")
    return encoded


def _label(parts: Iterable[object]) -> str:
    shown = (part.value if isinstance(part, Enum) else part for part in parts)
    text = "/".join(part.isoformat() if isinstance(part, dates.date) else str(part) for part in shown)
    return text.replace("\0", "\ufffd")[:_LONGEST_LABEL]
