"""An SQS queue's attributes against what the functions declare that consume it. Pure: whoever has both asks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from semel.adapters.sqs.consumer import Consumer
from semel.adapters.sqs.settings import QueueSettings
from semel.core.durations import describe
from semel.core.effects import ProviderKey
from semel.doctor.finding import Finding, Severity
from semel.guard.guarded import Guarded

_LONGEST: Final = timedelta(hours=12)
_SHORT: Final = timedelta(seconds=10)
_LONG: Final = timedelta(minutes=15)
_LAMBDA_TIMES: Final = 6
"""What AWS recommends: the queue's visibility time-out over the function's time-out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNumbers:
    """What one guarded function declares."""

    name: str
    lease: timedelta
    longest_run: timedelta
    max_unsure: int = 3
    keeps_message: bool = True
    keep: timedelta = timedelta(days=90)
    """How long its records are kept."""
    valid_for: timedelta | None = None
    """Of a `ProviderKey`."""

    @classmethod
    def of(cls, guarded: Guarded[..., Any]) -> JobNumbers:
        """Of a guarded function."""
        declared = guarded.declaration
        return cls(
            name=declared.job_type,
            lease=declared.lease,
            longest_run=declared.longest_run,
            max_unsure=declared.limits.max_unsure,
            keeps_message=declared.keep_message,
            keep=declared.keep,
            valid_for=declared.effect.window if isinstance(declared.effect, ProviderKey) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Consuming:
    """Who consumes a queue."""

    jobs: Sequence[JobNumbers] = ()
    unguarded: Sequence[str] = ()
    """Names of functions without a guard."""
    visibility: timedelta | None = None
    """Where the consumer sets its own, instead of the queue's."""
    extends: bool = True
    """Whether the visibility is extended while a function runs: a `Consumer` or an `Inbox` does."""
    batch: int = 10
    """Messages that one receive brings."""
    function_time_out: timedelta | None = None
    """For Lambda: the function's own."""

    @classmethod
    def of(cls, consumer: Consumer) -> Consuming:
        """Of a consumer."""
        functions = consumer.semel_functions
        return cls(
            jobs=[JobNumbers.of(each) for each in functions if isinstance(each, Guarded)],
            unguarded=[
                getattr(each, "__qualname__", repr(each))
                for each in functions
                if not isinstance(each, Guarded)
            ],
            visibility=consumer.visibility,
            batch=consumer.batch,
        )


def check_queue(
    queue: QueueSettings, consuming: Consuming, dead_letters: QueueSettings | None = None
) -> list[Finding]:
    """Everything about one queue; ``dead_letters`` are the settings of its dead-letter queue, where it has one."""
    visibility = consuming.visibility or queue.visibility
    return [
        *_redrive(queue, consuming, visibility),
        *_visibility(queue, consuming, visibility),
        *_retention(queue, consuming, dead_letters),
        *_provider(queue, consuming, visibility, dead_letters),
        *_fifo(queue, consuming),
        *_function(queue, consuming),
    ]


def check_event_source(mapping: Mapping[str, Any]) -> list[Finding]:
    """A Lambda event source mapping, as ``GetEventSourceMapping`` gives it."""
    told = mapping.get("FunctionResponseTypes") or []
    if "ReportBatchItemFailures" in told:
        return []
    return [
        Finding(
            code="sqs-lambda-batch-failures",
            severity=Severity.ERROR,
            subject=str(mapping.get("EventSourceArn", "the event source mapping")),
            figure=f"FunctionResponseTypes = {list(told)}",
            happened="Lambda does not read which messages failed: it deletes all of a batch, and those are lost.",
            mend="Set FunctionResponseTypes to [ReportBatchItemFailures].",
        )
    ]


def needed_receives(job: JobNumbers, visibility: timedelta) -> int:
    """How often a message may be received before its operation has ended one way or another.

    The first time, once more as a repeat, once for each visibility time-out within a lease, and for each uncertain end.
    """
    return 2 + math.ceil(job.lease / visibility) + job.max_unsure


def _redrive(queue: QueueSettings, consuming: Consuming, visibility: timedelta) -> Iterator[Finding]:
    if queue.dead_letter_queue is None:
        yield Finding(
            code="sqs-no-dead-letters",
            severity=Severity.WARNING,
            subject=queue.name,
            figure="no RedrivePolicy",
            happened="A message that nobody can read comes again until its retention ends, and is then lost.",
            mend="Set a dead-letter queue, and watch it.",
        )
    for job in consuming.jobs:
        needed = needed_receives(job, visibility)
        if queue.max_receives is not None and queue.max_receives < needed:
            yield Finding(
                code="sqs-max-receives",
                severity=Severity.ERROR,
                subject=f"{job.name} on {queue.name}",
                figure=f"maxReceiveCount {queue.max_receives} < {needed} = 2 + lease {describe(job.lease)} / visibility "
                f"{describe(visibility)} + max_unsure {job.max_unsure}",
                happened="A message whose operation is only in progress can end among the dead letters, not done.",
                mend=f"Set maxReceiveCount to {needed} or more, lengthen the visibility, or shorten the lease.",
            )
        if not job.keeps_message:
            yield Finding(
                code="sqs-message-not-kept",
                severity=Severity.WARNING,
                subject=f"{job.name} on {queue.name}",
                figure="keep_messages=False",
                happened="The message of a held operation stays in the queue and is received again and again.",
                mend="Keep messages, or decide about held operations before maxReceiveCount is reached.",
            )


def _visibility(queue: QueueSettings, consuming: Consuming, visibility: timedelta) -> Iterator[Finding]:
    longest = max((job.longest_run for job in consuming.jobs), default=timedelta(0))
    figure = f"visibility {describe(visibility)}, longest run {describe(longest)}"

    def finding(code: str, happened: str, mend: str, *, severe: bool = False) -> Finding:
        severity = Severity.ERROR if severe else Severity.WARNING
        return Finding(
            code=code, severity=severity, subject=queue.name, figure=figure, happened=happened, mend=mend
        )

    if longest > _LONGEST:
        yield finding(
            "sqs-longest-run",
            "SQS hides a message for 12 hours at most: it is delivered again while its function still runs.",
            "Make the work shorter, or start it from the message and follow it elsewhere.",
            severe=True,
        )
    if not consuming.extends and visibility < longest * consuming.batch:
        batch = f" times the {consuming.batch} messages of a batch" if consuming.batch > 1 else ""
        yield finding(
            "sqs-visibility-short",
            f"Messages are delivered again while they wait or run: nobody extends, and the longest run{batch} is longer.",
            "Lengthen the visibility, receive fewer at a time, or use a Consumer, which extends it.",
            severe=bool(consuming.unguarded),
        )
    if consuming.extends and visibility < _SHORT:
        yield finding(
            "sqs-visibility-short",
            "A pause or a network stall of that length makes a live message visible to others.",
            "30 s or more is usual.",
        )
    if consuming.extends and visibility > _LONG:
        yield finding(
            "sqs-visibility-long",
            "What a killed worker had waits that long before anybody gets it.",
            "The visibility is extended while a function runs: a minute is enough.",
        )


def _retention(
    queue: QueueSettings, consuming: Consuming, dead_letters: QueueSettings | None
) -> Iterator[Finding]:
    there = queue.retention + (timedelta(0) if dead_letters is None else dead_letters.retention)
    for job in consuming.jobs:
        if job.keep < there:
            yield Finding(
                code="sqs-records-too-short",
                severity=Severity.ERROR,
                subject=f"{job.name} on {queue.name}",
                figure=f"records {describe(job.keep)} < messages {describe(there)}",
                happened="A message that comes back from the dead letters after its record was deleted acts again.",
                mend="Keep records longer than messages live (keep_operations, keep=), or declare dated=.",
            )
        if queue.retention <= job.lease + job.longest_run:
            yield Finding(
                code="sqs-retention-short",
                severity=Severity.ERROR,
                subject=f"{job.name} on {queue.name}",
                figure=f"retention {describe(queue.retention)}, lease {describe(job.lease)}, longest run "
                f"{describe(job.longest_run)}",
                happened="SQS deletes a message while it waits for a lease to end: the work is lost.",
                mend="Raise the queue's MessageRetentionPeriod.",
            )
    if dead_letters is not None and dead_letters.retention <= queue.retention and not queue.fifo:
        yield Finding(
            code="sqs-dead-letter-retention",
            severity=Severity.WARNING,
            subject=dead_letters.name,
            figure=f"retention {describe(dead_letters.retention)}, of {queue.name} {describe(queue.retention)}",
            happened="A dead letter keeps the age that it had in its queue: it is deleted before anybody looks at it.",
            mend="Give the dead-letter queue the longest retention, 14 days.",
        )


def _provider(
    queue: QueueSettings, consuming: Consuming, visibility: timedelta, dead_letters: QueueSettings | None
) -> Iterator[Finding]:
    """Whether a provider still knows a key when the last delivery comes: of those that fail, and of those that waited."""
    kept = queue.retention + (timedelta(0) if dead_letters is None else dead_letters.retention)
    for job in consuming.jobs:
        if job.valid_for is None:
            continue
        again, why = _delivered_again(queue, job, visibility, extends=consuming.extends)
        window, run = f"valid_for {describe(job.valid_for)}", f"longest run {describe(job.longest_run)}"
        if job.valid_for <= again + job.longest_run:
            yield Finding(
                code="sqs-provider-window",
                severity=Severity.WARNING,
                subject=f"{job.name} on {queue.name}",
                figure=f"{window}, delivered again for up to {describe(again)} ({why}), {run}",
                happened="The provider may have forgotten the key when the last deliveries come: what is uncertain goes to "
                "then=.",
                mend="A lower maxReceiveCount or a shorter visibility; or a longer window where the provider has one, or "
                "then=Lookup(…).",
            )
        elif job.valid_for <= kept + job.longest_run:
            yield Finding(
                code="sqs-provider-retention",
                severity=Severity.NOTE,
                subject=f"{job.name} on {queue.name}",
                figure=f"{window}, messages {describe(kept)}, {run}",
                happened="A message that waited for that long, or is sent back from the dead letters, comes when the "
                "provider has forgotten the key: what is uncertain goes to then=.",
                mend="Nothing, where somebody looks at held operations; else then=Lookup(…).",
            )


def _delivered_again(
    queue: QueueSettings, job: JobNumbers, visibility: timedelta, *, extends: bool
) -> tuple[timedelta, str]:
    """For how long after its first delivery a message that never succeeds comes, at the latest; and what says so."""
    retention = f"retention {describe(queue.retention)}"
    if queue.max_receives is None:
        return queue.retention, f"{retention}, no maxReceiveCount"
    hidden = visibility + (job.longest_run if extends else timedelta(0))
    if queue.max_receives * hidden >= queue.retention:
        return queue.retention, retention
    run = f" and extended {describe(job.longest_run)}" if extends else ""
    why = f"maxReceiveCount {queue.max_receives} x visibility {describe(visibility)}{run}"
    return queue.max_receives * hidden, why


def _fifo(queue: QueueSettings, consuming: Consuming) -> Iterator[Finding]:
    if not queue.fifo:
        return
    for name in consuming.unguarded:
        yield Finding(
            code="sqs-fifo-no-guard",
            severity=Severity.ERROR,
            subject=f"{name} on {queue.name}",
            figure="deduplication for 5 min, of sending only",
            happened="FIFO removes no second delivery: a visibility time-out, a lost delete or a late resend acts again.",
            mend="Guard the function: the record is what an operation is done by.",
        )
    if queue.deduplicates_by_content:
        yield Finding(
            code="sqs-content-deduplication",
            severity=Severity.WARNING,
            subject=queue.name,
            figure="ContentBasedDeduplication = true",
            happened="Of two operations whose bodies are alike within 5 min the second is accepted and never delivered.",
            mend="Send a MessageDeduplicationId made from the operation's own key.",
        )
    if queue.max_receives is not None and consuming.batch > 1:
        yield Finding(
            code="sqs-fifo-batch",
            severity=Severity.NOTE,
            subject=queue.name,
            figure=f"batches of {consuming.batch}, maxReceiveCount {queue.max_receives}",
            happened="What waits in a batch behind a failing message of its group is counted as received each time, and "
            "can end among the dead letters untried.",
            mend="Receive one at a time (batch=1), where that matters more than the number of calls.",
        )


def _function(queue: QueueSettings, consuming: Consuming) -> Iterator[Finding]:
    limit = consuming.function_time_out
    if limit is None:
        return
    if queue.visibility < limit * _LAMBDA_TIMES:
        yield Finding(
            code="sqs-lambda-visibility",
            severity=Severity.WARNING,
            subject=queue.name,
            figure=f"visibility {describe(queue.visibility)} < {_LAMBDA_TIMES} x the function's {describe(limit)}",
            happened="Messages are delivered again while Lambda still tries to hand over their batch.",
            mend=f"Set the queue's visibility to {describe(limit * _LAMBDA_TIMES)}, as AWS recommends.",
        )
    for job in _too_long(consuming.jobs, limit):
        yield Finding(
            code="sqs-lambda-time-out",
            severity=Severity.ERROR,
            subject=f"{job.name} on {queue.name}",
            figure=f"longest run {describe(job.longest_run)} > the function's {describe(limit)}",
            happened="No message is ever started: less than its longest run is left of the function's time.",
            mend="Raise the function's time-out, or lower longest_run to what it takes.",
        )


def _too_long(jobs: Iterable[JobNumbers], limit: timedelta) -> Iterator[JobNumbers]:
    return (job for job in jobs if job.longest_run > limit)
