"""A connection of one's own for the length of a block: for commands and migrations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from semel.sql import Catalogue
from semel.store.connect import connect
from semel.store.drivers.psycopg3 import PsycopgSession


@contextmanager
def open_session(url: str, *, schema: str = "semel", name: str = "semel") -> Iterator[PsycopgSession]:
    """Connect, and close at the end. ``name`` is shown by the server. Raises `DatabaseUnreachable`."""
    session = connect(url, Catalogue(schema), name=name)
    try:
        yield session
    finally:
        session.connection.close()
