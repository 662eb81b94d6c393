"""What each finding about Sidekiq means, by its code."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from semel.doctor.finding import Severity
from semel.doctor.words import Words

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
WORDS: Final[Mapping[str, Words]] = MappingProxyType(
    {
        "sidekiq-eviction": Words(
            _WARNING,
            "A Redis that is full throws jobs away, waiting and scheduled ones too, without a word.",
            "maxmemory-policy noeviction, on a Redis that is no cache.",
        ),
        "sidekiq-persistence": Words(
            _WARNING,
            "A restart of Redis loses every job. The operations that were claimed stay, and are listed as stale.",
            "appendonly yes (appendfsync everysec loses a second), or a Redis that persists.",
        ),
        "sidekiq-not-visible": Words(
            _NOTE,
            "Redis does not show its configuration to this user: whether it persists could not be checked in full.",
            "Look at it where it is managed.",
        ),
        "sidekiq-redis-version": Words(
            _ERROR, "Sidekiq does not run on so old a Redis.", "Redis 6.2 for Sidekiq 7, 7.0 for Sidekiq 8."
        ),
        "sidekiq-version": Words(
            _WARNING, "The gem's tests run on Sidekiq 6.4 to 8.1.", "Upgrade Sidekiq; or try it on staging."
        ),
        "sidekiq-time-out-over-lease": Words(
            _WARNING,
            "A job may run on through a shutdown for longer than its claim holds: its lease ends while it acts.",
            "A lease: over the shutdown's :timeout:, or extend: true.",
        ),
        "sidekiq-time-out-under-run": Words(
            _NOTE,
            "A deploy interrupts a run of that length, and pushes the job again: inside its outside call that is uncertain.",
            "Raise :timeout: over the longest run, and the platform's own grace over that.",
        ),
        "sidekiq-retries-past-records": Words(
            _ERROR,
            "A retry comes when the record is deleted: the operation acts again.",
            "Raise keep: over the retries, or lower retry: (:max_retries:).",
        ),
        "sidekiq-provider-window": Words(
            _WARNING,
            "The provider may have forgotten the key when the last retries come: what is uncertain goes to then:.",
            "Lower retry: (:max_retries:) to what fits; or a longer window, where the provider has one, or "
            "then: Lookup.new(…).",
        ),
        "sidekiq-scheduled-past-records": Words(
            _ERROR,
            "A job comes when the record of its operation may be deleted: a repeat of it acts again.",
            "Raise keep: over the farthest date, or keep far dates in a table of your own.",
        ),
        "sidekiq-dead-past-records": Words(
            _WARNING,
            "Somebody retries a dead job whose record is deleted: the operation acts again.",
            "Raise keep: over dead_timeout_in_seconds (180 days), or shorten that.",
        ),
        "sidekiq-dead-kept": Words(
            _NOTE,
            "A dead job outlives the record of its operation: retried by hand then, it acts again.",
            "Raise keep: over dead_timeout_in_seconds (180 days), or shorten that.",
        ),
        "sidekiq-lost-in-flight": Words(
            _WARNING,
            "Their process is gone, and the basic fetch never gives them back: the work is lost, or its operation is stale.",
            "semel operations stale; a reliable fetch (super_fetch) gives them back.",
        ),
        "sidekiq-in-flight-over-lease": Words(
            _WARNING,
            "A job runs for longer than its claim holds, unless it extends it: a live run is taken for dead.",
            "Raise lease:, or extend: true; tell this check: --lease.",
        ),
        "sidekiq-not-read": Words(
            _NOTE,
            "Ruby in the file is not run here: a value was left out of the checks.",
            "Say the values that count, or read the checks with that in mind.",
        ),
    }
)
