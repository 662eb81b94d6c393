"""Times as files have them: ISO 8601 and its relatives, web servers' logs, mail's dates, numbers since 1970."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
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
_PARTED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?![0-9])")
_REMEMBERED: Final = 200_000
_NOTHING: Final = timedelta(0)
_MILLISECOND: Final = timedelta(milliseconds=1)
_WEB_SERVER: Final = "%d/%b/%Y:%H:%M:%S %z"


@dataclass(slots=True)
class Clock:
    """What the times of one file mean. It notes which have no zone, and which another one than the first."""

    problems: Problems
    zone: Zone | None = None
    unit: str | None = None
    format: str | None = None
    _first: tzinfo | None = field(default=None, init=False)
    _minutes: dict[str, int] = field(default_factory=dict, init=False)
    _rests: dict[str, int] = field(default_factory=dict, init=False)

    def read(self, text: str, line: int) -> int:
        """Milliseconds since 1970. Raises ValueError for what is no time.

        Most times of a file share their minute, and much of the rest: both are looked up before they are worked out.
        """
        try:
            return self._minutes[text[:16]] + self._rests[text[16:]]
        except KeyError:
            return self._work_out(text, line)

    def _work_out(self, text: str, line: int) -> int:
        if self.unit is None and self.format is None:
            try:
                instant = datetime.fromisoformat(text)
            except ValueError:
                return self._read_other(text, line)
            if len(text) > 8 and not text.isdigit():
                return self._place(instant, line, text)
        return self._read_other(text, line)

    def _place(self, instant: datetime, line: int, text: str = "") -> int:
        zone = instant.tzinfo
        if zone is None:
            if self.zone is None:
                self.problems.add("no-zone", line)
                return round((instant - _NAIVE_EPOCH).total_seconds() * 1_000)
            return round(instant.replace(tzinfo=self.zone.rules).timestamp() * 1_000)
        first = self._first
        if zone is not first:
            if first is None:
                self._first = zone
            elif zone != first:
                self.problems.add("other-zone", line, str(zone))
        if text:
            self._remember(text, instant)
        return round(instant.timestamp() * 1_000)

    def _remember(self, text: str, instant: datetime) -> None:
        """The minute as if in UTC, and the seconds less the offset, where nothing is to be noted of the zone."""
        if instant.tzinfo != self._first or not _PARTED.match(text):
            return
        seconds = timedelta(seconds=instant.second, microseconds=instant.microsecond) - (
            instant.utcoffset() or _NOTHING
        )
        minute = instant.replace(second=0, microsecond=0, tzinfo=UTC)
        if len(self._minutes) < _REMEMBERED:
            self._minutes[text[:16]] = round(minute.timestamp()) * 1_000
        if len(self._rests) < _REMEMBERED:
            self._rests[text[16:]] = round(seconds / _MILLISECOND)

    def _read_other(self, text: str, line: int) -> int:
        text = text.strip()
        if self.format is not None:
            return self._place(datetime.strptime(text, self.format), line)  # noqa: DTZ007
        if _NUMBER.fullmatch(text) and (self.unit is not None or not _COMPACT.fullmatch(text)):
            return _from_number(text, self.unit)
        if self.unit is not None:
            raise ValueError("no number")
        return self._place(_from_words(text), line)


_NAIVE_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001


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
    if text[:1].isalpha():
        try:
            return parsedate_to_datetime(text)
        except (TypeError, IndexError) as error:
            raise ValueError("no date") from error
    return datetime.fromisoformat(_SPACED_ZONE.sub(r"\1", _NAMED_ZONE.sub("+00:00", text)))
