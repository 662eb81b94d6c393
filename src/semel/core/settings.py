"""The numbers that hold where nothing else is said; every one can be set per application, most per queue or job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from semel.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an application runs with. All durations are on the database's clock where they decide anything."""

    lease: timedelta = timedelta(seconds=60)
    timeout: timedelta = timedelta(minutes=5)
    timeout_grace: timedelta = timedelta(seconds=10)
    """How long a handler may ignore its time-out before its process is stopped for it."""
    max_attempts: int = 8
    max_crashes: int = 3
    concurrency: int = 20
    stop_grace: timedelta = timedelta(seconds=30)
    poll: timedelta = timedelta(seconds=1)
    """How often an idle worker looks where it cannot hear of new jobs, such as behind a pooler."""
    quiet_poll: timedelta = timedelta(seconds=10)
    """How often it looks where it hears of them; at most a sixth of the lease."""
    keep_done: timedelta = timedelta(days=3)
    """For done and cancelled jobs; whole days, since the history ends a day at a time."""
    keep_failed: timedelta = timedelta(days=30)
    keep_ticks: timedelta = timedelta(days=90)
    keep_operations: timedelta = timedelta(days=90)
    """For completed operations: how long a repeat is still known. Claimed and held ones never expire."""
    keep_released: timedelta = timedelta(days=365)
    """For released operations that nobody claims again."""
    keep_events: timedelta = timedelta(days=365)
    """For the record of what people did to jobs, and for the history of operations that are gone."""
    payload_limit: int = 64 * 1024
    """Bytes of JSON, for a payload and for a result."""
    flush_delay: timedelta = timedelta(milliseconds=5)
    flush_size: int = 1000
    prefetch: int = 2000
    """The most claimed jobs a child holds that have not started; it prefetches what it can start in a moment."""

    def __post_init__(self) -> None:
        if self.keep_ticks < timedelta(days=1):
            raise ConfigurationError(
                "keep_ticks is under a day: a tick that is forgotten could be caught up a second time.",
                remedy="Give a day or more; the default is 90 days.",
            )
