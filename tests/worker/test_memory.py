"""11: a worker's memory does not grow with the jobs that it has run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.worker.helpers import ask, wait_until
from tests.worker.processes import WorkerProcess, running

ENQUEUE = "INSERT INTO jobs (kind) SELECT 'nothing' FROM generate_series(1, %s)"


def resident(pid: int) -> int:
    """Kilobytes that a process has in memory."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("ascii"))
    assert found is not None
    return int(found[1])


@pytest.mark.timeout(300)
def test_11_memory_after_100_000_jobs_is_within_20_percent_of_that_after_10_000(database_url: str) -> None:
    with running(database_url, "--log-level", "warning", ready=WorkerProcess.children) as worker:
        (child,) = worker.children()
        pids = (child, worker.process.pid)

        def run(jobs: int) -> list[int]:
            ask(database_url, ENQUEUE, jobs)
            empty = "SELECT NOT EXISTS (SELECT 1 FROM jobs)"
            wait_until(lambda: ask(database_url, empty) == [(True,)], f"{jobs} jobs", 200)
            return [resident(pid) for pid in pids]

        few = run(10_000)
        many = run(90_000)
        assert worker.children() == [child]
    for before, after in zip(few, many, strict=True):
        assert after <= before * 1.2, (few, many)
