"""An application on another database for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from semel.queue.app import App


@contextmanager
def pointed_to(app: App, url: str) -> Iterator[App]:
    """The application itself, with all its jobs, on another database until the block ends; not a copy.

    It holds for every thread and task of this process.
    """
    address = app._address  # noqa: SLF001 - what it was told before, to tell it again
    before = address._given  # noqa: SLF001
    _close_idle(app)
    app.point_to(url)
    try:
        yield app
    finally:
        address._given = before  # noqa: SLF001
        _close_idle(app)


def _close_idle(app: App) -> None:
    """Close what leads to the database before, event loops' connections as well, which `App.close` leaves open."""
    app.close()
    for lane in list(app.database._loop_lanes.values()):  # noqa: SLF001
        while lane.idle:
            connection = lane.idle.pop().connection
            connection.pgconn.finish()
