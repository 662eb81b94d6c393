"""The answer to a delivery of an operation, decided by `semel.core.operations` and written fenced by what was read.

For the first delivery it is a plain insert, committed by itself; for every other one a short transaction that locks the
record, decides, and writes the move with its event. A `Row()` claims in the caller's own transaction instead.
"""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from semel.core.effects import Answer, Lookup, ProviderKey
from semel.core.operations import Decision, Move, Outcome, Record, Reply, State, begin, found, leaves_doubt
from semel.errors import RetryTransaction
from semel.store.faults import LockBusy, transaction_gone
from semel.store.guard_request import Again, Begun, Request, event, record_of, text_of
from semel.store.statement import Operation, Rows, Statement, Steps

_MOVES: Final = MappingProxyType(
    {
        Move.RENEW: "renew",
        Move.CLAIM: "claim",
        Move.TAKE_OVER: "take_over",
        Move.TAKE_OVER_TO_LOOK: "take_over_to_look",
        Move.HOLD: "hold",
        Move.MISS: "miss",
    }
)
_LOOKED: Final = MappingProxyType(
    {
        Move.COMPLETE_FOUND: "complete_late",
        Move.ACT: "act",
        Move.LOOK_LATER: "look_later",
        Move.HOLD: "hold_mine",
    }
)
_IDS: Final = ("id", "jid", "job_id")
"""What the adapters call a message's id in what a record keeps."""
_SHOWN: Final = 16
"""Characters of a fingerprint: enough to find it in the record."""


def begin_new(request: Request) -> Operation[Begun | None]:
    """Claim an operation that has no record; None where there is one. A single committed statement.

    MySQL's count of inserted rows does not tell a new row from an old (CLIENT.FOUND_ROWS), so its token is read afterwards.
    """

    def steps() -> Steps[Begun | None]:
        rows = yield Statement("guard/insert", request.parameters)
        if rows and request.dialect == "mysql":
            rows = yield Statement("guard/read", request.reading)
            rows = [row for row in rows if _is_new(record_of(row), request)]
        return _first(request) if rows else None

    return Operation("guard_begin_new", steps, alone=True)


def begin_known(request: Request) -> Operation[Begun | Again]:
    """Answer a delivery of an operation that has a record; locks the record for one short transaction."""

    def steps() -> Steps[Begun | Again]:
        rows = yield Statement("guard/read_locked", request.reading)
        if not rows:
            return Again()
        return (yield from _write(request, *_decision(request, rows), in_transaction=False))

    return Operation("guard_begin_known", steps)


def begin_row(request: Request, *, in_savepoint: bool = False) -> Operation[Begun | Again | None]:
    """Claim inside the caller's transaction, waiting for nobody; None means busy: a rival's transaction has the key.

    `Again`, on PostgreSQL, asks for a savepoint: the isolation is stricter than READ COMMITTED, so that a conflict would
    end the transaction. MySQL waits a second for a rival, SQLite as long as the caller's connection does. Both mark the
    transaction with a savepoint, by which `complete_row` knows it again; PostgreSQL knows it by its number.
    """
    claim = {"postgresql": _row_postgresql, "mysql": _row_mysql, "sqlite": _row_sqlite}[request.dialect]
    marked = request.dialect != "postgresql"

    def steps() -> Steps[Begun | Again | None]:
        begun = yield from claim(request, in_savepoint)
        if marked and isinstance(begun, Begun) and begun.reply is Reply.ACT:
            yield Statement("guard/mark", literals={"mark": request.mark})
        return begun

    return Operation("guard_begin_row", steps, alone=marked or not in_savepoint)


def _row_postgresql(request: Request, in_savepoint: bool) -> Steps[Begun | Again | None]:
    rows = yield Statement("guard/insert_row", request.parameters | {"in_savepoint": in_savepoint})
    if rows:
        return _first(request)
    rows = yield Statement("guard/read", request.reading)
    if rows:
        record, decision = _decision(request, rows)
        if decision.move is Move.NOTHING:
            return (yield from _write(request, record, decision, in_transaction=True))
        if (
            decision.move is Move.HOLD
        ):  # in this transaction it would be rolled back with the caller's refusal
            return Begun(reply=Reply.HELD, record=record, reason=decision.reason, unwritten=True)
    if not in_savepoint:
        isolation = yield Statement("guard/read_isolation")
        if isolation[0][0] not in ("read committed", "read uncommitted"):
            return Again()
    return (yield from _move_free(request)) if rows else None


def _row_sqlite(request: Request, in_savepoint: bool) -> Steps[Begun | Again | None]:
    try:
        rows = yield Statement("guard/insert_row", request.parameters)
    except LockBusy:
        return None
    return _first(request) if rows else (yield from _move_free(request))


def _row_mysql(request: Request, in_savepoint: bool) -> Steps[Begun | Again | None]:
    yield Statement("guard/shorten_wait")
    try:
        yield Statement("guard/insert_row", request.parameters)
        rows = yield Statement("guard/read_locked", request.reading)
    except LockBusy as busy:
        yield Statement("guard/restore_wait")
        ends = yield Statement("guard/ends_with_wait")
        if int(ends[0][0]):
            raise transaction_gone("innodb_rollback_on_timeout is set") from busy
        return None
    except RetryTransaction:
        yield Statement("guard/restore_wait")
        raise
    yield Statement("guard/restore_wait")
    if rows and _is_new(record_of(rows[0]), request):
        return _first(request)
    return (yield from _write(request, *_decision(request, rows), in_transaction=True)) if rows else Again()


def _move_free(request: Request) -> Steps[Begun | Again | None]:
    """Decide on the record once nobody else can change it; None where a rival's transaction has it."""
    rows = yield Statement("guard/read_free", request.reading)
    return (yield from _write(request, *_decision(request, rows), in_transaction=True)) if rows else None


def looked(
    request: Request, answer: Answer, *, result: str | None = None, error: str | None = None
) -> Operation[Begun | Again]:
    """Write what a look-up answered. Only after this step, fenced, may the attempt that looked act."""
    lookup = request.effect.then if isinstance(request.effect, ProviderKey) else request.effect
    assert isinstance(lookup, Lookup)

    def steps() -> Steps[Begun | Again]:
        rows = yield Statement("guard/read_locked", request.reading)
        record = record_of(rows[0]) if rows else None
        if record is None or not record.mine:
            return Again()
        if record.state in (State.COMPLETED, State.HELD):  # this very step, whose acknowledgement was lost
            reply = Reply.REPEAT if record.state is State.COMPLETED else Reply.HELD
            return Begun(reply=reply, record=record)
        decision = found(lookup, record, answer)
        parameters = request.parameters | {
            "new_reference": decision.new_reference,
            "outcome": Outcome.FOUND.value,
            "result": result,
            "result_dropped": False,
            "wait": 0.0 if decision.wait is None else decision.wait.total_seconds(),
            "reason": decision.reason,
            "error": error,
        }
        written = yield Statement(f"guard/{_LOOKED[decision.move]}", parameters)
        if not written:
            return Again()
        yield event(request, decision.event or "looked", record.claim, why=decision.reason)
        rows = yield Statement("guard/read", request.reading)
        return _answer(request, decision, record_of(rows[0]), acting=True)

    return Operation("guard_looked", steps)


def read(request: Request) -> Operation[Record | None]:
    """The record as it stands."""

    def steps() -> Steps[Record | None]:
        rows = yield Statement("guard/read", request.reading)
        return record_of(rows[0]) if rows else None

    return Operation("guard_read", steps, alone=True)


def _decision(request: Request, rows: Rows) -> tuple[Record, Decision]:
    record = record_of(rows[0])
    return record, begin(
        record,
        request.effect,
        longest_run=request.longest_run,
        limits=request.limits,
        payload_known=request.fingerprint is not None,
    )


def _write(
    request: Request, record: Record, decision: Decision, *, in_transaction: bool
) -> Steps[Begun | Again]:
    if decision.move is not Move.NOTHING:
        parameters = request.parameters | {
            "revision": record.revision,
            "new_reference": decision.new_reference,
            "use_extra": decision.use_extra,
            "reason": decision.reason,
            "in_transaction": in_transaction,
        }
        rows = yield Statement(f"guard/{_MOVES[decision.move]}", parameters)
        if not rows:
            return Again()
    if decision.reply is Reply.MISMATCH:
        rows = yield Statement("guard/read_payload", request.identity)
        decision = replace(decision, reason=_differing(request, rows) or decision.reason)
    if decision.event is not None:
        yield event(request, decision.event, record.claim, why=decision.reason)
    if decision.move is Move.MISS:
        record = replace(record, state=State.COMPLETED, outcome=Outcome.MISSED)
    return _answer(request, decision, record, acting=request.acts_from_start)


def _differing(request: Request, rows: Rows) -> str:
    """Both payloads' fingerprints, and the message that brought the first one, where the record keeps it."""
    if not rows or rows[0][0] is None:
        return ""
    stored, message = rows[0]
    found = {} if message is None else json.loads(message)
    number = next((found[name] for name in _IDS if found.get(name) is not None), None)
    came = "" if number is None else f", which came as message {number} ({found.get('adapter')})"
    shown = (request.fingerprint or "")[:_SHOWN]
    return f"its payload's fingerprint is {shown}…, the first one's {text_of(stored)[:_SHOWN]}…{came}"


def _first(request: Request) -> Begun:
    return Begun(reply=Reply.ACT, claim=1, reference=request.reference, acting=request.acts_from_start)


def _is_new(record: Record, request: Request) -> bool:
    """Inserted just now, rather than before an acknowledgement was lost: then its lease is to be renewed."""
    fresh = record.lease_left >= 0.9 * request.lease.total_seconds()
    return record.mine and record.claim == 1 and record.revision == 1 and fresh


def _answer(request: Request, decision: Decision, record: Record, *, acting: bool) -> Begun:
    claimed = decision.move in (Move.CLAIM, Move.TAKE_OVER, Move.TAKE_OVER_TO_LOOK)
    return Begun(
        reply=decision.reply,
        claim=record.claim + (1 if claimed else 0),
        reference=request.reference if decision.new_reference else record.reference,
        acting=acting or (record.acting and decision.move is not Move.CLAIM),
        record=record,
        reason=decision.reason,
        wait=decision.wait,
        in_doubt=leaves_doubt(record, decision.move),
    )
