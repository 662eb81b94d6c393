"""Durations as people write them: a ``timedelta``, a number of seconds, or words such as "10 min"."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import TypeAlias

from semel.errors import ConfigurationError

Duration: TypeAlias = timedelta | float | int | str

LONGEST = timedelta(days=36_525)
"""A century. Longer ones are mistakes, and would leave the range of a date when added to one."""

_EXAMPLES = (
    'Write a timedelta, seconds, or words such as "90 s", "10 min", "24 h", "500 ms", "3 days", "1h30m".'
)

_MICROSECONDS = MappingProxyType(
    {
        name: microseconds
        for names, microseconds in (
            ("ms millisecond milliseconds", 1_000),
            ("s sec secs second seconds", 1_000_000),
            ("m min mins minute minutes", 60_000_000),
            ("h hr hrs hour hours", 3_600_000_000),
            ("d day days", 86_400_000_000),
            ("w week weeks", 604_800_000_000),
        )
        for name in names.split()
    }
)
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")
_TERM = re.compile(rf"\s*({_NUMBER.pattern})\s*([a-z]+)\s*,?")


def to_timedelta(value: Duration, *, name: str) -> timedelta:
    """The duration that ``value`` says, to the microsecond; a bare number (also as text) is seconds.

    ``name`` is what the error calls it. Refused: negative, NaN, infinite, more than a century, a bool.
    """
    result = _parse(value, name)
    if result < timedelta(0):
        raise ConfigurationError(f"{name} is {value!r}: a duration cannot be negative.", remedy=_EXAMPLES)
    if result > LONGEST:
        raise ConfigurationError(f"{name} is {value!r}: more than a century.", remedy=_EXAMPLES)
    return result


def describe(duration: timedelta) -> str:
    """In words that :func:`to_timedelta` reads back exactly: "10 min", "1 h 30 min", "500 ms"."""
    if duration < timedelta(0):
        return f"-{describe(-duration)}"
    if duration < timedelta(seconds=1) and duration and duration.microseconds % 1_000 == 0:
        return f"{duration.microseconds // 1_000} ms"
    minutes, seconds = divmod(duration.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = []
    if duration.days:
        parts.append(f"{duration.days} day{'' if duration.days == 1 else 's'}")
    if hours:
        parts.append(f"{hours} h")
    if minutes:
        parts.append(f"{minutes} min")
    if seconds or duration.microseconds or not parts:
        fraction = f".{duration.microseconds:06}".rstrip("0") if duration.microseconds else ""
        parts.append(f"{seconds}{fraction} s")
    return " ".join(parts)


def _parse(value: Duration, name: str) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        return _parse_words(value, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError(f"{name} is {value!r}: not a duration.", remedy=_EXAMPLES)
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigurationError(f"{name} is {value!r}: not a finite duration.", remedy=_EXAMPLES)
    try:
        return timedelta(seconds=value)
    except OverflowError:
        raise ConfigurationError(f"{name} is out of range for a duration.", remedy=_EXAMPLES) from None


def _parse_words(text: str, name: str) -> timedelta:
    lowered = text.strip().lower()
    if _NUMBER.fullmatch(lowered):
        lowered += " s"
    microseconds = Decimal(0)
    position = 0
    while position < len(lowered):
        term = _TERM.match(lowered, position)
        if term is None or term[2] not in _MICROSECONDS:
            break
        microseconds += Decimal(term[1]) * _MICROSECONDS[term[2]]
        position = term.end()
    if not lowered or position < len(lowered):
        raise ConfigurationError(f"{name} is {text!r}: not a duration.", remedy=_EXAMPLES)
    try:
        return timedelta(microseconds=int(microseconds.to_integral_value()))
    except OverflowError:
        raise ConfigurationError(
            f"{name} is {text!r}: out of range for a duration.", remedy=_EXAMPLES
        ) from None
