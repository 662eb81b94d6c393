"""``run_in="process"``: handlers in processes of their own, beside the child's event loop."""

from __future__ import annotations

import pytest
from tests.worker.application import RUNS, app
from tests.worker.helpers import ask, drain, show, wait_until
from tests.worker.processes import running

from semel import App
from semel.core.report import JobRecord


@pytest.fixture
def jobs(database_url: str) -> App:
    """The application that processes import, over this test's database."""
    ask(database_url, RUNS)
    return app.with_database(database_url)


def run(jobs: App, kind: str, *args: object) -> JobRecord:
    job = jobs.jobs[kind].enqueue(*args)
    drain(jobs)
    return show(jobs.url, job.id)


def test_the_result_comes_back(jobs: App) -> None:
    record = run(jobs, "squares", 12)
    assert (record.job.status, record.result[0]) == ("done", 144)


def test_processes_are_used_again_and_are_no_more_than_the_concurrency(jobs: App, database_url: str) -> None:
    ids = [job.id for job in jobs.jobs["squares"].enqueue_many([(number,) for number in range(30)])]
    drain(jobs, concurrency=2)
    results = [show(database_url, each).result for each in ids]
    assert [square for square, _ in results] == [number * number for number in range(30)]
    assert len({pid for _, pid in results}) <= 2


def test_an_exception_comes_back_with_its_traceback(jobs: App) -> None:
    record = run(jobs, "divides", 0)
    assert (record.job.status, record.errors[0]["type"]) == ("pending", "ZeroDivisionError")
    assert "return 1 / number" in record.errors[0]["traceback"]


def test_an_exception_that_cannot_travel_says_the_same(jobs: App) -> None:
    record = run(jobs, "declined", 51)
    assert "Declined" in record.errors[0]["type"] + record.errors[0]["message"]
    assert "declined with 51: no money" in record.errors[0]["message"]
    assert "raise Declined" in record.errors[0]["traceback"]


def test_an_outcome_comes_back(jobs: App) -> None:
    record = run(jobs, "snoozes")
    assert (record.job.status, record.job.attempts) == ("pending", 0)
    assert record.job.last_error == "the bank is closed"


def test_a_process_that_ends_is_an_error_of_its_job_alone(jobs: App) -> None:
    record = run(jobs, "leaves", 7)
    assert record.job.status == "failed"
    assert "exit code 7" in record.errors[0]["message"]
    assert run(jobs, "squares", 3).result[0] == 9


def test_a_result_that_cannot_travel_is_dropped_with_a_warning(
    jobs: App, caplog: pytest.LogCaptureFixture
) -> None:
    record = run(jobs, "answers_oddly")
    assert (record.job.status, record.result) == ("done", None)
    assert [line for line in caplog.messages if "its result is not stored" in line]


def test_a_payload_that_does_not_fit_is_an_error(jobs: App, database_url: str) -> None:
    ask(database_url, """INSERT INTO jobs (kind, payload) VALUES ('squares', '{"number": "twelve"}')""")
    drain(jobs)
    assert ask(database_url, "SELECT errors -> 0 ->> 'type' FROM jobs") == [
        ("semel.errors.PayloadUnreadable",)
    ]


def test_progress_is_stored_and_a_time_out_kills_that_process_only(jobs: App, database_url: str) -> None:
    with running(database_url, "--lease", "2 s") as worker:
        (child,) = worker.children()
        warm = jobs.jobs["squares"].enqueue(2)
        wait_until(lambda: show(database_url, warm.id).result, "a process to be ready")
        neighbour = jobs.jobs["waits"].enqueue(4)
        job = jobs.jobs["crunches"].enqueue()
        wait_until(lambda: show(database_url, job.id).job.progress == 0.5, "the progress")
        assert show(database_url, job.id).job.progress_message == "half of it"
        wait_until(lambda: show(database_url, job.id).job.status == "failed", "the time-out")
        record = show(database_url, job.id)
        assert [error["type"] for error in record.errors] == ["semel.errors.TimedOut"]
        wait_until(lambda: show(database_url, neighbour.id).job.status == "done")
        assert show(database_url, neighbour.id).job.attempts == 1
        assert worker.children() == [child]


def test_a_stop_gives_back_what_a_process_runs(jobs: App, database_url: str) -> None:
    with running(database_url, "--stop-grace", "1 s") as worker:
        job = jobs.jobs["sits"].enqueue()
        wait_until(lambda: ask(database_url, "SELECT 1 FROM public.runs"))
        assert worker.end() == 0
    record = show(database_url, job.id)
    assert (record.job.status, record.job.attempts, record.errors) == ("pending", 0, ())
