"""Four worker processes drain 20,000 jobs; each runs once, and no two runs of one overlap."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.child import MARKED
from tests.support.journal import Journal
from tests.support.stored import stored_jobs, unfinished
from tests.support.waiting import until
from tests.support.workers import Worker

from semel import App

WORKERS = 4
EACH = 5_000


@pytest.mark.parametrize("form", ["claim", "claim_marked"])
def test_each_of_20_000_jobs_runs_once(
    app: App,
    journal: Journal,
    start_worker: Callable[..., Worker],
    database_url: str,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where each worker claims from marks of its own."""
    if form == "claim_marked":
        monkeypatch.setenv(MARKED, "1")
    workers = [start_worker(f"worker_{number}", log_level="WARNING") for number in range(WORKERS)]
    for worker in workers:
        until(lambda worker=worker: worker.passed("queue/look_ahead"), "it waits for jobs")
    app.jobs["quick"].enqueue_many([()] * (WORKERS * EACH))
    until(lambda: unfinished(database_url) == 0, "all are done", 120)
    for worker in workers:
        assert worker.stop() == 0, worker.log
        assert worker.passed(f"queue/{form}") > 0

    runs = journal.runs()
    assert len(runs) == WORKERS * EACH
    assert [job for job, all_runs in runs.items() if len(all_runs) != 1] == []
    assert all(run.end is not None and not run.broken for (run,) in runs.values())
    assert len({run.process for (run,) in runs.values()}) == WORKERS
    jobs = stored_jobs(database_url)
    assert {(job.status, job.attempts, job.crashes) for job in jobs} == {("done", 1, 0)}
    assert len({job.claim for job in jobs}) == WORKERS * EACH
