"""The schema: ``semel migrate`` and ``semel migration``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from semel.cli.choices import AsJson, Database, Schema
from semel.cli.output import print_json
from semel.cli.place import DEFAULT_SCHEMA, find_place


def migrate(
    step: Annotated[
        Literal["all", "pre", "post"],
        typer.Option("--step", help="pre: before the new code runs; post: when no old code runs any more."),
    ] = "all",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be applied.")] = False,
    database: Database = None,
    schema: Schema = None,
    as_json: AsJson = False,
) -> None:
    """Make the tables, or bring them up to date.

    Safe to run again, and from many places at once.

    Example: semel migrate --database postgresql://localhost/shop --dry-run
    """
    from semel.store.migrate import check_schema, migrate_database, read_state

    place = find_place(database, schema, migrated=False)
    steps = migrate_database(place.url, schema=place.schema, step=step, dry_run=dry_run)
    state = read_state(place.url, schema=place.schema)
    if as_json:
        listed = [{"version": one.version, "phase": one.phase, "name": one.name} for one in steps]
        print_json({"schema": place.schema, "version": state.version, "dry_run": dry_run, "steps": listed})
    else:
        for one in steps:
            typer.echo(f"{'would apply' if dry_run else 'applied'} {one}")
        if not steps:
            typer.echo("Nothing to do.")
        typer.echo(f"The schema {place.schema} is at version {state.version}.")
    if not dry_run:
        check_schema(state)


def migration(
    format_: Annotated[
        Literal["sql", "alembic", "django", "goose", "rails"],
        typer.Argument(metavar="FORMAT", show_default=False),
    ],
    since: Annotated[int, typer.Option("--since", min=0, help="Only what follows this schema version.")] = 0,
    down: Annotated[
        bool, typer.Option("--down", help="The way back (for sql; the others hold both).")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it; never over a file."),
    ] = None,
    only: Annotated[
        Literal["guard"] | None,
        typer.Option("--only", help="The guard's tables alone, without the queue.", show_default=False),
    ] = None,
    dialect: Annotated[
        Literal["postgresql", "mysql", "sqlite"],
        typer.Option("--dialect", help="With --only guard: for which database; mysql is MariaDB too."),
    ] = "postgresql",
    schema: Schema = None,
) -> None:
    """Print the schema as a migration file.

    For plain sql, alembic, django, goose or rails. The way down deletes semel's tables with every job and operation in
    them.

    Example: semel migration alembic -o migrations/versions/0042_semel.py
    """
    from semel.store.export import export, export_guard

    _check_choice(only, dialect, since)
    if only is None:
        text = export(format_, schema or DEFAULT_SCHEMA, since=since, down=down)
    else:
        text = export_guard(format_, dialect, schema or DEFAULT_SCHEMA, down=down)
    if output is None:
        typer.echo(text, nl=False)
        return
    _write_new(output, text)
    typer.echo(f"Written: {output}")


def _check_choice(only: str | None, dialect: str, since: int) -> None:
    from semel.errors import ConfigurationError

    if only is None and dialect != "postgresql":
        raise ConfigurationError(
            f"The queue is for PostgreSQL, and --dialect is {dialect}.",
            remedy="Add --only guard: the guard's tables alone.",
        )
    if only is not None and since:
        raise ConfigurationError("--since counts the queue's schema versions.", remedy="Leave out --only.")


def _write_new(output: Path, text: str) -> None:
    from semel.errors import ConfigurationError

    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigurationError(
            f"Could not write {output}: {error.strerror}.",
            remedy="Name a new file in a directory that exists.",
        ) from error
