"""The command ``semel``: every command by its name. What a command needs is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from semel.cli import database, enqueue, jobs, many, migrations, passed_on, reports, worker
from semel.cli.group import SemelGroup

HELP = """Background jobs on your PostgreSQL, stored in the transaction that caused them.

The database is --database, else SEMEL_DATABASE_URL, else the application's own, else the embedded server.
The application is module:attribute (as in shop.jobs:app), or SEMEL_APP.

Exit codes: 0 done · 1 the thing asked about is not so (no such job, another status, a schema that does not
fit) · 2 wrong usage · 3 what is needed could not be reached (database, embedded server).

Example: semel worker shop.jobs:app --children 2
"""


def build() -> typer.Typer:
    """The whole command line, made anew."""
    root = typer.Typer(
        cls=SemelGroup,
        name="semel",
        help=HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    root.callback()(_root)
    root.command("worker", rich_help_panel="Work")(worker.worker)
    root.command("enqueue", rich_help_panel="Work")(enqueue.enqueue)
    root.command("jobs", rich_help_panel="Look")(reports.jobs)
    root.command("queues", rich_help_panel="Look")(reports.queues)
    root.command("schedules", rich_help_panel="Look")(reports.schedules)
    root.add_typer(_job(), name="job", rich_help_panel="Act")
    root.command("retry", rich_help_panel="Act")(many.retry)
    root.command("purge", rich_help_panel="Act")(many.purge)
    root.command("migrate", rich_help_panel="Set up")(migrations.migrate)
    root.command("migration", rich_help_panel="Set up")(migrations.migration)
    root.add_typer(_database(), name="db", rich_help_panel="Set up")
    for name, command in (("demo", passed_on.demo), ("bench", passed_on.bench)):
        root.command(
            name,
            rich_help_panel="Try",
            add_help_option=False,
            context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
        )(command)
    return root


def main() -> None:
    """What the ``semel`` script calls."""
    build()(prog_name="semel")


def _show_version(wanted: bool) -> None:
    if wanted:
        from semel.version import __version__

        typer.echo(f"semel {__version__}")
        raise typer.Exit


def _root(
    debug: Annotated[
        bool, typer.Option("--debug", envvar="SEMEL_DEBUG", help="Show the traceback of an error.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and end."),
    ] = False,
) -> None:
    """Options before the command; what they do is done in group.py and by their callbacks."""


def _job() -> typer.Typer:
    group = typer.Typer(
        help="One job, or some by their ids: show, retry, cancel, delete.\n\nExample: semel job show 42",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for name in ("show", "retry", "cancel", "delete"):
        group.command(name)(getattr(jobs, name))
    return group


def _database() -> typer.Typer:
    group = typer.Typer(
        help="The embedded PostgreSQL, for development and tests.\n\nExample: semel db start",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for name in ("start", "stop", "status", "psql", "url", "destroy"):
        group.command(name, context_settings=dict(database.CONTEXT.get(name, {})))(getattr(database, name))
    return group
