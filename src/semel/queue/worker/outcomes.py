"""One line of log an outcome, with its reason; and the outcome in the form that the settling statement takes."""

from __future__ import annotations

import logging

import msgspec

from semel.core.decide import PLAINLY_DONE, ErrorRecord, Settlement
from semel.core.job import ClaimedJob
from semel.core.states import Status
from semel.queue.worker.board import Counts, Held
from semel.store.jobs import Detail

logger = logging.getLogger("semel.worker")


def to_detail(held: Held, settlement: Settlement) -> Detail | None:
    """What the statement needs to know; None where the job is plainly done."""
    if settlement.status is Status.DONE and settlement.result is None:
        return None
    error = settlement.error
    return Detail(
        id=held.job.id,
        claim=held.job.claim,
        status=settlement.status.value,
        delay=None if settlement.delay is None else settlement.delay.total_seconds(),
        run_at=None if settlement.run_at is None else settlement.run_at.isoformat(),
        refund=settlement.refund,
        error=None if error is None else msgspec.Raw(msgspec.json.encode(error)),
        summary=_summary(error) if error is not None else settlement.reason or None,
        result=None if settlement.result is None else msgspec.Raw(settlement.result),
    )


def log_outcome(held: Held, settlement: Settlement, counts: Counts) -> None:
    """Count an attempt's outcome and log it, once the database has it."""
    if settlement is PLAINLY_DONE:
        counts.done += 1
        word, level = "done", logging.INFO
    else:
        word, level = _word(settlement, counts)
    if not logger.isEnabledFor(level):
        return
    fields = _fields(held.job) | {"outcome": word}
    if held.started is not None:
        fields["seconds"] = round(held.seconds, 6)
    reason = settlement.reason
    if settlement.error is not None:
        fields["error"] = _summary(settlement.error)
        reason = f"{reason}; {_summary(settlement.error)}" if reason else _summary(settlement.error)
    if reason:
        fields["reason"] = settlement.reason
    logger.log(
        level,
        "job %s %s %s%s",
        held.job.id,
        held.job.kind,
        word,
        f": {reason}" if reason else "",
        extra=fields,
    )


def log_given_back(held: Held, why: str) -> None:
    """Log that a claim was given back without a charge."""
    logger.info(
        "job %s %s given back: %s",
        held.job.id,
        held.job.kind,
        why,
        extra=_fields(held.job) | {"outcome": "given back", "reason": why},
    )


def log_lost(held: Held, counts: Counts) -> None:
    """Count and log a lost claim: nothing of this attempt was written."""
    counts.lost += 1
    logger.warning(
        "job %s %s claim lost: another attempt took it over, or it was cancelled; nothing of this attempt is written",
        held.job.id,
        held.job.kind,
        extra=_fields(held.job) | {"outcome": "claim lost"},
    )


def log_ended_by_claim(job: ClaimedJob, counts: Counts) -> None:
    """Log a job that the claim itself ended, because its workers died each time."""
    counts.failed += 1
    reason = f"its worker died {job.crashes} times while it ran"
    logger.error(
        "job %s %s failed: %s",
        job.id,
        job.kind,
        reason,
        extra=_fields(job) | {"outcome": "failed", "reason": reason, "crashes": job.crashes},
    )


def _word(settlement: Settlement, counts: Counts) -> tuple[str, int]:
    match settlement.status:
        case Status.DONE:
            counts.done += 1
            return "done", logging.INFO
        case Status.PENDING if settlement.refund:
            counts.other += 1
            return "snoozed", logging.INFO
        case Status.PENDING:
            counts.retried += 1
            return "retried", logging.WARNING
        case Status.FAILED:
            counts.failed += 1
            return "failed", logging.ERROR
        case Status.HELD:
            counts.other += 1
            return "held", logging.ERROR
    counts.other += 1
    return settlement.status.value, logging.INFO


def _fields(job: ClaimedJob) -> dict[str, object]:
    return {
        "job_id": job.id,
        "kind": job.kind,
        "queue": job.queue,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "claim": job.claim,
    }


def _summary(error: ErrorRecord) -> str:
    return f"{error.type}: {error.message}"
