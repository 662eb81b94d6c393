"""``semel db``: the embedded PostgreSQL."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semel.cli.choices import AsJson
from semel.cli.group import NOT_SO, UNREACHABLE
from semel.cli.output import print_json
from semel.cli.place import DEFAULT_SCHEMA

if TYPE_CHECKING:
    from semel.embedded import EmbeddedServer

Directory = Annotated[
    Path | None,
    typer.Option("--directory", metavar="DIR", help="The server's directory [$SEMEL_HOME/postgres]."),
]


def start(
    directory: Directory = None,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Listen on 127.0.0.1 as well.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start the server and print its URL.

    It runs in the background, and has semel's tables.

    Example: export SEMEL_DATABASE_URL="$(semel db start)"
    """
    from semel.embedded import EmbeddedServer
    from semel.store.migrate import migrate_database

    server = EmbeddedServer(directory, port=port)
    url = server.start(background=True)
    migrate_database(url)
    if as_json:
        print_json({"url": url, "tcp_url": None if port is None else server.tcp_url()})
        return
    typer.echo(url)
    if port is not None:
        typer.echo(f"Over TCP: {server.tcp_url()}", err=True)


def stop(directory: Directory = None) -> None:
    """Stop the server; its data stays.

    Example: semel db stop
    """
    server = _server(directory)
    running = server.status().running
    server.stop()
    typer.echo("Stopped." if running else "It was not running.")


def status(directory: Directory = None, as_json: AsJson = False) -> None:
    """Say whether the server runs, and where.

    Exit code 1 where it does not run.

    Example: semel db status --json
    """
    found = _server(directory).status()
    if as_json:
        print_json(found)
    else:
        process = f", process {found.pid}" if found.pid else ""
        version = f", PostgreSQL {found.version}" if found.version else ""
        typer.echo(f"{found.state}{process}{version}")
        typer.echo(f"  directory  {found.directory}\n  log        {found.log}\n  url        {found.url}")
    if not found.running:
        raise typer.Exit(NOT_SO)


def url(directory: Directory = None) -> None:
    """Print the URL, whether it runs or not.

    Example: psql "$(semel db url)"
    """
    typer.echo(_server(directory).url())


def psql(ctx: typer.Context, directory: Directory = None) -> None:
    """Open psql on the server.

    Tables are found in public and in semel's schema, and made in public; further words go to psql.

    Example: semel db psql -c "INSERT INTO jobs (kind) VALUES ('hello')"
    """
    server = _server(directory)
    if not server.status().running:
        typer.echo("Error: The embedded server does not run.\n  Run: semel db start", err=True)
        raise typer.Exit(UNREACHABLE)
    command = [*server.psql_command(), *ctx.args]
    os.environ.setdefault("PGOPTIONS", f"-c search_path=public,{DEFAULT_SCHEMA}")
    sys.stdout.flush()
    os.execvp(command[0], command)  # noqa: S606 - the program is the server's own, no shell


def destroy(
    directory: Directory = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Stop the server and delete its directory.

    Every job in it is gone then.

    Example: semel db destroy --yes
    """
    from semel.errors import ConfigurationError

    server = _server(directory)
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigurationError(f"This deletes {server.directory}.", remedy="Say --yes to do it.")
        typer.confirm(f"Delete {server.directory} with every job in it?", abort=True)
    server.destroy()
    typer.echo("Destroyed.")


def _server(directory: Path | None) -> EmbeddedServer:
    from semel.embedded import EmbeddedServer

    return EmbeddedServer(directory)
