"""What is checked of Sidekiq: pure functions over its configuration and its Redis (docs/doctor.md has each code)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from semel.core.durations import describe
from semel.doctor import words
from semel.doctor.finding import Finding
from semel.doctor.sidekiq_words import WORDS

RETRIES: Final = 25
"""Sidekiq's own, unless a job or the configuration says otherwise."""
DEAD: Final = timedelta(days=180)
"""How long a dead job is kept unless it is set."""
_REDIS: Final = MappingProxyType({7: (6, 2), 8: (7, 0)})
_TESTED: Final = ((6, 4), (8, 1))


@dataclass(frozen=True, slots=True)
class InFlight:
    """A job that a process took."""

    job_class: str
    since: timedelta
    process: str
    alive: bool
    """Whether its process still sends signs of life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisNumbers:
    """What the Redis says."""

    version: tuple[int, ...] = (7, 2)
    eviction: str = "noeviction"
    persists: bool | None = True
    """None where it does not say."""
    sidekiq_version: tuple[int, ...] | None = None
    scheduled: int = 0
    farthest: timedelta | None = None
    """How far ahead the latest scheduled job is due."""
    most_retries: int | None = None
    """The largest retry limit among the jobs that wait for a retry."""
    oldest_dead: timedelta | None = None
    in_flight: tuple[InFlight, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SidekiqNumbers:
    """One set-up."""

    timeout: timedelta = timedelta(seconds=25)
    """Of a shutdown."""
    max_retries: int = RETRIES
    unread: tuple[str, ...] = ()
    """Settings whose values are Ruby."""
    lease: timedelta = timedelta(seconds=60)
    longest_run: timedelta | None = None
    valid_for: timedelta | None = None
    """Of a `ProviderKey`."""
    extends: bool = False
    keep: timedelta = timedelta(days=90)
    dead_kept: timedelta = DEAD
    redis: RedisNumbers | None = None


def retry_horizon(retries: int) -> timedelta:
    """From the first failure to the last retry, at the latest: each wait is count⁴ + 15 s, and up to 10 s times the count."""
    return timedelta(seconds=sum(count**4 + 15 + 9 * (count + 1) for count in range(min(retries, 1000))))


def check_sidekiq(numbers: SidekiqNumbers) -> list[Finding]:
    """All that is found of it."""
    found = [*_configuration(numbers)]
    if numbers.redis is not None:
        found += [*_redis(numbers.redis), *_sets(numbers, numbers.redis), *_in_flight(numbers, numbers.redis)]
    return found


def _find(code: str, subject: str, figure: str) -> Finding:
    return words.find(WORDS, code, subject, figure)


def _configuration(numbers: SidekiqNumbers) -> Iterator[Finding]:
    what = "the configuration"
    if numbers.unread:
        yield _find("sidekiq-not-read", what, ", ".join(numbers.unread))
    if numbers.timeout > numbers.lease and not numbers.extends:
        figure = f"shutdown {describe(numbers.timeout)}, lease {describe(numbers.lease)}"
        yield _find("sidekiq-time-out-over-lease", what, figure)
    if numbers.longest_run is not None and numbers.longest_run > numbers.timeout:
        figure = f"longest run {describe(numbers.longest_run)}, shutdown {describe(numbers.timeout)}"
        yield _find("sidekiq-time-out-under-run", what, figure)
    if numbers.dead_kept > numbers.keep:
        figure = f"dead jobs are kept for {describe(numbers.dead_kept)}, records for {describe(numbers.keep)}"
        yield _find("sidekiq-dead-kept", "the dead set", figure)
    told = numbers.redis.most_retries if numbers.redis is not None else None
    retries = max(numbers.max_retries, told or 0)
    horizon = retry_horizon(retries)
    if horizon >= numbers.keep:
        figure = (
            f"{retries} retries take up to {_days(horizon)}, records are kept for {describe(numbers.keep)}"
        )
        yield _find("sidekiq-retries-past-records", what, figure)
    if numbers.valid_for is not None:
        yield from _provider(numbers.valid_for, numbers.longest_run or timedelta(0), retries)


def _provider(window: timedelta, run: timedelta, retries: int) -> Iterator[Finding]:
    """Whether the outside system still knows a key at the last retry; and how many retries it would know it for."""
    if window > retry_horizon(retries) + run:
        return
    fit = next((count for count in range(retries, -1, -1) if retry_horizon(count) + run < window), None)
    figure = f"valid_for {describe(window)}, {retries} retries take up to {_days(retry_horizon(retries))}"
    enough = ": it is over within the first run" if fit is None else f": {fit} fit"
    yield _find("sidekiq-provider-window", "the configuration", figure + enough)


def _redis(redis: RedisNumbers) -> Iterator[Finding]:
    if redis.eviction != "noeviction":
        yield _find("sidekiq-eviction", "Redis", f"maxmemory-policy {redis.eviction}")
    if redis.persists is False:
        yield _find("sidekiq-persistence", "Redis", "neither appendonly nor save is set")
    if redis.persists is None:
        yield _find("sidekiq-not-visible", "Redis", "CONFIG GET is refused")
    version = redis.sidekiq_version
    if version is None:
        return
    shown = ".".join(map(str, version))
    if not _TESTED[0] <= version[:2] <= _TESTED[1]:
        yield _find("sidekiq-version", "Sidekiq", shown)
    needed = _REDIS.get(version[0])
    if needed is not None and redis.version[:2] < needed:
        yield _find("sidekiq-redis-version", "Redis", f"{'.'.join(map(str, redis.version))}, Sidekiq {shown}")


def _sets(numbers: SidekiqNumbers, redis: RedisNumbers) -> Iterator[Finding]:
    kept = f"records are kept for {describe(numbers.keep)}"
    if redis.farthest is not None and redis.farthest > numbers.keep:
        figure = f"{redis.scheduled} scheduled, the farthest in {_days(redis.farthest)}; {kept}"
        yield _find("sidekiq-scheduled-past-records", "the scheduled set", figure)
    if redis.oldest_dead is not None and redis.oldest_dead > numbers.keep:
        yield _find(
            "sidekiq-dead-past-records",
            "the dead set",
            f"the oldest is {_days(redis.oldest_dead)} old; {kept}",
        )


def _in_flight(numbers: SidekiqNumbers, redis: RedisNumbers) -> Iterator[Finding]:
    for job in redis.in_flight:
        since = describe(timedelta(seconds=round(job.since.total_seconds())))
        if not job.alive:
            yield _find(
                "sidekiq-lost-in-flight", job.job_class, f"taken {since} ago by {job.process}, which is gone"
            )
        elif job.since > numbers.lease and not numbers.extends:
            figure = f"running for {since}, lease {describe(numbers.lease)}"
            yield _find("sidekiq-in-flight-over-lease", job.job_class, figure)


def _days(duration: timedelta) -> str:
    return describe(timedelta(days=duration.days) if duration.days else duration)
