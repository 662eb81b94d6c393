"""Many jobs at once, by filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from semel.cli.choices import (
    AsJson,
    Database,
    DryRun,
    EndedNewer,
    EndedOlder,
    ErrorText,
    Kind,
    Newer,
    Older,
    Queue,
    Schema,
    Statuses,
    Who,
    Why,
    build_filter,
    name_person,
    parse_statuses,
    parse_when,
)
from semel.cli.output import print_json, progress_bar
from semel.cli.place import open_place

if TYPE_CHECKING:
    from semel.operate import ManyActed

Everything = Annotated[bool, typer.Option("--all", help="Without any filter: every failed job.")]
EndedStatuses = Annotated[
    list[str],
    typer.Option(
        "--status", "-s", metavar="STATUS", help="done, cancelled, failed, held.", show_default=False
    ),
]
EndedBefore = Annotated[
    str,
    typer.Option(
        "--older", metavar="AGE", help='Ended longer ago: "7 days", or before a date.', show_default=False
    ),
]


def retry(
    status: Statuses = None,
    queue: Queue = None,
    kind: Kind = None,
    error: ErrorText = None,
    older: Older = None,
    newer: Newer = None,
    ended_older: EndedOlder = None,
    ended_newer: EndedNewer = None,
    everything: Everything = False,
    dry_run: DryRun = False,
    who: Who = None,
    why: Why = None,
    database: Database = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Run many failed jobs again, by filter.

    Held ones only with --status held. Each batch of 1,000 commits by itself, so an interrupted run can be started again.

    Example: semel retry --kind send_invoice --error "timed out" --dry-run
    """
    from semel.errors import ConfigurationError
    from semel.operate import retry_many

    wanted = build_filter(status, queue, kind, error, (older, newer), (ended_older, ended_newer))
    if not wanted.narrow and not everything:
        raise ConfigurationError(
            "No filter was given.", remedy="Say which jobs (--kind, --queue, --error, …), or --all."
        )
    with (
        open_place(database, schema) as session,
        progress_bar("retrying", quiet=as_json or dry_run) as progress,
    ):
        acted = retry_many(session, wanted, who=name_person(who), why=why, dry_run=dry_run, progress=progress)
    _report(acted, "run again", dry_run=dry_run, as_json=as_json)


def purge(
    status: EndedStatuses,
    older: EndedBefore,
    queue: Queue = None,
    kind: Kind = None,
    dry_run: DryRun = False,
    who: Who = None,
    why: Why = None,
    database: Database = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Delete ended jobs, by status and age.

    Retention does this by itself for whole days. Finished jobs that are remembered for their unique key stay.

    Example: semel purge --status done --kind resize_image --older "6 h" --dry-run
    """
    from semel.errors import ConfigurationError
    from semel.operate import purge as act

    moment = parse_when(older, "--older")
    if moment is None:
        raise ConfigurationError("--older is empty.", remedy='For example --older "7 days".')
    with (
        open_place(database, schema) as session,
        progress_bar("deleting", quiet=as_json or dry_run) as progress,
    ):
        acted = act(
            session,
            parse_statuses(status),
            moment,
            queue=queue,
            kind=kind,
            who=name_person(who),
            why=why,
            dry_run=dry_run,
            progress=progress,
        )
    _report(acted, "deleted", dry_run=dry_run, as_json=as_json)


def _report(acted: ManyActed, done: str, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"matched": acted.matched, "changed": acted.changed, "dry_run": dry_run})
    elif dry_run:
        typer.echo(f"{_jobs(acted.matched)} would be {done}.")
    else:
        left = acted.matched - acted.changed
        rest = f" {_jobs(left)} had changed or were in use, and were left." if left > 0 else ""
        typer.echo(f"{_jobs(acted.changed)} {done}.{rest}")


def _jobs(count: int) -> str:
    return f"{count:,} job{'' if count == 1 else 's'}"
