"""How a worker starts, drains, stops, and refuses: with one sentence, the way out, and an exit code."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.worker.application import RUNS, app
from tests.worker.helpers import ask, show, status, wait_until
from tests.worker.processes import APPLICATION, WorkerProcess, running

from semel.store.migrate import migrate_database


def refuse(url: str, *arguments: str, app: str = APPLICATION) -> tuple[int, str]:
    """The exit code and the last line of a worker that does not start."""
    worker = WorkerProcess(url, *arguments, app=app)
    try:
        return worker.wait(), worker.log[-1]["message"]
    finally:
        worker.kill()


def test_no_schema_is_refused_with_the_command_that_mends_it(empty_database_url: str) -> None:
    code, message = refuse(empty_database_url)
    assert code == 1
    assert "semel migrate" in message
    migrate_database(empty_database_url)
    with running(empty_database_url) as worker:
        assert worker.end() == 0


def test_a_schema_that_is_too_old_is_refused_with_the_command_that_mends_it(database_url: str) -> None:
    ask(database_url, "DELETE FROM migrations WHERE version = 1")
    code, message = refuse(database_url)
    assert code == 1
    assert "too old" in message
    assert "semel migrate" in message


def test_a_schema_that_is_too_new_is_refused_with_the_command_that_mends_it(database_url: str) -> None:
    ask(
        database_url,
        "INSERT INTO migrations (version, step, name) VALUES (99, 'pre', 'x'), (99, 'post', 'x')",
    )
    code, message = refuse(database_url)
    assert code == 1
    assert "too new" in message
    assert "pip install -U semel" in message


def test_a_newer_schema_whose_last_step_is_to_come_is_served(database_url: str) -> None:
    """Old workers run on while new ones are rolled out."""
    ask(database_url, "INSERT INTO migrations (version, step, name) VALUES (99, 'pre', 'x')")
    with running(database_url) as worker:
        assert worker.end() == 0


@pytest.mark.parametrize(
    ("location", "complaint"),
    [
        ("tests.worker.application", "module:attribute"),
        ("tests.worker.nowhere:app", "no module 'tests.worker.nowhere'"),
        ("tests.worker.application:nothing_there", "has no 'nothing_there'"),
        ("tests.worker.application:RUNS", "not a semel.App"),
    ],
)
def test_an_application_that_is_not_there_is_refused(
    database_url: str, location: str, complaint: str
) -> None:
    worker = WorkerProcess(database_url, app=location)
    assert worker.wait() == 2
    assert complaint in "".join(worker.lines)


def test_a_database_that_is_not_there_ends_the_start(tmp_path: Path) -> None:
    code, message = refuse(f"postgresql://semel@/semel?host={tmp_path}")
    assert code == 3
    assert "reach" in message


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_worker_at_once(database_url: str, number: int) -> None:
    with running(database_url, "--children", "2") as worker:
        assert worker.end(number) == 0


def test_drain_ends_when_nothing_is_due(database_url: str) -> None:
    """What is delayed, or waits to retry, is left."""
    ask(database_url, RUNS)
    jobs = app.with_database(database_url).jobs
    done = [job.id for job in jobs["quick"].enqueue_many([(number,) for number in range(60)])]
    later = jobs["quick"].using(run_after="1 h").enqueue()
    retried = jobs["fails"].using(run_after=0).enqueue()
    worker = WorkerProcess(database_url, "--drain", "--children", "2")
    try:
        assert worker.wait() == 0
    finally:
        worker.kill()
    assert {status(database_url, each) for each in done} == {"done"}
    assert [show(database_url, each).result for each in done] == list(range(60))
    assert status(database_url, later.id) == "pending"
    assert show(database_url, retried.id).job.attempts >= 1


def test_several_children_share_the_work(database_url: str) -> None:
    ask(database_url, RUNS)
    jobs = app.with_database(database_url).jobs
    with running(database_url, "--children", "2", "--concurrency", "1") as worker:
        jobs["waits"].enqueue_many([(60,)] * 2)
        wait_until(lambda: ask(database_url, "SELECT count(*) FROM public.runs") == [(2,)])
        pids = {row[0] for row in ask(database_url, "SELECT DISTINCT pid FROM public.runs")}
        assert pids == set(worker.children())


def test_queues_can_be_chosen(database_url: str) -> None:
    ask(database_url, RUNS)
    quick = app.with_database(database_url).jobs["quick"]
    mail, other = (quick.using(queue=queue).enqueue() for queue in ("mail", "default"))
    worker = WorkerProcess(database_url, "--drain", "--queue", "mail")
    assert worker.wait() == 0
    assert (status(database_url, mail.id), status(database_url, other.id)) == ("done", "pending")
