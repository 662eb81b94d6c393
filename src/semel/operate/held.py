"""An operation whose effect is uncertain: a person says that it is done, that it is to be redone, or that it is abandoned.

Each decision names the claim number that the person was shown, and the revision. Where one has changed since, nothing is
done. Without the revision an attempt that went on under the same claim, acted and died is not noticed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from semel.core.operations import State
from semel.core.people import Act
from semel.errors import ConfigurationError, NotFound, WrongState
from semel.guard.declaration import make_reference
from semel.operate.carry_out import carry_out
from semel.operate.held_jobs import job_of, settle_job
from semel.operate.resending import Resender, find_resender
from semel.operate.sendable import REACHED_BY
from semel.store import guard_people
from semel.store.guard_people import Decided, Decision, Locked, Refused
from semel.store.run import Session
from semel.store.statement import Operation, Steps

logger = logging.getLogger("semel.operate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a decision changed."""

    operation_id: int
    name: str
    act: Act
    before: State
    after: State
    claim: int
    """The claim number now."""
    sent: bool | None = None
    """For a redo: whether the operation will be delivered again without anybody's doing. Else None."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Written:
    decided: Decided
    sent: bool | None
    told: str


def done(
    session: Session,
    operation_id: int,
    seen_claim: int,
    who: str,
    why: str,
    *,
    seen_revision: int | None = None,
    result: Any = None,
) -> Resolved:
    """Say that the effect happened: the operation is completed, and further deliveries get ``result`` (JSON, or None).

    Applies to a held, a stale and a released operation. Its job on the semel queue beside it is done in the same commit.
    Raises NotFound, WrongState.
    """
    stored = None if result is None else _to_json(result)
    decision = Decision(
        operation_id=operation_id,
        act=Act.DONE,
        seen=seen_claim,
        revision=seen_revision,
        who=who,
        why=why,
        result=stored,
    )
    return resolve(session, decision)


def redo(
    session: Session,
    operation_id: int,
    seen_claim: int,
    who: str,
    why: str,
    *,
    seen_revision: int | None = None,
    new_reference: bool = False,
    resenders: Sequence[Resender] = (),
) -> Resolved:
    """Say that the effect did not happen: the operation is released, and its message sent again where it is kept.

    ``new_reference`` gives it another reference, for a provider that remembers the failure of the first. Applies to a
    held and a stale operation, and to a released one that nobody claimed for 10 minutes. A paused worker that wakes
    inside its call can still double the effect: look at the lease and the last sign of life first. Raises NotFound,
    WrongState.
    """
    reference = make_reference() if new_reference else None
    decision = Decision(
        operation_id=operation_id,
        act=Act.REDO,
        seen=seen_claim,
        revision=seen_revision,
        who=who,
        why=why,
        new_reference=reference,
    )
    return resolve(session, decision, resenders)


def abandon(
    session: Session,
    operation_id: int,
    seen_claim: int,
    who: str,
    why: str,
    *,
    seen_revision: int | None = None,
) -> Resolved:
    """Say that it is not to be tried again, whether it happened or not: further deliveries are told so, without a result.

    Applies to a held, a stale and a released operation. Its job on the semel queue beside it is cancelled in the same commit.
    Raises NotFound, WrongState.
    """
    decision = Decision(
        operation_id=operation_id,
        act=Act.ABANDON,
        seen=seen_claim,
        revision=seen_revision,
        who=who,
        why=why,
    )
    return resolve(session, decision)


def redact(session: Session, operation_id: int, who: str, why: str) -> str:
    """Erase what an operation holds of its payload's data; answers what it was called. Raises NotFound, WrongState."""
    found = carry_out(guard_people.redact(operation_id, who=who, why=why), session)
    if isinstance(found, Locked):
        return found.name
    raise _not_so(operation_id, Act.DONE, found, "redacted")


def resolve(session: Session, decision: Decision, resenders: Sequence[Resender] = ()) -> Resolved:
    """Write one decision and, after its commit, send the message again where that is asked and can be."""
    if not decision.why.strip():
        raise ConfigurationError(
            "A decision needs a reason.",
            remedy="Say how you know: it stays on record, for whoever looks later.",
        )
    answer = carry_out(_decide(decision, jobs_beside=jobs_beside(session)), session)
    if not isinstance(answer, _Written):
        raise _not_so(decision.operation_id, decision.act, answer)
    sent, told = answer.sent, answer.told
    if decision.act is Act.REDO and sent is None:
        sent, told = _send(session, decision, answer.decided.before, resenders)
    before = answer.decided.before
    logger.info(
        "operation %s: %s by %s: %s",
        before.name,
        decision.act.value,
        decision.who,
        decision.why,
        extra={"job_type": before.job_type, "scope": before.scope, "key": before.key, "act": decision.act},
    )
    return Resolved(
        operation_id=decision.operation_id,
        name=before.name,
        act=decision.act,
        before=before.record.state,
        after=answer.decided.after,
        claim=answer.decided.claim,
        sent=sent,
        note=told,
    )


def _decide(decision: Decision, *, jobs_beside: bool) -> Operation[_Written | Refused | None]:
    """The decision and, where the job is in the same database, what it means for the job: one transaction."""

    def steps() -> Steps[_Written | Refused | None]:
        answer = yield from guard_people.decide(decision).steps()
        if not isinstance(answer, Decided):
            return answer
        message = answer.before.message
        if not jobs_beside or job_of(message) is None:
            return _Written(answer, None, "")
        settled = yield from settle_job(decision.act, message, who=decision.who, why=decision.why)
        if settled is None:
            return _Written(answer, None, "")
        return _Written(answer, settled.sent if decision.act is Act.REDO else None, settled.told)

    return Operation(f"person_{decision.act.value}", steps)


def _send(
    session: Session, decision: Decision, before: Locked, resenders: Sequence[Resender]
) -> tuple[bool, str]:
    """Send the message of a released operation again; where that fails the operation is released all the same."""
    if before.message is None:
        return False, "Its message is not kept: send it again yourself."
    resender = find_resender(resenders, before.message)
    if resender is None:
        return False, _unknown(before.message)
    try:
        told = resender.send(before.message, who=decision.who, why=decision.why)
    except Exception as error:
        logger.warning("operation %s: its message could not be sent: %s", before.name, error, exc_info=True)
        event, sent = "not_sent", False
        told = f"Its message could not be sent ({error}): send it again yourself, or redo it in 10 minutes."
    else:
        event, sent = "sent", True
    carry_out(
        guard_people.note(before, event, who=decision.who, why=decision.why, detail={"told": told[:1000]}),
        session,
    )
    return sent, told


def _unknown(message: Any) -> str:
    job_id = job_of(message)
    if job_id is not None:
        return f"Its job is in another database: run it again there (semel job retry {job_id})."
    adapter = message.get("adapter") if isinstance(message, dict) else None
    option = REACHED_BY.get(adapter or "")
    if option is None:
        return f"Its message came by {adapter}, which cannot be sent to from here: send it again yourself."
    return (
        f"Its message came by {adapter}, and no {option} was given: send it again yourself, or redo it with that "
        "in 10 minutes."
    )


def _not_so(operation_id: int, act: Act, answer: Refused | None, done_to: str = "") -> NotFound | WrongState:
    if answer is None:
        return NotFound(
            f"There is no operation {operation_id}.",
            remedy="Its retention may have ended. See: semel operations list",
        )
    what = f"be {done_to}" if done_to else f"be decided ({act.value})"
    return WrongState(
        f"Operation {operation_id} ({answer.name}) cannot {what}: {answer.reason}.",
        holds="Nothing was changed.",
        remedy=f"Look at it again: semel operations show {operation_id}",
    )


def _to_json(result: Any) -> str:
    try:
        return json.dumps(result, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"The result has no JSON form: {error}.") from error


def jobs_beside(session: Session) -> bool:
    """Whether the queue's tables can be in the operations' database."""
    catalogue = getattr(session, "catalogue", None)
    return catalogue is not None and catalogue.dialect == "postgresql"
