"""A database that is killed and restarted under load costs time only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.servers import make_server
from tests.support.application import app as application
from tests.support.journal import Journal
from tests.support.stored import statuses
from tests.support.waiting import until
from tests.support.workers import Worker

from semel.embedded import EmbeddedServer
from semel.store.migrate import migrate_database

JOBS = 3_000
RESTARTS = 5


@pytest.fixture
def durable_server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server that writes to disk before it says that it has, unlike those of other tests."""
    server = make_server(tmp_path / "postgres", settings={"max_connections": "100"})
    try:
        migrate_database(server.start())
        yield server
    finally:
        server.destroy()


def test_every_job_is_done_although_the_server_is_killed_five_times(
    durable_server: EmbeddedServer, tmp_path: Path, journal: Journal
) -> None:
    url = durable_server.url()
    with application.with_database(url) as app:
        app.jobs["quick"].enqueue_many([(0.01,)] * (JOBS // 2))
        app.jobs["quick_sync"].enqueue_many([(0.01,)] * (JOBS // 2))
    options = {"concurrency": 5, "lease": 3, "log_level": "WARNING"}
    with (
        Worker(url, tmp_path, name="one", **options) as one,
        Worker(url, tmp_path, name="two", **options) as two,
    ):
        for restart in range(RESTARTS):
            reached = (restart + 1) * JOBS // (RESTARTS + 2)
            until(lambda reached=reached: journal.count("end") >= reached, f"{reached} jobs ran", 60)
            durable_server.kill()
            durable_server.restart()
        until(lambda: statuses_or_none(url) == {"done": JOBS}, "every job is done", 60)
        assert not one.ended
        assert not two.ended
        assert one.stop() == 0
        assert two.stop() == 0
        assert len(one.children) == len(two.children) == 1, "no child died of it"
    runs = journal.runs()
    assert len(runs) == JOBS
    assert all(any(run.end is not None and not run.broken for run in of_one) for of_one in runs.values())


def statuses_or_none(url: str) -> dict[str, int] | None:
    try:
        return statuses(url)
    except psycopg.OperationalError:
        return None
