"""A worker that is told to stop loses no job and charges no attempt that was not had."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.journal import Journal
from tests.support.stored import statuses, stored_jobs, unfinished
from tests.support.waiting import until
from tests.support.workers import Worker

from semel import App

GRACE = 2.0
MARGIN = 4.0
"""Seconds over the grace: the supervisor waits one for its children, and its own end takes a moment."""


def enqueue_twenty(app: App, release: Path) -> None:
    """Ten on the event loop, ten on threads; half of each ends by itself, half goes on until it is released."""
    quick, quick_sync = app.jobs["quick"], app.jobs["quick_sync"]
    wait, wait_sync = app.jobs["wait_for"], app.jobs["wait_for_sync"]
    jobs = [quick.new(0.8), quick_sync.new(0.8), wait.new(str(release)), wait_sync.new(str(release))]
    app.enqueue_many(jobs * 5)


def drain(app: App, start_worker: Callable[..., Worker], url: str) -> None:
    with start_worker("second", drain=True) as worker:
        assert worker.wait() == 0, worker.log
    assert unfinished(url) == 0


def test_sigterm_with_twenty_running(
    app: App, journal: Journal, start_worker: Callable[..., Worker], database_url: str, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    enqueue_twenty(app, release)
    app.jobs["quick"].enqueue_many([()] * 30)
    worker = start_worker(concurrency=20, stop_grace=GRACE)
    until(lambda: journal.count("start") == 20, "20 jobs run")

    told = time.monotonic()
    assert worker.stop() == 0, worker.log
    assert time.monotonic() - told < GRACE + MARGIN
    stopped = stored_jobs(database_url)
    assert statuses(database_url) == {"done": 10, "pending": 40}
    assert [job.attempts for job in stopped if job.status == "pending"] == [0] * 40
    assert {job.crashes for job in stopped} == {0}

    release.touch()
    drain(app, start_worker, database_url)
    assert {(job.status, job.attempts, job.crashes) for job in stored_jobs(database_url)} == {("done", 1, 0)}
    assert len(stored_jobs(database_url)) == 50


def test_prefetched_jobs_are_given_back(
    app: App, journal: Journal, start_worker: Callable[..., Worker], database_url: str, tmp_path: Path
) -> None:
    """Fast jobs make the worker claim ahead; what it holds when two slow ones fill it waits, and goes back."""
    release = tmp_path / "release"
    app.jobs["quick"].enqueue_many([()] * 200)
    app.jobs["wait_for"].enqueue_many([(str(release),)] * 2)
    app.jobs["quick"].enqueue_many([()] * 200)
    worker = start_worker(concurrency=2, stop_grace=GRACE)
    until(lambda: journal.count("start") == 202, "the slow jobs run")
    until(lambda: statuses(database_url).get("running", 0) > 2, "some are prefetched")
    claimed = sum(job.attempts for job in stored_jobs(database_url) if job.status == "running")
    assert claimed > 2

    assert worker.stop() == 0, worker.log
    assert statuses(database_url) == {"done": 200, "pending": 202}
    assert {job.attempts for job in stored_jobs(database_url) if job.status == "pending"} == {0}


def test_a_second_signal_hurries(
    app: App, journal: Journal, start_worker: Callable[..., Worker], database_url: str, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    enqueue_twenty(app, release)
    worker = start_worker(concurrency=20, stop_grace=60)
    until(lambda: journal.count("end") == 10, "half of them ended")
    worker.send(signal.SIGTERM)
    until(lambda: "stopping: 10 running" in worker.log, "the child stops")

    told = time.monotonic()
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0, worker.log
    assert time.monotonic() - told < MARGIN
    assert statuses(database_url) == {"done": 10, "pending": 10}
    assert {job.attempts for job in stored_jobs(database_url) if job.status == "pending"} == {0}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_handler_that_cannot_be_interrupted_does_not_hold_up_the_stop(
    app: App,
    journal: Journal,
    start_worker: Callable[..., Worker],
    database_url: str,
    number: signal.Signals,
) -> None:
    """Its process ends without it; its job goes back, and it is charged neither an attempt nor a crash."""
    app.jobs["sit_in_a_call"].enqueue(60)
    worker = start_worker(stop_grace=1)
    until(lambda: journal.count("start") == 1, "the job runs")
    told = time.monotonic()
    worker.send(number)
    assert worker.wait() == 0, worker.log
    assert time.monotonic() - told < 1 + MARGIN
    (job,) = stored_jobs(database_url)
    assert (job.status, job.attempts, job.crashes) == ("pending", 0, 0)


def test_an_idle_worker_stops_at_once(start_worker: Callable[..., Worker]) -> None:
    worker = start_worker().started()
    told = time.monotonic()
    assert worker.stop() == 0, worker.log
    assert time.monotonic() - told < MARGIN
