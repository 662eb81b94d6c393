"""What is checked of an application of the semel queue, and of any guarded function: pure functions over declarations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from semel.core.durations import describe, to_timedelta
from semel.core.effects import AcceptDuplicate, AcceptMiss, Effect, Hold, Lookup, ProviderKey, Row
from semel.core.measured import Runs
from semel.core.settings import Settings
from semel.doctor.application_words import WORDS
from semel.doctor.finding import Finding
from semel.doctor.words import find

_SHORT: Final = timedelta(seconds=10)
_NOTHING: Final[Mapping[str, Runs]] = MappingProxyType({})
_DELIVERY: Final = re.compile(
    r"(^|_)(attempt|retry|retries|message_id|msg_id|receipt|task_id|jid|trace|trace_id|request_id|"
    r"offset|now|timestamp|nonce|random)(_|$)"
)
_PERSONAL: Final = re.compile(
    r"(^|_)(e?mail|email_address|phone|mobile|msisdn|iban|ssn|passport|first_name|last_name|birth|birthday|"
    r"card_number|pan)(_|$)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardNumbers:
    """One guarded function, on whatever queue."""

    name: str
    """The job type."""
    effect: Effect
    lease: timedelta
    longest_run: timedelta
    extend: bool = False
    explicit: bool = True
    keep: timedelta = timedelta(days=90)
    key_fields: tuple[str, ...] = ()
    """The names that the key is made of, as far as they are known."""
    secret: bool = False
    label: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNumbers:
    """One job of the application."""

    kind: str
    guard: GuardNumbers | None = None
    in_transaction: bool = False
    timeout: timedelta | None = timedelta(minutes=5)
    retries: timedelta = timedelta(0)
    """From the first attempt to the last, when each fails, with the longest waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationNumbers:
    """One application."""

    settings: Settings = field(default_factory=Settings)
    jobs: tuple[JobNumbers, ...] = ()


def check_application(app: ApplicationNumbers, measured: Mapping[str, Runs] = _NOTHING) -> list[Finding]:
    """All that is found of an application; ``measured`` is what its database says of runs, by job type."""
    found = [*_settings(app)]
    for job in app.jobs:
        if job.guard is not None:
            found += [
                *check_guard(job.guard),
                *_job(job, job.guard),
                *_retention(app.settings, job, job.guard),
                *_measured(app.settings, job.guard, measured.get(job.guard.name)),
            ]
    return found


def check_guard(guard: GuardNumbers) -> Iterator[Finding]:
    """What is wrong with a declaration by itself."""
    for name in guard.key_fields:
        if _DELIVERY.search(name):
            yield find(WORDS, "app-delivery-key", guard.name, f"key {name}")
        if _PERSONAL.search(name) and not guard.secret:
            yield find(
                WORDS, "app-personal-key", guard.name, f"key {name}, label {'on' if guard.label else 'off'}"
            )
    if not guard.explicit and not isinstance(guard.effect, Row):
        yield find(WORDS, "app-from-start", guard.name, 'acting="from_start"')
    yield from _effect(guard)


def _effect(guard: GuardNumbers) -> Iterator[Finding]:
    effect = guard.effect
    match effect:
        case ProviderKey(window=window, then=then):
            if window <= guard.lease + guard.longest_run:
                figure = (
                    f"valid_for {describe(window)}, lease {describe(guard.lease)}, longest run "
                    f"{describe(guard.longest_run)}"
                )
                yield find(WORDS, "app-provider-window", guard.name, figure)
            effect = then
        case Row() | Hold() | Lookup() | AcceptDuplicate() | AcceptMiss():
            pass
    if isinstance(effect, Lookup):
        settle = to_timedelta(effect.settle, name="settle")
        if settle < timedelta(seconds=1):
            yield find(WORDS, "app-settle-short", guard.name, f"settle {describe(settle)}")


def measured_past(guard: GuardNumbers, runs: Runs | None) -> Iterator[Finding]:
    """Where measured runs are longer than the lease is kept for; a `Row()` has none that counts."""
    if runs is None or isinstance(guard.effect, Row):
        return
    holds = guard.longest_run if guard.extend else guard.lease
    if runs.longest > holds:
        what = "longest_run" if guard.extend else "lease"
        figure = f"longest of {runs.count} runs {describe(runs.longest)}, {what} {describe(holds)}"
        yield find(WORDS, "app-measured-run", guard.name, figure)


def _settings(app: ApplicationNumbers) -> Iterator[Finding]:
    if app.settings.lease < _SHORT:
        yield find(WORDS, "app-lease-short", "the application", f"lease {describe(app.settings.lease)}")
    bare = [job.kind for job in app.jobs if job.guard is None and not job.in_transaction]
    if bare:
        figure = f"{len(bare)} of {len(app.jobs)} jobs: {_some(bare)}"
        yield find(WORDS, "app-not-guarded", "the application", figure)


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")


def _job(job: JobNumbers, guard: GuardNumbers) -> Iterator[Finding]:
    if isinstance(guard.effect, Row):
        return
    if job.timeout is None:
        figure = f"no time-out; longest run {describe(guard.longest_run)}"
        yield find(WORDS, "app-no-timeout", job.kind, figure)
    if isinstance(guard.effect, ProviderKey):
        window = guard.effect.window
        if job.retries > window:
            figure = f"retries for {describe(job.retries)}, valid_for {describe(window)}"
            yield find(WORDS, "app-provider-retries", job.kind, figure)


def _retention(settings: Settings, job: JobNumbers, guard: GuardNumbers) -> Iterator[Finding]:
    if guard.keep <= job.retries:
        figure = f"records {describe(guard.keep)}, retries for {describe(job.retries)}"
        yield find(WORDS, "app-retention-retries", job.kind, figure)
    elif guard.keep <= settings.keep_failed + job.retries:
        figure = (
            f"records {describe(guard.keep)}, failed jobs {describe(settings.keep_failed)} and retries for "
            f"{describe(job.retries)}"
        )
        yield find(WORDS, "app-retention-failed", job.kind, figure)


def _measured(settings: Settings, guard: GuardNumbers, runs: Runs | None) -> Iterator[Finding]:
    yield from measured_past(guard, runs)
    if runs is not None and not isinstance(guard.effect, Row) and runs.longest > settings.stop_grace:
        figure = f"longest of {runs.count} runs {describe(runs.longest)}, stop_grace {describe(settings.stop_grace)}"
        yield find(WORDS, "app-measured-stop", guard.name, figure)
