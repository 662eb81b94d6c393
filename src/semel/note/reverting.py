"""How to take the guard off again: the steps that are right for this queue and this database."""

from __future__ import annotations

from datetime import timedelta

from semel.core.durations import describe
from semel.core.effects import Effect, Row
from semel.note.page import code
from semel.note.ways import Kind, Subject


def steps(subject: Subject, keep_until: timedelta | None) -> tuple[str, ...]:
    """In order."""
    declaration = subject.guarded.declaration
    job_type = declaration.job_type
    kinds = {way.kind for way in subject.ways}
    found = [
        "Know what comes back: without the guard each delivery acts, also one of a message that was done long ago.",
        "Decide what is open, since code without the guard asks no record: "
        f"{code(f'semel held list --job-type {job_type}')}, and "
        f"{code(f'semel operations list --job-type {job_type} --state claimed')} until it is empty.",
        *_unwrap(subject, kinds, declaration.effect),
        (
            "Stop all old workers before the first new one starts: side by side, the new ones act on "
            "what the old ones have claimed."
        ),
        *_messages(kinds),
        _table(subject, keep_until),
    ]
    return tuple(found)


def _unwrap(subject: Subject, kinds: set[Kind], effect: Effect) -> list[str]:
    takes = subject.guarded.takes_operation
    parameter = (
        f" and the parameter of the operation, with what uses it ({code('op.acting()')}, {code('op.done(…)')})"
        if takes
        else ""
    )
    found = []
    if Kind.SEMEL in kinds:
        rows = (
            f"; add {code('transaction=True')}, so that its rows stay one commit with the job"
            if isinstance(effect, Row)
            else ""
        )
        found.append(f"In the job, take out {code('once=…')}{parameter}{rows}.")
    if Kind.CELERY in kinds:
        found.append(
            f"Under {code('@app.task')}, take out {code('@guard(…)')} (or {code('base=GuardedTask')}){parameter}."
        )
    if not found:
        found.append(f"Take out the decorator {code('@….operation(…)')}{parameter}.")
    if Kind.SQS in kinds:
        found.append(f"The consumer may stay: {code('Consumer')} takes plain functions too.")
    return found


def _messages(kinds: set[Kind]) -> list[str]:
    found = [
        "Messages in flight still fit: callers never passed the operation, so the arguments are the same."
    ]
    if Kind.SEMEL in kinds:
        found.append(
            "On the semel queue a job whose worker dies runs again by itself. Where twice is worse than not at all, set "
            f"{code('max_attempts=1')} before the guard goes; jobs that are held stay held: retry or "
            f"cancel each ({code('semel jobs --status held')})."
        )
    if Kind.CELERY in kinds:
        found.append(
            f"On Celery, {code('acks_late')} and {code('reject_on_worker_lost')} deliver the task of "
            "a killed worker again, which the "
            "guard made harmless: switch them off where twice is worse than not at all. Another task may count on them."
        )
    if Kind.SQS in kinds:
        found.append(
            "On SQS every message can come twice, from a FIFO queue too. A visibility time-out well "
            "over the longest run makes it rarer, "
            "and nothing else does."
        )
    return found


def _table(subject: Subject, keep_until: timedelta | None) -> str:
    dialect = subject.guarded.place.dialect
    tables = "semel.operations" if dialect == "postgresql" else "semel_operations"
    wait = (
        "the last message of the old days cannot come any more"
        if keep_until is None
        else f"{describe(keep_until)} have passed"
    )
    dropped = {
        "postgresql": (
            "DROP TABLE semel.operation_events, semel.operations; not where the semel queue is: they "
            "are part of its schema"
        ),
        "mysql": "DROP TABLE semel_operation_events, semel_operations",
        "sqlite": "DROP TABLE semel_operation_events; DROP TABLE semel_operations",
    }[dialect]
    statement, _, but = dropped.partition("; not")
    return (
        f"Keep the table {code(tables)} until {wait}: where the guard comes back before, repeats "
        "are still known, and it is the "
        f"evidence of what was done. Only then, and only where no other job is guarded: {code(statement)}"
        + (f" (not{but})." if but else ".")
    )
