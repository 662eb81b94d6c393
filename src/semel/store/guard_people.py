"""What a person's decision writes, with an event that says who and why: fenced by the claim number and the revision shown.

The record is locked first, so that of two people, or a person and a late finisher, the second sees what the first did.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from semel.core.operations import Record, State
from semel.core.people import Act, refusal
from semel.store.guard_request import record_of
from semel.store.guard_views import from_json
from semel.store.statement import Operation, Row, Statement, Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """An operation, locked until the end of the transaction."""

    id: int
    record: Record
    scope: str
    job_type: str
    key: str
    label: str | None
    message: Any
    waiting: float
    """For how many seconds nothing was written about it."""

    @property
    def name(self) -> str:
        return f"{self.job_type} {self.label or self.key[:12]}"


@dataclass(frozen=True, slots=True)
class Refused:
    """The decision did not apply; nothing was changed but the history, which keeps that it was tried."""

    name: str
    reason: str
    state: State


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision was written. ``before`` is what it was decided on."""

    before: Locked
    after: State
    claim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a person decided about one operation, and on which claim number and revision."""

    operation_id: int
    act: Act
    seen: int
    who: str
    why: str
    revision: int | None = None
    """The one that was shown; None: any, as long as the claim is the same."""
    new_reference: str | None = None
    """For a redo: the reference that takes the place of the present one."""
    result: str | None = None
    """For done: JSON that further deliveries are answered with."""


def lock(operation_id: int) -> Operation[Locked | None]:
    """The operation, locked; waits for whoever has it for five seconds at most (LockBusy)."""

    def steps() -> Steps[Locked | None]:
        rows = yield Statement("guard/lock_operation", {"id": operation_id})
        return _locked(operation_id, rows[0]) if rows else None

    return Operation("guard_lock", steps)


def decide(decision: Decision) -> Operation[Decided | Refused | None]:
    """Write a person's decision; None where there is no such operation."""
    act = decision.act

    def steps() -> Steps[Decided | Refused | None]:
        found = yield from lock(decision.operation_id).steps()
        if found is None:
            return None
        reason = refusal(
            found.record, act, seen=decision.seen, revision=decision.revision, waiting=found.waiting
        )
        if reason is not None:
            detail = {"act": act.value, "reason": reason}
            yield person_event(found, "refused", decision.who, decision.why, detail)
            return Refused(found.name, reason, found.record.state)
        yield _write(decision, found)
        detail = {"before": found.record.state.value}
        if decision.new_reference is not None:
            detail |= {"old_reference": found.record.reference}
        yield person_event(found, act.value, decision.who, decision.why, detail)
        if act is Act.REDO:
            return Decided(found, State.RELEASED, found.record.claim + 1)
        return Decided(found, State.COMPLETED, found.record.claim)

    return Operation(f"guard_person_{act.value}", steps)


def redact(operation_id: int, *, who: str, why: str) -> Operation[Locked | Refused | None]:
    """Erase result, label, last error and message, and what its history holds of them; None where there is none."""

    def steps() -> Steps[Locked | Refused | None]:
        found = yield from lock(operation_id).steps()
        if found is None:
            return None
        if found.record.state is State.CLAIMED and not found.record.stale:
            reason = f"an attempt holds its lease for another {found.record.lease_left:.0f} s, and would write again"
            return Refused(found.name, reason, found.record.state)
        yield Statement("guard/redact", {"id": operation_id, "revision": found.record.revision})
        yield Statement("guard/redact_events", {"id": operation_id})
        yield person_event(found, "redact", who, why)
        return found

    return Operation("guard_redact", steps)


def note(
    found: Locked, event: str, *, who: str, why: str, detail: dict[str, Any] | None = None
) -> Operation[None]:
    """A line of the operation's history, by itself."""

    def steps() -> Steps[None]:
        yield person_event(found, event, who, why, detail)

    return Operation("guard_note", steps, alone=True)


def person_event(
    found: Locked, event: str, who: str, why: str, detail: dict[str, Any] | None = None
) -> Statement:
    """What a person did, as a line of the history, in the transaction that does it."""
    told = None if detail is None else json.dumps(detail)
    identity = {"scope": found.scope, "job_type": found.job_type, "key": found.key}
    return Statement(
        "guard/event",
        identity | {"event": event, "claim": found.record.claim, "who": who, "why": why, "detail": told},
    )


def _write(decision: Decision, found: Locked) -> Statement:
    fence = {"id": decision.operation_id, "seen": decision.seen, "revision": found.record.revision}
    if decision.act is Act.REDO:
        reference = {
            "new_reference": decision.new_reference is not None,
            "reference": decision.new_reference or found.record.reference,
        }
        return Statement("guard/person_release", fence | reference)
    outcome = {"outcome": decision.act.outcome.value, "result": decision.result}
    return Statement("guard/person_complete", fence | outcome)


def _locked(operation_id: int, row: Row) -> Locked:
    scope, job_type, key, label, message, waiting = row[21:27]
    return Locked(
        id=operation_id,
        record=record_of(row),
        scope=scope,
        job_type=job_type,
        key=key,
        label=label,
        message=from_json(message),
        waiting=float(waiting),
    )
