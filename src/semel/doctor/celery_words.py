"""What each finding about a Celery application means, by its code."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from semel.doctor import words
from semel.doctor.finding import Finding, Severity
from semel.doctor.words import Words

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
WORDS: Final[Mapping[str, Words]] = MappingProxyType(
    {
        "celery-nothing-guarded": Words(
            _WARNING,
            "No task is guarded: each runs as often as it is delivered.",
            "Guard those whose effect must not happen twice; and import their modules in the application.",
        ),
        "celery-eager": Words(
            _WARNING,
            "Tasks run in whoever calls them; an operation in progress is raised there, and nothing is delivered again.",
            "Set it in tests only.",
        ),
        "celery-visibility-place": Words(
            _WARNING,
            "The visibility time-out is set to different values, or where the broker's transport does not read it.",
            "Set it in broker_transport_options, and alike wherever else it is.",
        ),
        "celery-visibility-shared": Words(
            _NOTE,
            "Every application on the same broker database gives back everybody's messages by its own time-out: the shortest "
            "counts for all. Those of other applications cannot be seen from here.",
            "Set it alike in all of them, or give each a database (or a global_keyprefix) of its own.",
        ),
        "celery-deduplicates": Words(
            _NOTE,
            "It looks at redelivered messages whose result was stored, and at nothing else; the record decides.",
            "Nothing: it does no harm, and is no guard.",
        ),
        "celery-next-steps": Words(
            _NOTE,
            "A repeat succeeds, and so dispatches the links and the next step of its chain or chord again.",
            "Guard the steps that come after a guarded one too, or let them be harmless.",
        ),
        "celery-early-ack": Words(
            _WARNING,
            "A message is acknowledged before its task runs: a worker that is killed loses it. The operation stays claimed, "
            "and is listed as stale.",
            "acks_late=True, reject_on_worker_lost=True: the guard makes delivering again harmless.",
        ),
        "celery-worker-lost": Words(
            _WARNING,
            "Celery acknowledges the message of a prefork child that was killed: it is lost. The operation stays claimed, "
            "and is listed as stale.",
            "reject_on_worker_lost=True. A task that kills each of its workers is held after max_takeovers.",
        ),
        "celery-database-lost": Words(
            _WARNING,
            "While the guard's database is out of reach each task fails, and its message is gone: nothing delivers it again.",
            "autoretry_for=(semel.errors.DatabaseUnreachable,), retry_backoff=True, max_retries=None.",
        ),
        "celery-failure-rejects": Words(
            _NOTE,
            "A task that fails for good (held, another payload) has its message rejected: dropped, or dead-lettered.",
            "Nothing, where a dead-letter exchange takes them.",
        ),
        "celery-soft-limit": Words(
            _ERROR,
            "The hard limit kills the task before the soft one can end it.",
            "Set the soft limit some seconds below the hard one.",
        ),
        "celery-no-soft-limit": Words(
            _NOTE,
            "The hard limit kills without a word: the operation waits for the end of its lease.",
            "A soft limit some seconds before it lets the task say at once whether it had acted.",
        ),
        "celery-no-limit": Words(
            _WARNING,
            "Nothing ends a run that takes longer than was declared: its lease ends while it acts, and the next one gets the "
            "policy.",
            "Set time_limit below the lease (prefork only; elsewhere bound the outside call).",
        ),
        "celery-limit-over-lease": Words(
            _ERROR,
            "A run may outlive its lease: it is taken for dead while it acts.",
            "Lower time_limit, or raise the lease (and longest_run).",
        ),
        "celery-visibility-run": Words(
            _WARNING,
            "The broker delivers it again while it runs, each time that the time-out passes; the copies are told that it "
            "is in progress.",
            "Raise visibility_timeout over the longest run.",
        ),
        "celery-visibility-eta": Words(
            _WARNING,
            "What waits for its time is unacknowledged in a worker: it comes again each time that the time-out passes, and "
            "all copies start at once.",
            "Raise visibility_timeout over it, or keep far dates in a table of your own.",
        ),
        "celery-prefetch": Words(
            _WARNING,
            "Messages that a worker took in advance grow old in its memory, and come again before they have begun.",
            "worker_prefetch_multiplier=1.",
        ),
        "celery-recovery": Words(
            _NOTE,
            "When a whole worker is killed, its operation is stale after the lease, and nobody delivers it before the "
            "visibility time-out.",
            "Nothing; or a shorter time-out, still over the longest run and the farthest date.",
        ),
        "celery-retention": Words(
            _ERROR,
            "A copy may come when the record is gone, and acts again.",
            "Set keep= over the farthest date.",
        ),
        "celery-provider-window": Words(
            _WARNING,
            "The provider may have forgotten the key when the second attempt comes: what is uncertain goes to then=.",
            "A shorter visibility time-out or retry delay, or a longer window where the provider has one.",
        ),
        "celery-consumer-timeout": Words(
            _WARNING,
            "RabbitMQ closes the worker's channel and delivers all that it had again.",
            "Raise consumer_timeout in RabbitMQ over it (and tell this check: --consumer-timeout).",
        ),
    }
)


def find(code: str, subject: str, figure: str) -> Finding:
    """A finding, in its words."""
    return words.find(WORDS, code, subject, figure)
