"""Where operations are: on PostgreSQL beside the jobs, or on the guard's own MySQL, MariaDB or SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from semel.cli.place import DEFAULT_SCHEMA, open_place

if TYPE_CHECKING:
    from semel.store.run import Session

GuardDatabase = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        envvar="SEMEL_DATABASE_URL",
        metavar="URL",
        help="Where the operations are: postgresql://, mysql:// or sqlite:///path.",
    ),
]


@contextmanager
def open_guard(database: str | None, schema: str | None) -> Iterator[Session]:
    """A connection to where the operations are."""
    if database and not database.partition(":")[0].startswith("postgres") and "://" in database:
        from semel.store.own_connections import open_own

        own = open_own(database, schema=schema or DEFAULT_SCHEMA)
        try:
            with own.session() as session:
                yield session
        finally:
            own.close()
        return
    with open_place(database, schema) as session:
        yield session
