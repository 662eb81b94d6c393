"""What a handler raises to choose its outcome, instead of returning or failing.

They are no errors: they derive from :class:`JobOutcome`, not from ``SemelError``, so that a handler's
``except SemelError`` lets them through. (A bare ``except Exception`` in a handler does catch them.)
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from semel.core.durations import Duration, to_timedelta
from semel.errors import ConfigurationError


class JobOutcome(Exception):
    """The root of the outcomes. ``reason`` goes to the job's record and the log."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by keyword, so that an outcome survives the way back from a process pool."""
        return partial(type(self), **self._fields()), ()

    def _fields(self) -> dict[str, Any]:
        return {"reason": self.reason}


class Retry(JobOutcome):
    """Run again at ``at`` or ``after`` a while; with neither, after the backoff of the job's policy.

    The attempt is charged: at ``max_attempts`` the job fails instead.
    """

    def __init__(
        self, *, at: datetime | None = None, after: Duration | None = None, reason: str = ""
    ) -> None:
        if at is not None and after is not None:
            raise ConfigurationError("Retry got both at= and after=.", remedy="Give one of them, or neither.")
        self.at = None if at is None else require_aware(at, name="Retry(at=…)")
        self.after: timedelta | None = None if after is None else to_timedelta(after, name="Retry(after=…)")
        super().__init__(reason)

    def _fields(self) -> dict[str, Any]:
        return {"at": self.at, "after": self.after, "reason": self.reason}


class Snooze(JobOutcome):
    """Not now: run again at ``until``, or when ``for_`` has passed. No attempt is charged."""

    def __init__(
        self, *, until: datetime | None = None, for_: Duration | None = None, reason: str = ""
    ) -> None:
        if (until is None) == (for_ is None):
            raise ConfigurationError(
                "Snooze needs exactly one of until= and for_=.", remedy='For example Snooze(for_="10 min").'
            )
        self.until = None if until is None else require_aware(until, name="Snooze(until=…)")
        self.for_: timedelta | None = None if for_ is None else to_timedelta(for_, name="Snooze(for_=…)")
        super().__init__(reason)

    def _fields(self) -> dict[str, Any]:
        return {"until": self.until, "for_": self.for_, "reason": self.reason}


class Cancel(JobOutcome):
    """The job is no longer wanted: it ends as ``cancelled``, without counting as a failure."""


class HoldForPerson(JobOutcome):
    """Nobody can tell from here whether the effect happened: the job is ``held`` until a person decides."""


def require_aware(value: datetime, *, name: str) -> datetime:
    """``value`` itself; a naive one, which names no instant, is refused under ``name``."""
    if not isinstance(value, datetime):
        raise ConfigurationError(f"{name} is {value!r}: not a datetime.")
    if value.utcoffset() is None:
        raise ConfigurationError(
            f"{name} is {value.isoformat()}, which has no time zone.",
            remedy="Give an aware one, such as datetime.now(UTC).",
        )
    return value
