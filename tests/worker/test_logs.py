"""What a worker logs, as lines of JSON: one an outcome, with the reason."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from tests.worker.application import RUNS, app
from tests.worker.helpers import ask
from tests.worker.processes import WorkerProcess, running

KINDS = {
    "quick": ("done", "info"),
    "fails": ("retried", "warning"),
    "refund": ("retried", "warning"),
    "snoozes_here": ("snoozed", "info"),
    "cancels": ("cancelled", "info"),
    "holds": ("held", "error"),
    "fails_at_once": ("failed", "error"),
}


@pytest.fixture
def worker_log(database_url: str) -> dict[str, list[dict[str, Any]]]:
    """The lines that name a job, by its kind, of a worker that ran one of each until nothing was due."""
    ask(database_url, RUNS)
    for kind in KINDS:
        most = 1 if kind == "fails_at_once" else 8
        ask(database_url, "INSERT INTO jobs (kind, max_attempts) VALUES (%s, %s)", kind, most)
    worker = WorkerProcess(database_url, "--drain")
    try:
        assert worker.wait() == 0
    finally:
        worker.kill()
    lines = [json.loads(line) for line in worker.lines]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    return {kind: [line for line in lines if line.get("kind") == kind] for kind in KINDS}


def test_each_outcome_is_one_line_of_json_with_its_reason(
    worker_log: dict[str, list[dict[str, Any]]],
) -> None:
    for kind, (outcome, level) in KINDS.items():
        (line,) = [line for line in worker_log[kind] if "outcome" in line]
        assert (line["outcome"], line["level"]) == (outcome, level), kind
        assert (line["attempt"], line["queue"]) == (1, "default")
        assert line["claim"] > 0
        assert line["seconds"] >= 0
        assert kind in line["message"]
    lines = {kind: next(line for line in listed if "outcome" in line) for kind, listed in worker_log.items()}
    assert lines["fails"]["error"] == "ValueError: no reason"
    assert "again in" in lines["fails"]["reason"]
    assert "no handler" in lines["refund"]["message"]
    assert "the bank is closed" in lines["snoozes_here"]["message"]
    assert "withdrawn" in lines["cancels"]["message"]
    assert "charged?" in lines["holds"]["message"]
    assert "attempt 1 of 1" in lines["fails_at_once"]["reason"]
    (own,) = [line for line in worker_log["quick"] if line["message"] == "counted"]
    assert (own["number"], own["logger"], own["attempt"]) == (0, "semel.job", 1)


def test_a_level_leaves_out_what_is_below(database_url: str) -> None:
    ask(database_url, RUNS)
    jobs = app.with_database(database_url).jobs
    jobs["quick"].enqueue()
    jobs["fails"].enqueue()
    worker = WorkerProcess(database_url, "--drain", "--log-level", "warning")
    assert worker.wait() == 0
    assert Counter(line["level"] for line in worker.log) == {"warning": 1}


def test_errors_with_odd_characters_stay_valid_lines(database_url: str) -> None:
    ask(database_url, RUNS)
    with running(database_url) as worker:
        app.with_database(database_url).jobs["fails"].enqueue('two\nlines, "quotes", é, \u2028')
        line = worker.wait_for(lambda line: line.get("kind") == "fails")
        assert line["error"] == 'ValueError: two\nlines, "quotes", é, \u2028'
        assert worker.end() == 0
