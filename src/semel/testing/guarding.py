"""Guarded functions in tests that roll back at their end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from semel.guard.once import Once
from semel.guard.places import require_transaction


@contextmanager
def inside_transaction(once: Once, connection: Any) -> Iterator[None]:
    """Keep what ``once`` records inside a test's own transaction: claims are savepoints of it, and go with its rollback.

    Else they would be committed on the guard's own connections, outlive the test, and answer the next one with a repeat.
    ``connection`` is whatever a `Row()` takes, sync or async as the guarded functions are: a connection, a session, a Django
    alias. It holds for this thread or task and for tasks that it starts. Outside effects are not refused in the block.
    """
    require_transaction(
        connection,
        "inside_transaction(…) got a connection without an open transaction: every claim would be committed.",
    )
    before = once.place.inside.get()
    once.place.inside.set(connection)
    try:
        yield
    finally:
        once.place.inside.set(before)
