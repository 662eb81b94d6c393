"""Jobs of the semel queue that are guarded operations: the worker is killed at each point, and jobs come twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.guard_crash import jobs
from tests.guard_crash.recorder import Recorder, run_recorder
from tests.support.deaths import Death
from tests.support.stored import ask, stored_jobs
from tests.support.waiting import until
from tests.support.workers import Worker

from semel import App

ENDED = ("done", "failed", "held", "cancelled")


class Shop:
    """A queue, its workers and the outside system."""

    def __init__(self, url: str, directory: Path, app: App, recorder: Recorder) -> None:
        self.url, self.directory, self.app, self.recorder = url, directory, app, recorder
        self.stack = ExitStack()
        ask(url, "CREATE TABLE IF NOT EXISTS effects (name text)")

    def enqueue(self, kind: str, *args: Any, **kwargs: Any) -> None:
        self.app.jobs[kind].enqueue(*args, **kwargs)

    def work(self, name: str = "worker", death: Death | None = None) -> Worker:
        told = {"app": "tests.guard_crash.jobs:app", "concurrency": 2}
        return self.stack.enter_context(Worker(self.url, self.directory, name=name, death=death, **told))

    def finished(self, worker: Worker) -> list[tuple[str, Any]]:
        """Every job's status and result, once all have ended."""

        def all_ended() -> bool:
            assert not worker.ended, worker.log
            return all(job.status in ENDED for job in stored_jobs(self.url))

        until(all_ended, "every job ended", 60)
        return [(job.status, job.result) for job in stored_jobs(self.url)]

    def rows(self, name: str) -> int:
        return int(ask(self.url, "SELECT count(*) FROM effects WHERE name = %s", name)[0][0])

    def operations(self) -> list[tuple[str, int]]:
        rows = ask(self.url, "SELECT state, claim FROM semel.operations ORDER BY id")
        return [(str(state), int(claim)) for state, claim in rows]


@pytest.fixture
def shop(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with run_recorder() as (recorder, port), jobs.app.with_database(database_url) as app:
        monkeypatch.setenv(jobs.TARGET, database_url)
        monkeypatch.setenv(jobs.RECEIVER, str(port))
        made = Shop(database_url, tmp_path, app, recorder)
        with made.stack:
            yield made


@pytest.mark.parametrize("point", ["claimed", "inside", "effect", "returned"])
@pytest.mark.parametrize("kind", ["charge-by-key", "charge-or-hold"])
def test_3_a_worker_killed_at_each_point(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, point: str
) -> None:
    monkeypatch.setenv(jobs.KILL, f"{point}:{tmp_path}")
    shop.enqueue(kind, "order")
    worker = shop.work()
    found = shop.finished(worker)
    assert (tmp_path / "order.killed").exists()
    uncertain = kind == "charge-or-hold" and point in ("inside", "effect")
    assert found == [("held", None) if uncertain else ("done", "charge-order-1")]
    assert shop.recorder.charges["order"] == (0 if uncertain and point == "inside" else 1)
    assert [state for state, _ in shop.operations()] == ["held" if uncertain else "completed"]


@pytest.mark.parametrize("point", ["claimed", "effect"])
def test_3_a_row_whose_worker_was_killed_is_there_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, point: str
) -> None:
    monkeypatch.setenv(jobs.KILL, f"{point}:{tmp_path}")
    shop.enqueue("add-row", "order")
    assert shop.finished(shop.work()) == [("done", "row-order")]
    assert (shop.rows("order"), shop.operations()) == (1, [("completed", 1)])


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("statement", ["guard/insert_row", "guard/complete_row", "queue/settle"])
def test_3_a_row_is_one_commit_with_its_record_and_its_job(shop: Shop, moment: str, statement: str) -> None:
    """Killed between its statements nothing of it is there; at the end all of it is, once."""
    shop.enqueue("add-row", "order")
    worker = shop.work(death=Death("child", moment, statement, "both"))
    worker.wait(60)
    assert worker.mark is not None
    job = stored_jobs(shop.url)[0]
    together = (shop.rows("order"), shop.operations(), job.status == "done")
    assert together in ((0, [], False), (1, [("completed", 1)], True))
    assert shop.finished(shop.work("second")) == [("done", "row-order")]
    assert (shop.rows("order"), shop.operations()) == (1, [("completed", 1)])


@pytest.mark.parametrize("kind", ["add-row", "charge-by-key"])
def test_two_jobs_with_one_key_have_one_effect_and_one_result(shop: Shop, kind: str) -> None:
    for _ in range(6):
        shop.enqueue(kind, "order")
    found = shop.finished(shop.work())
    assert len(found) == 6
    assert len(set(found)) == 1
    assert found[0][0] == "done"
    assert shop.rows("order") + shop.recorder.charges["order"] == 1
    assert {job.attempts for job in stored_jobs(shop.url)} == {1}


def test_another_payload_fails_at_once_and_what_runs_is_waited_for_without_a_charge(shop: Shop) -> None:
    shop.enqueue("charge-by-key", "order")
    worker = shop.work()
    shop.finished(worker)
    ask(shop.url, "UPDATE semel.operations SET state = 'claimed', token = 'other', outcome = NULL, completed_at = NULL,"
        " lease_until = clock_timestamp() + interval '3 seconds', acting_at = clock_timestamp()")  # fmt: skip
    shop.enqueue("charge-by-key", "order", 2)
    shop.enqueue("charge-by-key", "order")
    until(
        lambda: [job.status for job in stored_jobs(shop.url)][1:] != ["pending", "pending"], "one has ended"
    )
    found = shop.finished(worker)
    assert [status for status, _ in found] == ["done", "failed", "done"]
    assert [job.attempts for job in stored_jobs(shop.url)] == [1, 1, 1]
    assert shop.recorder.charges["order"] == 1


def test_a_handler_that_holds_the_interpreters_lock_is_not_taken_for_dead(shop: Shop) -> None:
    """Its record is extended with the job's lease, by the supervisor: a rival in another process waits for it."""
    workers = [shop.work("first"), shop.work("second")]
    until(lambda: all("worker started" in worker.log for worker in workers), "both have started", 60)
    shop.enqueue("charge-without-a-breath", "order")
    until(lambda: shop.recorder.charges["order"] == 1, "one has charged", 60)
    shop.enqueue("charge-without-a-breath", "order")
    found = shop.finished(workers[0])
    assert len(set(found)) == 1
    assert shop.recorder.charges["order"] == 1
    assert shop.operations() == [("completed", 1)]
