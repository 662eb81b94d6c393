"""Workers that stand still, and workers that only look as if they did."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.journal import Journal
from tests.support.stored import ask, statuses, stored_jobs
from tests.support.waiting import until
from tests.support.workers import LEASE, Worker

from semel import App


@pytest.mark.parametrize("kind", ["wait_for", "wait_for_sync"])
@pytest.mark.parametrize("woken", ["ends at once", "goes on"])
def test_one_that_wakes_past_its_lease_has_lost_its_claim_and_writes_nothing(
    app: App,
    journal: Journal,
    start_worker: Callable[..., Worker],
    database_url: str,
    tmp_path: Path,
    kind: str,
    woken: str,
) -> None:
    """Item 5: supervisor and child are stopped (SIGSTOP); the second attempt ends; the first one wakes."""
    release = tmp_path / "release"
    job = app.jobs[kind].enqueue(str(release))
    first = start_worker("first")
    until(lambda: journal.count("start") == 1, "the first attempt runs")
    first.send(signal.SIGSTOP, children=True)
    start_worker("second", stop_grace=1)
    until(lambda: journal.count("start") == 2, "the second attempt runs", LEASE + 30)
    release.touch()
    until(lambda: statuses(database_url) == {"done": 1}, "the second attempt has ended")
    before = ask(database_url, "SELECT * FROM semel.all_jobs")
    if woken == "goes on":
        release.unlink()

    first.send(signal.SIGCONT, children=True)
    until(lambda: f"job {job.id} {kind} claim lost" in first.log, "the first attempt has lost its claim")
    assert first.stop() == 0
    assert first.log.count("claim lost") == 1
    assert "'lost': 1" in first.log
    assert "'done': 0" in first.log
    assert f"job {job.id} {kind} done" not in first.log
    assert ask(database_url, "SELECT * FROM semel.all_jobs") == before
    (stored,) = stored_jobs(database_url)
    assert (stored.attempts, stored.crashes) == (1, 1)
    assert stored.result == journal.runs()[job.id][1].process
    assert "Traceback" not in first.log


def test_a_handler_that_holds_up_its_process_is_not_taken_over(
    app: App, journal: Journal, start_worker: Callable[..., Worker], database_url: str
) -> None:
    """Item 6: an event loop that is blocked, and a C call that keeps the interpreter's lock, for three leases."""
    busy = 3 * LEASE
    app.enqueue_many([app.jobs["block_loop"].new(busy), app.jobs["hold_interpreter"].new(busy)])
    with start_worker("first", children=2, concurrency=1), start_worker("second") as second:
        until(lambda: journal.count("start") == 2, "both run")
        second.started()
        until(lambda: journal.count("end") == 2, "both have ended")
        until(lambda: statuses(database_url) == {"done": 2}, "both are done")
    assert {len(runs) for runs in journal.runs().values()} == {1}
    assert {(job.attempts, job.crashes) for job in stored_jobs(database_url)} == {(1, 0)}


def test_a_worker_that_is_only_slow_keeps_its_claim(
    app: App, journal: Journal, start_worker: Callable[..., Worker], database_url: str, tmp_path: Path
) -> None:
    """Stopped for less than what is left of its lease, it goes on as if nothing had been."""
    release = tmp_path / "release"
    app.jobs["wait_for"].enqueue(str(release))
    first = start_worker("first", lease=20)
    until(lambda: journal.count("start") == 1, "it runs")
    second = start_worker("second", lease=20).started()
    first.send(signal.SIGSTOP, children=True)
    looks = second.passed("queue/claim")
    until(lambda: second.passed("queue/claim") > looks + 2, "the second one looks for jobs")
    first.send(signal.SIGCONT, children=True)
    release.touch()
    until(lambda: statuses(database_url) == {"done": 1}, "it is done")
    (stored,) = stored_jobs(database_url)
    assert (stored.attempts, stored.crashes) == (1, 0)
    assert journal.count("start") == 1


def test_a_supervisor_that_stands_still_alone_loses_the_claims_and_no_more(
    app: App, journal: Journal, start_worker: Callable[..., Worker], database_url: str, tmp_path: Path
) -> None:
    """Its child runs on with nobody to extend the lease; another attempt is let in, and the first is told."""
    release = tmp_path / "release"
    app.jobs["wait_for"].enqueue(str(release))
    first = start_worker("first")
    until(lambda: journal.count("start") == 1, "it runs")
    first.send(signal.SIGSTOP)
    start_worker("second")
    until(lambda: journal.count("start") == 2, "the second attempt runs")
    release.touch()
    until(
        lambda: statuses(database_url) == {"done": 1} and "claim lost" in first.log, "one is done, one lost"
    )
    first.send(signal.SIGCONT)
    assert first.stop() == 0
