"""What can still go wrong, from the effect, the declaration, and what doctor finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from semel.core.durations import describe
from semel.core.effects import AcceptDuplicate, AcceptMiss, Effect, Hold, Lookup, ProviderKey, Row
from semel.doctor.finding import Finding
from semel.guard.guarded import Guarded
from semel.note.page import code
from semel.note.retention import Retention
from semel.note.ways import Kind, Subject


def find_risks(subject: Subject, retention: Retention, findings: Sequence[Finding]) -> tuple[str, ...]:
    """The worst first."""
    guarded = subject.guarded
    return (
        *(
            (
                f"{finding.severity}: {code(finding.subject)}: {code(finding.figure)}. {finding.happened} "
                f"{finding.mend} [{finding.code}]"
            )
            for finding in findings
        ),
        *_of_effect(guarded.declaration.effect),
        *_of_declaration(guarded),
        *_of_ways(subject),
        *_of_retention(retention),
    )


def _of_effect(effect: Effect) -> Iterator[str]:
    match effect:
        case Row():
            yield (
                "Only what is written on the transaction's own connection is part of it: a call to the "
                "outside in it can happen twice."
            )
            return
        case Hold():
            yield "Somebody has to look at held operations (semel held list): until then the work of each is not done."
        case ProviderKey():
            yield "It holds only as far as the provider enforces its key, for that long, and for the same account."
        case Lookup():
            yield "A look-up that answers not done too early, as of a search that lags behind, leads to a second effect."
        case AcceptDuplicate(extra=extra):
            yield f"Up to {extra} more effects are accepted by the declaration: somebody has agreed to that."
        case AcceptMiss():
            yield "An effect that never happened is accepted by the declaration: somebody has agreed to that."
    yield (
        "A worker that is paused past its lease and wakes inside the outside call can act late: "
        "no record stops it, only the outside system."
    )


def _of_declaration(guarded: Guarded[..., Any]) -> Iterator[str]:
    declaration = guarded.declaration
    if not isinstance(declaration.effect, Row):
        if declaration.acting != "explicit":
            yield (
                "Acting counts from the start: every exception but the ones listed as not done makes the "
                "operation uncertain."
            )
        if not declaration.extend and declaration.lease < declaration.longest_run * 2:
            yield (
                f"The lease ({describe(declaration.lease)}) leaves little over the longest run "
                f"({describe(declaration.longest_run)}): a "
                "slow database or a pause ends it early."
            )
    if not declaration.keep_message:
        yield "Messages are not kept: after redo somebody has to send the message again."
    if guarded.place.dialect == "sqlite":
        yield "SQLite: one host only; its clock is the machine's, and one long transaction blocks the whole file."


def _of_ways(subject: Subject) -> Iterator[str]:
    if subject.shared_with:
        yield (
            f"{len(subject.shared_with)} more function(s) share the job type: their keys and "
            "fingerprints have to be the same."
        )
    if any(way.kind is Kind.CELERY and not way.acks_late for way in subject.ways):
        yield (
            "Celery acknowledges before the task runs: a killed worker loses its message, and the "
            "operation is only listed as stale."
        )
    if all(way.kind is Kind.CALL for way in subject.ways):
        yield (
            "No queue is seen that delivers it again: an operation whose worker died stays open "
            "until somebody calls it again."
        )


def _of_retention(retention: Retention) -> Iterator[str]:
    if retention.proposed is not None and not retention.enough:
        yield f"Records are deleted before the latest redelivery: keep them for {describe(retention.proposed)}."
    if retention.unknown:
        yield "How late a message can come is not fully known (see Retention): a repeat after the record is gone acts again."
