"""Where operations are: on PostgreSQL beside the jobs, or on the guard's own MySQL, MariaDB or SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from semel.cli.place import DEFAULT_SCHEMA, find_place

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
    """A connection to where the operations are; the queue need not be there."""
    if database and not database.partition(":")[0].startswith("postgres") and "://" in database:
        from semel.store.own_connections import open_own

        own = open_own(database, schema=schema or DEFAULT_SCHEMA)
        try:
            with own.session() as session:
                yield session
        finally:
            own.close()
        return
    from semel.store.session import open_session

    place = find_place(database, schema)
    with open_session(place.url, schema=place.schema, name="semel cli") as opened:
        yield opened
