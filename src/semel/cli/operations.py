"""The records of the guard: list, show, what waits unseen, redact, purge."""

from __future__ import annotations

from typing import Annotated

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
    States,
    What,
    build_operation_filter,
    find_id,
    parse_states,
)
from semel.cli.operation_output import find_job_beside, print_operation, print_page
from semel.cli.output import age, print_json, print_table, progress_bar
from semel.cli.reports import Before, Limit

Age = Annotated[
    str, typer.Option("--older", metavar="AGE", help='Ended longer ago: "90 days".', show_default=False)
]


def list_(
    state: States = None,
    job_type: JobType = None,
    scope: InScope = None,
    label: Label = None,
    older: ChangedBefore = None,
    newer: ChangedAfter = None,
    limit: Limit = 50,
    before: Before = None,
    database: GuardDatabase = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """List operations, newest first; every filter that is given must hold.

    Example: semel operations list --job-type charge-order --state completed --newer "2 h"
    """
    from semel.store.guard_views import list_operations
    from semel.store.run import run

    wanted = build_operation_filter(parse_states(state), job_type, scope, label, (older, newer))
    with open_guard(database, schema) as session:
        page = run(list_operations(wanted, limit=limit, before_id=before), session)
    print_page(page, as_json=as_json, nothing="No such operations.")


def show(
    what: What,
    job_type: JobType = None,
    scope: InScope = None,
    database: GuardDatabase = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Show one operation with its history.

    By its id, its label or its key (64 hexadecimal digits); with --job-type also by the value of its key, one word
    for each part. Where a word could be text or a number, both are looked for; str:, int:, uuid:, date:, datetime:,
    decimal: or bool: in front of it says which.

    Example: semel operations show --job-type charge-order 4711
    """
    from semel.errors import NotFound
    from semel.store.guard_views import find_operation
    from semel.store.run import run

    with open_guard(database, schema) as session:
        operation_id = find_id(session, what, job_type, scope)
        record = run(find_operation(operation_id), session)
        if record is None:
            raise NotFound(f"There is no operation {operation_id}.", remedy="See: semel operations list")
        job = find_job_beside(session, record)
    print_operation(record, job, as_json=as_json)


def stale(
    job_type: JobType = None,
    scope: InScope = None,
    limit: Limit = 50,
    before: Before = None,
    database: GuardDatabase = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """List what nobody delivers again.

    Claims whose lease ended, and released operations that nobody claimed, more than 10 minutes ago. Above them, per
    job type, how many there are, and how many are held.

    Example: semel operations stale
    """
    from semel.core.operations import State
    from semel.core.people import UNCLAIMED
    from semel.store.guard_views import count_waiting, list_operations
    from semel.store.run import run

    states = frozenset({State.CLAIMED, State.RELEASED})
    wanted = build_operation_filter(states, job_type, scope, None, (None, None), UNCLAIMED)
    with open_guard(database, schema) as session:
        counted = [one for one in run(count_waiting(), session) if job_type in (None, one.job_type)]
        page = run(list_operations(wanted, limit=limit, before_id=before), session)
    if as_json:
        shown = {"as_of": page.as_of, "operations": page.operations, "next_before_id": page.next_before_id}
        print_json(shown | {"waiting": counted})
        return
    if counted:
        rows = (
            (one.job_type, str(one.held), str(one.stale), str(one.released), age(one.longest))
            for one in counted
        )
        print_table("", ("job type", "held", "stale", "released", "longest for"), rows)
    print_page(page, as_json=False, nothing="Nothing waits unseen.")


def redact(
    what: What,
    reason: Reason,
    job_type: JobType = None,
    scope: InScope = None,
    who: Who = None,
    database: GuardDatabase = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Erase what an operation holds of its data.

    Result, label, last error and message, and errors and evidence in its history. Its key stays, so repeats are
    still known; they get no result, and a redo has no message to send.

    Example: semel operations redact 42 --reason "erasure request 7"
    """
    from semel.operate.held import redact as act

    with open_guard(database, schema) as session:
        operation_id = find_id(session, what, job_type, scope)
        act(session, operation_id, name_person(who), reason)
    if as_json:
        print_json({"operation_id": operation_id, "act": "redact"})
    else:
        typer.echo(f"Operation {operation_id} is redacted.")


def purge(
    older: Age,
    state: States = None,
    events: Annotated[
        bool, typer.Option("--events", help="Instead, the history of operations that are gone.")
    ] = False,
    dry_run: DryRun = False,
    database: GuardDatabase = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Delete completed operations, by age; with --state released, those that nobody claimed for so long.

    On PostgreSQL a worker's upkeep does this by itself; elsewhere let it run from time to time. A deleted operation
    is forgotten: a message that comes after that acts. Claimed and held ones never expire.

    Example: semel operations purge --older "90 days" --dry-run
    """
    from semel.core.durations import to_timedelta
    from semel.core.operations import State
    from semel.errors import ConfigurationError
    from semel.operate.held_many import purge_operation_events, purge_operations

    keep = to_timedelta(older, name="--older")
    if events and (dry_run or state):
        raise ConfigurationError("--events goes with --older alone.", holds="Nothing was deleted.")
    with (
        open_guard(database, schema) as session,
        progress_bar("deleting", quiet=as_json or dry_run) as progress,
    ):
        if events:
            _report_events(purge_operation_events(session, keep), as_json=as_json)
            return
        states = parse_states(state) or frozenset({State.COMPLETED})
        acted = purge_operations(session, states, keep, dry_run=dry_run, progress=progress)
    if as_json:
        print_json({"matched": acted.matched, "changed": acted.changed, "dry_run": dry_run})
    elif dry_run:
        typer.echo(f"{_operations(acted.matched)} would be deleted.")
    else:
        typer.echo(f"{_operations(acted.changed)} deleted.")


def _report_events(deleted: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"deleted_events": deleted})
    else:
        typer.echo(f"{deleted:,} events deleted.")


def _operations(count: int) -> str:
    return f"{count:,} operation{'' if count == 1 else 's'}"
