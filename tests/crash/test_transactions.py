"""``transaction=True``: the handler's rows and the job's end are one commit, wherever the worker dies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.deaths import Death
from tests.support.journal import Journal
from tests.support.stored import ask, statuses, stored_jobs
from tests.support.waiting import until
from tests.support.workers import LEASE, Worker

from semel import App


@pytest.mark.parametrize("kind", ["add_row", "add_row_sync"])
@pytest.mark.parametrize(
    ("moment", "name"), [("before", "queue/settle"), ("after", "queue/settle"), ("committed", "settle")]
)
def test_the_effect_is_there_once_wherever_the_worker_dies(
    app: App, start_worker: Callable[..., Worker], database_url: str, kind: str, moment: str, name: str
) -> None:
    ask(database_url, "CREATE TABLE effects (job bigint NOT NULL)")
    app.jobs[kind].enqueue_many([()] * 20)
    worker = start_worker(concurrency=4, death=Death("child", moment, name, "child", turn=7))
    until(lambda: statuses(database_url) == {"done": 20}, "all are done")
    assert worker.mark is not None
    assert ask(database_url, "SELECT count(*), count(DISTINCT job) FROM effects") == [(20, 20)]


def test_one_that_lost_its_claim_rolls_its_effect_back(
    app: App, journal: Journal, start_worker: Callable[..., Worker], database_url: str, tmp_path: Path
) -> None:
    ask(database_url, "CREATE TABLE effects (job bigint NOT NULL)")
    release = tmp_path / "release"
    app.jobs["add_row_when"].enqueue(str(release))
    first = start_worker("first")
    until(lambda: journal.count("start") == 1, "the first attempt runs")
    ask(database_url, "UPDATE semel.jobs SET status = 'pending', run_at = 'infinity'")
    release.touch()
    until(lambda: "claim lost" in first.log, "it has lost its claim", LEASE + 30)
    assert ask(database_url, "SELECT count(*) FROM effects") == [(0,)]
    (job,) = stored_jobs(database_url)
    assert job.status == "pending"
