"""Times as files have them: ISO 8601 and its relatives, web servers' logs, mail's dates, numbers since 1970."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Final

from semel.core.past import FIRST_MS, LAST_MS
from semel.core.zones import Zone
from semel.repeats.problems import Problems

UNITS: Final = MappingProxyType({"s": 1_000.0, "ms": 1.0, "us": 0.001, "ns": 0.000_001})
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{0,12})?")
_COMPACT = re.compile(r"(?:19|20)[0-9]{2}[01][0-9][0-3][0-9](?:[0-2][0-9][0-5][0-9][0-6][0-9])?")
_NAMED_ZONE = re.compile(r"\s*(?:UTC|GMT|Z)$", re.IGNORECASE)
_SPACED_ZONE = re.compile(r"\s+([+-][0-9]{2}:?[0-9]{2})$")
_MINUTE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}")
_REST = re.compile(r":[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})?")
_REMEMBERED: Final = 100_000
_USELESS: Final = 3
"""Emptied so often, what is remembered does not come again: times to the microsecond."""
_WEB_SERVER: Final = "%d/%b/%Y:%H:%M:%S %z"
_NAIVE_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001


class _Minutes(dict[str, int]):
    """2026-01-31T08:15, as if in UTC, in ms since 1970."""

    def __missing__(self, text: str) -> int:
        if not _MINUTE.fullmatch(text):
            raise ValueError("not of the usual form")
        if len(self) >= _REMEMBERED:
            self.clear()
        found = round((datetime.fromisoformat(text) - _NAIVE_EPOCH).total_seconds()) * 1_000
        self[text] = found
        return found


class _Rests(dict[str, int]):
    """:30.250+01:00, in ms, less the offset, which is always the same one; None where times have none."""

    def __init__(self, offset: timedelta | None, less: timedelta) -> None:
        super().__init__()
        self.offset = offset
        self._less = less
        self._emptied = 0

    def __missing__(self, text: str) -> int:
        if not _REST.fullmatch(text) or self._emptied > _USELESS:
            raise ValueError("not of the usual form")
        instant = datetime.fromisoformat(f"1970-01-01T00:00{text}")
        if instant.utcoffset() != self.offset:
            raise ValueError("in another zone")
        if len(self) >= _REMEMBERED:
            self.clear()
            self._emptied += 1
        found = round((instant.replace(tzinfo=None) - _NAIVE_EPOCH - self._less).total_seconds() * 1_000)
        self[text] = found
        return found


@dataclass(slots=True)
class Clock:
    """What the times of one file mean. It notes which have no zone, and which another one than the first."""

    problems: Problems
    zone: Zone | None = None
    unit: str | None = None
    format: str | None = None
    _first: tzinfo | None = field(default=None, init=False)
    _minutes: _Minutes = field(init=False)
    _rests: _Rests | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._minutes = _Minutes()

    def read(self, text: str, line: int) -> int:
        """Milliseconds since 1970. Raises ValueError for what is no time."""
        if self.unit is None and self.format is None:
            try:
                instant = datetime.fromisoformat(text)
            except ValueError:
                return self._read_other(text, line)
            if len(text) > 8 and not text.isdigit():
                return self._place(instant, line)
        return self._read_other(text, line)

    def read_block(self, texts: Sequence[str], first_line: int) -> list[int] | None:
        """Many at once, where all are of the most usual form and in the same zone as the first; else None.

        Such times share their minutes, and mostly the rest: each of both is worked out once.
        """
        minutes, rests = self._minutes, self._rests
        if rests is None:
            return None
        try:
            moments = [minutes[text[:16]] + rests[text[16:]] for text in texts]
        except ValueError:
            return None
        if rests.offset is None and self.zone is None:
            self.problems.add_many("no-zone", first_line, len(moments))
        return moments

    def _place(self, instant: datetime, line: int) -> int:
        zone = instant.tzinfo
        if zone is None:
            if self._rests is None and (self.zone is None or self.zone.offset is not None):
                self._rests = _Rests(
                    None, self.zone.offset if self.zone and self.zone.offset else timedelta(0)
                )
            if self.zone is None:
                self.problems.add("no-zone", line)
                return round((instant - _NAIVE_EPOCH).total_seconds() * 1_000)
            return round(instant.replace(tzinfo=self.zone.rules).timestamp() * 1_000)
        if zone is not self._first:
            if self._first is None:
                self._first = zone
                offset = zone.utcoffset(None)
                if self._rests is None and offset is not None and self.unit is None and self.format is None:
                    self._rests = _Rests(offset, offset)
            elif zone != self._first:
                self.problems.add("other-zone", line, str(zone))
        return round(instant.timestamp() * 1_000)

    def _read_other(self, text: str, line: int) -> int:
        text = text.strip()
        if self.format is not None:
            return self._place(datetime.strptime(text, self.format), line)  # noqa: DTZ007
        if _NUMBER.fullmatch(text) and (self.unit is not None or not _COMPACT.fullmatch(text)):
            return _from_number(text, self.unit)
        if self.unit is not None:
            raise ValueError("no number")
        return self._place(_from_words(text), line)


def _from_number(text: str, unit: str | None) -> int:
    """Without a unit, by its size: seconds until the year 5138, then milliseconds, microseconds, nanoseconds."""
    if unit is None:
        size = len(text.partition(".")[0])
        unit = "s" if size <= 11 else "ms" if size <= 14 else "us" if size <= 17 else "ns"
    whole, _, fraction = text.partition(".")
    places = {"s": 3, "ms": 0, "us": -3, "ns": -6}[unit]
    digits = whole + (fraction + "0000")[: max(places, 0) + 1] if places >= 0 else whole
    tens = len(digits) - len(whole) - places
    number = int(digits)
    milliseconds: int = (number + 10**tens // 2) // 10**tens if tens > 0 else number * 10**-tens
    if not FIRST_MS <= milliseconds < LAST_MS:
        raise ValueError("beyond what a date can be")
    return milliseconds


def _from_words(text: str) -> datetime:
    """What is close to ISO 8601, or as web servers and mail write it."""
    if "/" in text[:11] and ":" in text:
        if text[4:5] == "/" and text[7:8] == "/":
            text = f"{text[:4]}-{text[5:7]}-{text[8:]}"
        else:
            return datetime.strptime(text.strip("[]"), _WEB_SERVER)  # noqa: DTZ007
    if text.isdigit() and len(text) == 14:
        return datetime.strptime(text, "%Y%m%d%H%M%S")  # noqa: DTZ007
    if text[:1].isalpha():
        try:
            return parsedate_to_datetime(text)
        except (TypeError, IndexError) as error:
            raise ValueError("no date") from error
    return datetime.fromisoformat(_SPACED_ZONE.sub(r"\1", _NAMED_ZONE.sub("+00:00", text)))
