"""What kills its worker each time is given up after three crashes, and harms no neighbour."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.deaths import Death
from tests.support.journal import Journal
from tests.support.stored import ask, statuses, stored_jobs, unfinished
from tests.support.waiting import until
from tests.support.workers import LEASE, Worker

from semel import App

MARGIN = 4.0
"""Seconds for the next look of a worker on a busy machine."""


def test_killers_fail_after_three_crashes_and_their_neighbours_are_done(
    app: App, journal: Journal, start_worker: Callable[..., Worker], database_url: str
) -> None:
    quick, killer = app.jobs["quick"], app.jobs["kill_worker"]
    quick.enqueue_many([(0.01,)] * 30)
    killer.enqueue_many([()] * 2)
    quick.enqueue_many([(0.01,)] * 30)
    with start_worker(concurrency=5) as worker:
        until(lambda: unfinished(database_url) == 0, "all have ended", 60)
        assert worker.stop() == 0
    jobs = stored_jobs(database_url)
    neighbours = [job for job in jobs if job.kind == "quick"]
    killers = [job for job in jobs if job.kind == "kill_worker"]
    assert {(job.status, job.crashes, job.attempts) for job in killers} == {("failed", 3, 1)}
    assert {(job.status, job.attempts) for job in neighbours} == {("done", 1)}
    assert max(job.crashes for job in neighbours) <= 1
    assert {len(journal.runs()[job.id]) for job in killers} <= {2, 3}, "the first kill meets both"
    (reason,) = {row[0] for row in ask(database_url, "SELECT last_error FROM semel.jobs")}
    assert "worker died 3 times" in reason
    assert worker.log.count("failed: its worker died 3 times") == 2


def test_a_killer_fails_also_where_its_supervisor_dies_each_time(
    app: App, journal: Journal, start_worker: Callable[..., Worker], database_url: str
) -> None:
    """Nobody gives its jobs back, so that each crash costs a lease; then the claim itself ends the job."""
    app.jobs["wait_for"].enqueue("/nowhere")
    for crash in range(3):
        with start_worker(f"worker_{crash}") as worker:
            until(lambda crash=crash: journal.count("start") == crash + 1, f"run {crash + 1}")
            worker.close()
    with start_worker("last"):
        until(lambda: statuses(database_url) == {"failed": 1}, "given up", LEASE + 30)
    (job,) = stored_jobs(database_url)
    assert (job.crashes, job.attempts) == (3, 1)


def test_a_killer_of_the_whole_worker_harms_no_neighbour_either(
    app: App, start_worker: Callable[..., Worker], database_url: str
) -> None:
    """What waited in its worker is counted as crashed with it: once, and then never held beside it again."""
    quick, killer = app.jobs["quick"], app.jobs["kill_all"]
    quick.enqueue_many([(0.01,)] * 20)
    killer.enqueue()
    quick.enqueue_many([(0.01,)] * 60)
    for life in range(4):
        worker = start_worker(f"worker_{life}", concurrency=5)
        until(
            lambda worker=worker: worker.ended or unfinished(database_url) == 0, "it has died, or all is done"
        )
    jobs = stored_jobs(database_url)
    assert statuses(database_url) == {"done": 80, "failed": 1}
    assert {(job.crashes, job.attempts) for job in jobs if job.kind == "kill_all"} == {(3, 1)}
    assert max(job.crashes for job in jobs if job.kind == "quick") == 1
    assert {
        len(row[0]) for row in ask(database_url, "SELECT errors FROM semel.all_jobs WHERE crashes = 1")
    } == {1}


def test_a_person_lets_a_killer_run_again_with_its_crashes_forgotten(
    app: App, start_worker: Callable[..., Worker], database_url: str
) -> None:
    app.jobs["kill_worker"].enqueue(3)
    with start_worker():
        until(lambda: statuses(database_url) == {"failed": 1}, "given up")
        ask(database_url, "UPDATE semel.jobs SET status = 'pending', attempts = 0")
        until(lambda: statuses(database_url) == {"failed": 1}, "given up again")
    (job,) = stored_jobs(database_url)
    assert job.crashes == 3


def test_a_worker_that_dies_with_its_supervisor_costs_one_lease(
    app: App, journal: Journal, start_worker: Callable[..., Worker], database_url: str, tmp_path: Path
) -> None:
    """Not less than what is left of the lease after its last extension, and not more than one."""
    release = tmp_path / "release"
    app.jobs["wait_for"].enqueue_many([(str(release),)] * 5)
    first = start_worker("first")
    until(lambda: journal.count("start") == 5, "all run")
    start_worker("second").started()
    killed = time.monotonic()
    first.close()
    release.touch()
    until(lambda: statuses(database_url) == {"done": 5}, "all are done")
    again = [runs[1].start / 1e9 - killed for runs in journal.runs().values()]
    assert min(again) > LEASE * 0.4
    assert max(again) < LEASE + MARGIN
    assert {(job.attempts, job.crashes) for job in stored_jobs(database_url)} == {(1, 1)}


def test_a_child_that_dies_costs_no_lease(
    app: App, journal: Journal, start_worker: Callable[..., Worker], database_url: str, tmp_path: Path
) -> None:
    """Its supervisor gives back at once what it held: the lease of a minute plays no part."""
    release = tmp_path / "release"
    app.jobs["wait_for"].enqueue_many([(str(release),)] * 5)
    worker = start_worker(lease=60)
    until(lambda: journal.count("start") == 5, "all run")
    os.kill(worker.children[-1], signal.SIGKILL)
    release.touch()
    until(lambda: statuses(database_url) == {"done": 5}, "all are done")
    assert {(job.attempts, job.crashes) for job in stored_jobs(database_url)} == {(1, 1)}


def test_a_child_that_dies_before_it_has_settled_costs_no_lease(
    app: App, start_worker: Callable[..., Worker], database_url: str
) -> None:
    """A job that has ended stands in its slot until its settlement is confirmed."""
    app.jobs["quick"].enqueue_many([()] * 5)
    worker = start_worker(lease=60, death=Death("child", "before", "queue/settle", "child"))
    until(lambda: statuses(database_url) == {"done": 5}, "all are done")
    assert worker.mark is not None
