"""The inbox of held operations: what a person decides about an effect that nobody can tell of."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semel.cli.choices import AsJson, DryRun, Schema, Who, name_person
from semel.cli.guard_place import GuardDatabase, open_guard
from semel.cli.operation_choices import (
    ChangedAfter,
    ChangedBefore,
    InScope,
    JobType,
    Label,
    Reason,
    build_operation_filter,
)
from semel.cli.operation_output import find_job_beside, print_changes, print_operation, print_page
from semel.cli.operations import show
from semel.cli.output import print_json, progress_bar
from semel.cli.reports import Before, Limit
from semel.cli.resending import CeleryApp, NoSend, SidekiqRedis, find_resenders

if TYPE_CHECKING:
    from semel.core.operation_report import OperationFilter, OperationRecord
    from semel.core.people import Act
    from semel.operate.held import Resolved
    from semel.operate.held_many import ManyResolved
    from semel.operate.resending import Resender
    from semel.store.run import Session

__all__ = ["abandon", "done", "list_", "redo", "show"]

Id = Annotated[int | None, typer.Argument(metavar="ID", help="One operation; without it, a filter.")]
ClaimNumber = Annotated[
    int | None,
    typer.Option(
        "--claim", metavar="N", help="The claim number that you were shown: the decision is about that."
    ),
]
RevisionNumber = Annotated[
    int | None,
    typer.Option(
        "--revision", metavar="N", help="The revision that you were shown: nothing may be written since."
    ),
]
Stale = Annotated[
    bool,
    typer.Option(
        "--stale", help="Claims past their lease, and released ones that nobody claims, instead of held."
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="Without any filter: every held operation.")]
NewReference = Annotated[
    bool, typer.Option("--new-reference", help="Under another reference: the provider remembers a failure.")
]
ResultText = Annotated[
    str | None, typer.Option("--result", metavar="JSON", help="What further deliveries are answered with.")
]


def list_(
    job_type: JobType = None,
    scope: InScope = None,
    label: Label = None,
    older: ChangedBefore = None,
    newer: ChangedAfter = None,
    stale: Stale = False,
    limit: Limit = 50,
    before: Before = None,
    database: GuardDatabase = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """List the operations that wait for a person, newest first.

    Example: semel held list --job-type charge-order
    """
    from semel.store.guard_views import list_operations
    from semel.store.run import run

    wanted = _wanted(stale, job_type, scope, label, (older, newer))
    with open_guard(database, schema) as session:
        page = run(list_operations(wanted, limit=limit, before_id=before), session)
    print_page(page, as_json=as_json, nothing="Nothing is stale." if stale else "Nothing is held.")


def done(
    reason: Reason,
    operation_id: Id = None,
    claim: ClaimNumber = None,
    revision: RevisionNumber = None,
    result: ResultText = None,
    job_type: JobType = None,
    scope: InScope = None,
    label: Label = None,
    older: ChangedBefore = None,
    newer: ChangedAfter = None,
    stale: Stale = False,
    everything: Everything = False,
    dry_run: DryRun = False,
    who: Who = None,
    database: GuardDatabase = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Say that the effect happened: the operation is completed.

    One by its id, with the claim number and the revision that were shown, or all held ones that match a filter. Its
    job on the semel queue is done in the same commit.

    Example: semel held done 42 --claim 3 --revision 7 --reason "the charge is in the provider's list"
    """
    wanted = _wanted(stale, job_type, scope, label, (older, newer))
    task = _Task(
        "done",
        reason,
        who,
        operation_id,
        (claim, revision),
        wanted,
        everything,
        dry_run,
        as_json,
        result=result,
    )
    _carry_out(task, database, schema)


def redo(
    reason: Reason,
    operation_id: Id = None,
    claim: ClaimNumber = None,
    revision: RevisionNumber = None,
    new_reference: NewReference = False,
    job_type: JobType = None,
    scope: InScope = None,
    label: Label = None,
    older: ChangedBefore = None,
    newer: ChangedAfter = None,
    stale: Stale = False,
    everything: Everything = False,
    dry_run: DryRun = False,
    celery: CeleryApp = None,
    sidekiq: SidekiqRedis = None,
    no_send: NoSend = False,
    who: Who = None,
    database: GuardDatabase = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Say that the effect did not happen: the next delivery acts.

    The operation is released and its message sent again, where it is kept; through --celery or --sidekiq where it
    came from there: without that option nothing is changed. A paused worker that wakes inside its call can still double
    the effect: look at the lease and the last sign of life first.

    Example: semel held redo 42 --claim 3 --revision 7 --reason "the provider has no such charge"
    """
    wanted = _wanted(stale, job_type, scope, label, (older, newer))
    task = _Task(
        "redo",
        reason,
        who,
        operation_id,
        (claim, revision),
        wanted,
        everything,
        dry_run,
        as_json,
        new_reference=new_reference,
        no_send=no_send or dry_run,
        resenders=() if no_send or dry_run else tuple(find_resenders(celery, sidekiq)),
    )
    _carry_out(task, database, schema)


def abandon(
    reason: Reason,
    operation_id: Id = None,
    claim: ClaimNumber = None,
    revision: RevisionNumber = None,
    job_type: JobType = None,
    scope: InScope = None,
    label: Label = None,
    older: ChangedBefore = None,
    newer: ChangedAfter = None,
    stale: Stale = False,
    everything: Everything = False,
    dry_run: DryRun = False,
    who: Who = None,
    database: GuardDatabase = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Say that it is not to be tried again, whether it happened or not.

    Further deliveries are told so. Its job on the semel queue is cancelled in the same commit.

    Example: semel held abandon --job-type nightly-mail --older "7 days" --reason "too late now" --dry-run
    """
    wanted = _wanted(stale, job_type, scope, label, (older, newer))
    task = _Task(
        "abandon", reason, who, operation_id, (claim, revision), wanted, everything, dry_run, as_json
    )
    _carry_out(task, database, schema)


@dataclass(frozen=True, slots=True)
class _Task:
    act: str
    reason: str
    who: str | None
    operation_id: int | None
    shown: tuple[int | None, int | None]
    """The claim number and the revision that were shown."""
    wanted: OperationFilter
    everything: bool
    dry_run: bool
    as_json: bool
    result: str | None = None
    new_reference: bool = False
    no_send: bool = False
    resenders: tuple[Resender, ...] = ()


def _wanted(
    stale: bool,
    job_type: str | None,
    scope: str | None,
    label: str | None,
    changed: tuple[str | None, str | None],
) -> OperationFilter:
    from datetime import timedelta

    from semel.core.operations import State

    states = frozenset({State.CLAIMED, State.RELEASED} if stale else {State.HELD})
    return build_operation_filter(states, job_type, scope, label, changed, timedelta(0) if stale else None)


def _carry_out(task: _Task, database: str | None, schema: str | None) -> None:
    from semel.core.people import Act
    from semel.operate.sendable import refuse_unsendable

    act = Act(task.act)
    _check(task)
    with open_guard(database, schema) as session:
        if act is Act.REDO and not task.no_send:
            refuse_unsendable(session, task.operation_id or task.wanted, task.resenders)
        if task.operation_id is not None:
            resolved = _resolve_one(session, task, act, task.operation_id)
            _report_one(resolved, as_json=task.as_json)
            return
        with progress_bar("deciding", quiet=task.as_json or task.dry_run) as progress:
            from semel.operate.held_many import decide_many

            many = decide_many(
                session,
                task.wanted,
                act,
                who=name_person(task.who),
                why=task.reason,
                new_reference=task.new_reference,
                resenders=task.resenders,
                dry_run=task.dry_run,
                progress=progress,
            )
    _report_many(many, task)


def _check(task: _Task) -> None:
    from semel.errors import ConfigurationError

    if not task.reason.strip():
        raise ConfigurationError("--reason is empty.", remedy="Say how you know: it stays on record.")
    if task.operation_id is not None:
        if task.wanted.narrow or task.everything or task.dry_run:
            raise ConfigurationError("An id was given and a filter too.", remedy="Give one of them.")
        if task.shown[0] is None and task.shown[1] is not None:
            raise ConfigurationError("--revision goes with --claim.", remedy="Give both, as they were shown.")
    elif task.shown != (None, None) or task.result is not None:
        raise ConfigurationError(
            "--claim, --revision and --result are about one operation.", remedy="Give its id."
        )
    elif not task.wanted.narrow and not task.everything:
        raise ConfigurationError(
            "Neither an id nor a filter was given.",
            remedy="Say which operations (ID, --job-type, --label, --older, …), or --all.",
        )


def _resolve_one(session: Session, task: _Task, act: Act, operation_id: int) -> Resolved:
    claim, revision = task.shown
    if claim is not None:
        return _decide(session, task, act, operation_id, claim, revision)
    from semel.errors import WrongState

    shown = _show(session, task, operation_id)
    while True:
        typer.confirm(f"{task.act.capitalize()} this operation?", abort=True)
        one = shown.operation
        try:
            return _decide(session, task, act, operation_id, one.claim, one.revision)
        except WrongState:
            now = _find(session, operation_id)
            if now.operation.revision != one.revision:
                print_changes(shown, now)
            if now.operation.revision == one.revision or not now.operation.waits(now.as_of):
                raise
            shown = now


def _decide(
    session: Session, task: _Task, act: Act, operation_id: int, claim: int, revision: int | None
) -> Resolved:
    from semel.guard.declaration import make_reference
    from semel.operate.held import resolve
    from semel.store.guard_people import Decision

    decision = Decision(
        operation_id=operation_id,
        act=act,
        seen=claim,
        revision=revision,
        who=name_person(task.who),
        why=task.reason,
        new_reference=make_reference() if task.new_reference else None,
        result=None if task.result is None else json.dumps(_read_json(task.result)),
    )
    return resolve(session, decision, task.resenders)


def _show(session: Session, task: _Task, operation_id: int) -> OperationRecord:
    """Show the operation in a terminal; the yes that follows is about what was shown."""
    from semel.errors import ConfigurationError

    if task.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigurationError(
            "--claim is missing.",
            holds="Nothing was changed.",
            remedy=f"Give the claim number that you decide on, and the revision: semel held show {operation_id}",
        )
    record = _find(session, operation_id)
    print_operation(record, find_job_beside(session, record), as_json=False)
    return record


def _find(session: Session, operation_id: int) -> OperationRecord:
    from semel.errors import NotFound
    from semel.store.guard_views import find_operation
    from semel.store.run import run

    record = run(find_operation(operation_id), session)
    if record is None:
        raise NotFound(f"There is no operation {operation_id}.", remedy="See: semel held list")
    return record


def _read_json(text: str) -> Any:
    from semel.errors import ConfigurationError

    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigurationError(
            f"--result is no JSON: {error}.", remedy="For text, quote it twice: --result '\"ch_1\"'"
        ) from error


def _report_one(resolved: Resolved, *, as_json: bool) -> None:
    if as_json:
        print_json(resolved)
        return
    line = f"Operation {resolved.operation_id} ({resolved.name}): {resolved.before} → {resolved.after}."
    typer.echo(f"{line} {resolved.note}".rstrip())


def _report_many(many: ManyResolved, task: _Task) -> None:
    if task.as_json:
        shown = {"matched": many.matched, "changed": many.changed, "unsent": many.unsent}
        why = {"unsent_why": list(many.unsent_why), "left": list(many.left)}
        print_json(shown | why | {"dry_run": task.dry_run})
        return
    if task.dry_run:
        typer.echo(f"{many.matched:,} operations match; nothing was changed.")
        return
    typer.echo(f"{many.changed:,} of {many.matched:,} operations: {task.act}.")
    if many.unsent:
        typer.echo(f"Released, but not sent again: {many.unsent:,}. In 10 minutes: semel operations stale")
    for reason in many.unsent_why:
        typer.echo(f"Not sent: {reason}")
    for reason in many.left:
        typer.echo(f"Left: {reason}")
