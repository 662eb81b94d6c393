"""One job: retry, cancel, delete. Each act notes who did it and why, in the transaction that does it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from semel.core.settings import Settings
from semel.core.states import MOVES, Status, Verb
from semel.errors import NotFound, WrongState
from semel.store.statement import Operation, Statement, Steps
from semel.store.views import list_events


def _sources(verb: Verb) -> frozenset[Status]:
    return frozenset(old for (old, _), verbs in MOVES.items() if verb in verbs)


RETRIABLE: Final = _sources(Verb.REQUEUE)
CANCELLABLE: Final = _sources(Verb.CANCEL)
DELETABLE: Final = frozenset(Status) - {Status.RUNNING}


@dataclass(frozen=True, slots=True)
class Acted:
    """What an act changed. ``note`` says what else there is to know."""

    job_id: int
    before: Status
    after: Status | None
    """None: the job is gone."""
    new_id: int | None = None
    """The job that runs in its place, where the old one is in the history."""
    note: str = ""


def retry(job_id: int, *, who: str, why: str | None = None, seen: Status | None = None) -> Operation[Acted]:
    """Run an ended job again, from its first attempt.

    One that is in the history runs again as a copy with a new id. ``seen`` is the status that the person
    decided on: where it has changed since, nothing is done. Waits for whoever has the row locked. Raises
    NotFound, WrongState.
    """

    def steps() -> Steps[Acted]:
        before, historic = yield from _look(job_id, seen, RETRIABLE, "retried").steps()
        parameters = {"id": job_id, "who": who, "why": why}
        if not historic:
            yield Statement("operate/requeue", parameters | {"before": before.value})
            return Acted(job_id, before, Status.PENDING)
        copies = yield Statement("operate/requeue_copy", parameters)
        if not copies:
            raise WrongState(
                f"Job {job_id} is {before} and cannot run again: another job has its unique key.",
                holds="Nothing was changed.",
                remedy="See: semel jobs --unique-key …",
            )
        new_id = int(copies[0][0])
        note = f"It is in the history, so it runs again as job {new_id}."
        return Acted(job_id, before, Status.PENDING, new_id, note)

    return Operation("retry", steps)


def cancel(
    job_id: int,
    *,
    who: str,
    why: str | None = None,
    seen: Status | None = None,
    remember: timedelta | None = None,
) -> Operation[Acted]:
    """End a job that waits, runs, failed or is held as ``cancelled``; it moves to the history at once.

    With a unique key it stays, so that the key is remembered, for ``remember`` unless the job says. To cancel
    a running job takes its claim away: its handler is told at its worker's next lease beat. Raises NotFound,
    WrongState, and HistoryDayMissing, which `carry_out` mends.
    """
    keep = Settings().keep_done if remember is None else remember

    def steps() -> Steps[Acted]:
        before, _ = yield from _look(job_id, seen, CANCELLABLE, "cancelled").steps()
        parameters = {"id": job_id, "who": who, "why": why, "before": before.value}
        yield Statement("operate/cancel", parameters | {"remember": keep.total_seconds()})
        note = (
            "It was running: its claim is gone, and its handler is told so at its worker's next lease beat. "
            "What it has done outside the database stays done."
            if before is Status.RUNNING
            else ""
        )
        return Acted(job_id, before, Status.CANCELLED, note=note)

    return Operation("cancel", steps)


def delete(job_id: int, *, who: str, why: str | None = None, seen: Status | None = None) -> Operation[Acted]:
    """Delete a job that does not run, from wherever it is; its events stay. Raises NotFound, WrongState."""

    def steps() -> Steps[Acted]:
        before, _ = yield from _look(job_id, seen, DELETABLE, "deleted").steps()
        parameters = {"id": job_id, "who": who, "why": why, "before": before.value}
        rows = yield Statement("operate/delete", parameters)
        if not rows:
            raise NotFound(f"Job {job_id} was deleted by somebody else meanwhile.")
        return Acted(job_id, before, None)

    return Operation("delete", steps)


def _look(
    job_id: int, seen: Status | None, accepted: frozenset[Status], done: str
) -> Operation[tuple[Status, bool]]:
    """The job's status, locked where it is not in the history, and whether it is there."""

    def steps() -> Steps[tuple[Status, bool]]:
        rows = yield Statement("operate/lock_job", {"id": job_id})
        historic = not rows
        if historic:
            rows = yield Statement("operate/find_finished", {"id": job_id})
        if not rows:
            raise (yield from explain_missing(job_id).steps())
        status = Status(rows[0][0])
        if seen is not None and status is not seen:
            raise WrongState(
                f"Job {job_id} is {status} now, no longer {seen}.",
                holds="Nothing was changed.",
                remedy=f"Look at it again: semel job show {job_id}",
            )
        if status not in accepted:
            raise WrongState(
                f"Job {job_id} is {status}; only a job that is {_either(accepted)} can be {done}.",
                holds="Nothing was changed.",
                remedy=_way_out(job_id, status),
            )
        return status, historic

    return Operation("look", steps)


def explain_missing(job_id: int) -> Operation[NotFound]:
    """The error for a job that is not there: who deleted it, where that is known."""

    def steps() -> Steps[NotFound]:
        events = yield from list_events(job_id).steps()
        gone = next((event for event in reversed(events) if event.after is None), None)
        if gone is None:
            return NotFound(
                f"There is no job {job_id}.", remedy="Its retention may have ended. See: semel jobs"
            )
        why = f": {gone.why}" if gone.why else ""
        return NotFound(
            f"Job {job_id} is gone: {gone.who} did '{gone.act}' at {gone.at:%Y-%m-%d %H:%M %Z}{why}."
        )

    return Operation("explain_missing", steps)


def _either(statuses: frozenset[Status]) -> str:
    *most, last = [status.value for status in Status if status in statuses]
    return f"{', '.join(most)} or {last}"


def _way_out(job_id: int, status: Status) -> str:
    match status:
        case Status.RUNNING:
            return f"Wait for it to end, or cancel it first: semel job cancel {job_id}"
        case Status.PENDING:
            return "It runs when it is due and a worker of its queue is free."
    return f"See: semel job show {job_id}"
