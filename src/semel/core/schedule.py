"""When a recurring job is due: cron expressions in a time zone, and fixed intervals.

The rule for daylight saving (docs/adr/0003-daylight-saving.md): an expression with fixed hours runs once per
matching wall-clock time: at the first valid instant if that time is skipped, and the first time if it comes
twice. One whose hour field covers every hour runs at every instant whose wall clock matches, by elapsed time.

The library walks naive wall-clock times only; the mapping to instants is done here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from semel.core.durations import Duration, to_timedelta
from semel.core.outcomes import require_aware
from semel.errors import ConfigurationError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_STRIDE: Final = timedelta(days=1)
"""Two changes of one zone's offset are further apart than this."""

_EXAMPLE: Final = (
    "Write five fields (minute hour day month weekday), or six with seconds first; "
    'for example "30 3 * * mon-fri".'
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A named series of ticks. Give a cron ``expression`` or an interval, ``every``.

    ``tz`` is the IANA zone of the expression. Intervals are counted from 1970-01-01T00:00Z, so that every
    replica has the same ticks. All results are UTC; the ticks of an expression fall on whole seconds.
    """

    name: str
    expression: str | None = None
    every: Duration | None = None
    tz: str = "UTC"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ConfigurationError(f"A schedule has the name {self.name!r}: give a non-empty string.")
        if (self.expression is None) == (self.every is None):
            raise ConfigurationError(
                f"Schedule {self.name!r} needs exactly one of expression and every.", remedy=_EXAMPLE
            )
        _check_zone(self.tz, self.name)
        if self.expression is not None:
            object.__setattr__(self, "expression", _check_expression(self.expression, self.name))
        if self.every is not None:
            every = to_timedelta(self.every, name=f"every= of schedule {self.name!r}")
            if every < _SECOND:
                raise ConfigurationError(f"every= of schedule {self.name!r} is shorter than a second.")
            object.__setattr__(self, "every", every)

    def next_tick(self, after: datetime) -> datetime:
        """The first tick strictly after ``after``, in UTC.

        Raises ConfigurationError where there is none before the year 10000.
        """
        instant = _utc(after, "after")
        try:
            if self.every is not None:
                every = to_timedelta(self.every, name="every")
                return _EPOCH + ((instant - _EPOCH) // every + 1) * every
            tick = self._walk().next(instant)
        except OverflowError:
            tick = None
        if tick is None:
            raise ConfigurationError(f"Schedule {self.name!r} has no tick after {instant.isoformat()}.")
        return tick

    def latest_tick(self, at: datetime) -> datetime | None:
        """The last tick at or before ``at``, in UTC; None where there was none."""
        instant = _utc(at, "at")
        try:
            if self.every is not None:
                every = to_timedelta(self.every, name="every")
                return _EPOCH + ((instant - _EPOCH) // every) * every
            return self._walk().latest(instant)
        except OverflowError:
            return None

    def ticks_between(self, after: datetime, until: datetime, limit: int) -> tuple[datetime, ...]:
        """The ticks in (after, until], the oldest first, and of these the first ``limit``."""
        end = _utc(until, "until")
        ticks: list[datetime] = []
        position = _utc(after, "after")
        while len(ticks) < limit and position < end:
            position = self.next_tick(position)
            if position <= end:
                ticks.append(position)
        return tuple(ticks)

    def _walk(self) -> _EveryHour | _FixedHours:
        expression = self.expression or ""
        zone = ZoneInfo(self.tz)
        return (_EveryHour if _covers_every_hour(expression) else _FixedHours)(expression, zone)


@dataclass(frozen=True, slots=True)
class _FixedHours:
    """One tick per matching wall-clock time. The mapping to instants never goes back, so a walk is enough."""

    expression: str
    zone: ZoneInfo

    def next(self, after: datetime) -> datetime | None:
        for wall in CronSim(self.expression, _wall(after, self.zone)):
            instant = self._instant(wall)
            if instant > after:
                return instant
        return None

    def latest(self, at: datetime) -> datetime | None:
        for wall in _backwards(self.expression, self._latest_wall(at)):
            instant = self._instant(wall)
            if instant <= at:
                return instant
        return None

    def _instant(self, wall: datetime) -> datetime:
        """The first instant that shows ``wall``; in a gap, the instant that the gap ends at."""
        local = wall.replace(tzinfo=self.zone)
        instant = local.astimezone(UTC)
        if _wall(instant, self.zone) == wall:
            return instant
        # In a gap fold=0 takes the offset before the change and lands after it, fold=1 the other way round.
        before = local.replace(fold=1).astimezone(UTC)
        return _change(self.zone, before, instant)

    def _latest_wall(self, at: datetime) -> datetime:
        """The latest wall-clock time that was shown by ``at``, even if the clock has been put back since."""
        local = at.astimezone(self.zone)
        shown = local.replace(tzinfo=None, fold=0)
        if not local.fold:
            return shown
        first = local.replace(fold=0).utcoffset() or timedelta(0)
        second = local.utcoffset() or timedelta(0)
        return shown + (first - second)


@dataclass(frozen=True, slots=True)
class _EveryHour:
    """A tick at each instant whose wall clock matches. Between two changes of the offset, plain counting."""

    expression: str
    zone: ZoneInfo

    def next(self, after: datetime) -> datetime | None:
        position = after.replace(microsecond=0)
        while wall := next(CronSim(self.expression, _wall(position, self.zone)), None):
            tick = (wall - _offset(self.zone, position)).replace(tzinfo=UTC)
            change = self._first_change(position, tick)
            if change is None:
                return tick
            position = change
            if self._matches(position):
                return position
        return None

    def latest(self, at: datetime) -> datetime | None:
        position = at.replace(microsecond=0)
        while wall := next(_backwards(self.expression, _wall(position, self.zone)), None):
            tick = (wall - _offset(self.zone, position)).replace(tzinfo=UTC)
            change = self._last_change(tick, position)
            if change is None:
                return tick
            position = change - _SECOND
        return None

    def _matches(self, instant: datetime) -> bool:
        wall = _wall(instant, self.zone)
        return next(CronSim(self.expression, wall - _SECOND)) == wall

    def _first_change(self, start: datetime, end: datetime) -> datetime | None:
        """The first change of the offset in (start, end]."""
        while start < end:
            stop = min(start + _STRIDE, end)
            if _offset(self.zone, stop) != _offset(self.zone, start):
                return _change(self.zone, start, stop)
            start = stop
        return None

    def _last_change(self, start: datetime, end: datetime) -> datetime | None:
        """The last change of the offset in (start, end]."""
        while start < end:
            stop = max(end - _STRIDE, start)
            if _offset(self.zone, stop) != _offset(self.zone, end):
                return _change(self.zone, stop, end)
            end = stop
        return None


def _utc(value: datetime, name: str) -> datetime:
    return require_aware(value, name=name).astimezone(UTC)


def _wall(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The instant in (before, after] at which the zone's one change of offset takes hold."""
    old = _offset(zone, before)
    low, high = 0, int((after - before) / _SECOND)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, before + middle * _SECOND) == old:
            low = middle
        else:
            high = middle
    return before + high * _SECOND


def _backwards(expression: str, wall: datetime) -> Iterator[datetime]:
    """The matching wall-clock times at or before ``wall``, the latest first."""
    return CronSim(expression, wall.replace(microsecond=0) + _SECOND, reverse=True)


def _covers_every_hour(expression: str) -> bool:
    return len(CronSim(expression, _EPOCH.replace(tzinfo=None)).hours) == 24


def _check_zone(tz: str, name: str) -> None:
    try:
        ZoneInfo(tz)
    except Exception as error:  # by the text: a missing key, a bad one, a directory, no text at all
        raise ConfigurationError(
            f"Schedule {name!r} has the time zone {tz!r}, which is unknown here.",
            remedy='Give an IANA name, for example "Europe/London".',
        ) from error


def _check_expression(expression: str, name: str) -> str:
    """The expression with single spaces, if it can be read and fires within 50 years of 1970."""
    try:
        tidy = " ".join(expression.split())
        next(CronSim(tidy, _EPOCH.replace(tzinfo=None)))
    except StopIteration:
        problem = "which never fires"
    except CronSimError as error:
        problem = f"which cannot be read ({error})"
    except Exception:  # the parser lets some slips through as assertions, type or value errors
        problem = "which cannot be read"
    else:
        return tidy
    raise ConfigurationError(
        f"Schedule {name!r} has the expression {expression!r}, {problem}.", remedy=_EXAMPLE
    )
