"""The command ``semel``: every command by its name. What a command needs is imported when it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

import typer

from semel.cli import (
    database,
    doctor,
    enqueue,
    fit,
    held,
    jobs,
    many,
    migrations,
    note,
    operations,
    passed_on,
    relay,
    repeats,
    replay,
    replay_init,
    reports,
    sqs,
    worker,
)
from semel.cli.group import DefaultGroup, SemelGroup

HELP = """Background jobs on your PostgreSQL, stored in the transaction that caused them.

The database is --database, else SEMEL_DATABASE_URL, else the application's own, else the embedded server.
The application is module:attribute (as in shop.jobs:app), or SEMEL_APP.

Exit codes: 0 done · 1 the thing asked about is not so (no such job, another status, a schema that does not
fit) · 2 wrong usage · 3 what is needed could not be reached (database, embedded server).

Example: semel worker shop.jobs:app --children 2
"""

PASSED_ON: Final[Mapping[str, Any]] = MappingProxyType(
    {"allow_extra_args": True, "ignore_unknown_options": True}
)
"""For commands that hand the words after them to something else."""


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
    work: list[Callable[..., None]] = [worker.worker, relay.relay, enqueue.enqueue]
    look: list[Callable[..., None]] = [reports.jobs, reports.queues, reports.schedules, doctor.doctor]
    proof: list[Callable[..., None]] = [fit.fit, note.note, repeats.repeats]
    act: list[Callable[..., None]] = [many.retry, many.purge, migrations.migrate, migrations.migration]
    for command in work + look + proof + act:
        _add(root, command)
    root.add_typer(_job(), name="job")
    root.add_typer(_held(), name="held")
    root.add_typer(_operations(), name="operations")
    root.add_typer(_database(), name="db")
    root.add_typer(_sqs(), name="sqs")
    root.add_typer(_replay(), name="replay")
    for name in ("demo", "bench"):
        _add(root, getattr(passed_on, name), add_help_option=False, context_settings=dict(PASSED_ON))
    return root


def main() -> None:
    """What the ``semel`` script calls."""
    build()(prog_name="semel")


def _add(group: typer.Typer, command: Callable[..., None], **settings: Any) -> None:
    """A function as the command of its name. The mark keeps its example on one line, to be copied whole."""
    text = inspect.cleandoc(command.__doc__ or "").replace("Example: ", "\b\nExample: ")
    group.command(command.__name__.rstrip("_"), help=text, **settings)(command)


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
        _add(group, getattr(jobs, name))
    return group


def _held() -> typer.Typer:
    group = typer.Typer(
        help="Operations whose effect nobody can tell: a person decides.\n\nExample: semel held list",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for command in (held.list_, held.show, held.done, held.redo, held.abandon):
        _add(group, command)
    return group


def _operations() -> typer.Typer:
    group = typer.Typer(
        help="The guard's records: list, show, stale, redact, purge.\n\nExample: semel operations stale",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for command in (operations.list_, operations.show, operations.stale, operations.redact, operations.purge):
        _add(group, command)
    return group


def _sqs() -> typer.Typer:
    group = typer.Typer(
        help="Amazon SQS: run a consumer.\n\nExample: semel sqs worker shop.messages:consumer",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.callback()(lambda: None)  # a group with one command stays a group
    _add(group, sqs.worker)
    return group


def _replay() -> typer.Typer:
    group = typer.Typer(
        cls=DefaultGroup,
        help="Deliver a job's messages again, kill its workers, and count its effects.\n\n"
        "semel replay DESCRIPTION is short for semel replay run DESCRIPTION.\n\n"
        "Example: semel replay replay-charge.toml",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    _add(group, replay.run, cls=replay.RunCommand)
    _add(group, replay_init.init)
    return group


def _database() -> typer.Typer:
    group = typer.Typer(
        help="The embedded PostgreSQL, for development and tests.\n\nExample: semel db start",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for name in ("start", "stop", "status", "psql", "url", "destroy"):
        settings = dict(PASSED_ON) if name == "psql" else {}
        _add(group, getattr(database, name), context_settings=settings)
    return group
