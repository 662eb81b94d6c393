"""Zones as people write them: a name such as Europe/London, or an offset such as +02:00."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from semel.errors import ConfigurationError

_OFFSET = re.compile(r"([+-])([01][0-9]):?([0-5][0-9])")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone, and as which text a database knows it. The text is safe between quotes."""

    name: str
    rules: tzinfo
    offset: timedelta | None
    """Where it is the same all year, and was written so."""


UTC_ZONE: Final = Zone("+00:00", UTC, timedelta(0))


def to_zone(text: str, *, name: str = "--zone") -> Zone:
    """The zone that ``text`` names."""
    offset = _OFFSET.fullmatch(text)
    if offset is not None:
        sign = -1 if offset[1] == "-" else 1
        shift = sign * timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return Zone(f"{offset[1]}{offset[2]}:{offset[3]}", timezone(shift), shift)
    if text.upper() in ("UTC", "Z", "GMT"):
        return UTC_ZONE
    try:
        if _NAME.fullmatch(text) is None:
            raise ValueError
        return Zone(text, ZoneInfo(text), None)
    except (ValueError, KeyError, OSError):
        raise ConfigurationError(
            f"{name} is {text!r}: no zone of that name.",
            remedy="Write a name such as Europe/London, or an offset such as +02:00.",
        ) from None
