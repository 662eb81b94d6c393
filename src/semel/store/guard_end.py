"""How an attempt's own writes end: fenced by its token. One statement where all is well; where it changes nothing, a second
look, in a transaction, says what became of the claim and keeps what the attempt reported as evidence."""

from __future__ import annotations

from typing import Any

from semel.core.operations import Outcome, Record, State
from semel.errors import SemelError
from semel.store.guard_request import Lost, Request, Written, event, record_of
from semel.store.statement import Operation, Statement, Steps


def act(request: Request) -> Operation[bool]:
    """The point of no return: note that the effect may begin now, and renew the lease. False: nothing changed."""
    return _once("act", request.parameters | {"new_reference": False})


def extend(request: Request) -> Operation[bool]:
    """Renew the lease. False: nothing changed."""
    return _once("extend", request.parameters)


def complete(request: Request, *, result: str | None, result_dropped: bool) -> Operation[bool]:
    """The effect happened, within the lease. False: nothing changed; then `complete_late`."""
    return _once("complete", _completion(request, result, result_dropped))


def complete_row(request: Request, *, result: str | None, result_dropped: bool) -> Operation[bool]:
    """`complete` of a `Row()`, in the caller's transaction. False: it is not the transaction that claimed."""
    parameters = _completion(request, result, result_dropped)

    def steps() -> Steps[bool]:
        if request.dialect != "postgresql":
            try:
                yield Statement("guard/unmark", literals={"mark": request.mark})
            except SemelError:
                raise
            except Exception:  # no such savepoint: SQLite has no code of its own for that
                return False
        rows = yield Statement("guard/complete_row", parameters)
        return bool(rows)

    return Operation("guard_complete_row", steps, alone=True)


def complete_late(request: Request, *, result: str | None, result_dropped: bool) -> Operation[Written | Lost]:
    """Complete past the lease or out of held, where nobody took over; repeated, it is a success; else evidence is kept."""
    parameters = _completion(request, result, result_dropped)

    def steps() -> Steps[Written | Lost]:
        rows = yield Statement("guard/read_locked", request.reading)
        if not rows:
            return Lost(None)
        record = record_of(rows[0])
        if record.mine and record.state is State.COMPLETED:
            return Written()
        if record.mine and record.state in (State.CLAIMED, State.HELD):
            written = yield Statement("guard/complete_late", parameters)
            if written:
                late = "late_finish" if record.state is State.HELD else "late"
                yield event(request, late, record.claim)
                return Written(late)
        yield from _keep_evidence(request, record, {"outcome": "acted", "result": _short(result)})
        return Lost(record)

    return Operation("guard_complete_late", steps)


def lost(request: Request, *, tried: str) -> Operation[Written | Lost]:
    """What became of the claim of an attempt whose step changed nothing; the try is kept as evidence."""

    def steps() -> Steps[Written | Lost]:
        rows = yield Statement("guard/read_locked", request.reading)
        if not rows:
            return Lost(None)
        record = record_of(rows[0])
        yield from _keep_evidence(request, record, {"outcome": tried})
        return Lost(record)

    return Operation("guard_lost", steps)


def release(request: Request, *, error: str | None) -> Operation[Written | Lost]:
    """Nothing happened: let the next delivery act. On a held operation it is evidence for the person."""
    parameters = request.parameters | {"error": error}
    return _fenced("release", request, parameters, "released", {"outcome": "not_done", "error": error})


def uncertain(request: Request, *, error: str | None) -> Operation[Written | Lost]:
    """The attempt ended and cannot tell: leave the claim to its policy, from now on."""
    parameters = request.parameters | {"error": error}
    return _fenced("uncertain", request, parameters, "uncertain", {"outcome": "unknown", "error": error})


def _once(name: str, parameters: dict[str, Any]) -> Operation[bool]:
    def steps() -> Steps[bool]:
        rows = yield Statement(f"guard/{name}", parameters)
        return bool(rows)

    return Operation(f"guard_{name}", steps, alone=True)


def _fenced(
    name: str, request: Request, parameters: dict[str, Any], told: str, evidence: dict[str, Any]
) -> Operation[Written | Lost]:
    def steps() -> Steps[Written | Lost]:
        rows = yield Statement("guard/read_locked", request.reading)
        if not rows:
            return Lost(None)
        record = record_of(rows[0])
        written = yield Statement(f"guard/{name}", parameters)
        if written:
            yield event(request, told, record.claim, why=evidence["error"])
            return Written()
        yield from _keep_evidence(request, record, evidence)
        return Lost(record)

    return Operation(f"guard_{name}", steps)


def _keep_evidence(request: Request, record: Record, detail: dict[str, Any]) -> Steps[None]:
    """What a lost attempt reports. Where a person may be about to decide, the record is another one than was shown."""
    yield event(request, "evidence", record.claim, detail=detail)
    if record.state is State.HELD or record.stale:
        yield Statement("guard/touch", request.identity)


def _completion(request: Request, result: str | None, result_dropped: bool) -> dict[str, Any]:
    return request.parameters | {
        "outcome": Outcome.ACTED.value,
        "result": result,
        "result_dropped": result_dropped,
    }


def _short(text: str | None) -> str | None:
    return None if text is None else text[:1000]
