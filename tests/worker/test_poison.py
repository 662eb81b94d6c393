"""9: payloads that no handler can take, kinds that nobody knows, and large ones: each costs its own job only."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from tests.worker.helpers import ask, drain, make_app, show

from semel import App, ArgumentsTooLarge, Backoff, RetryPolicy


@pytest.fixture
def app(database_url: str) -> App:
    app = make_app(database_url)

    @app.job
    async def charge(order: int, lines: list[str] | None = None) -> int:
        return order

    @app.job
    def anything(value: Any) -> int:
        return 1

    return app


def insert(url: str, kind: str, payload: str) -> int:
    sql = "INSERT INTO jobs (kind, payload) VALUES (%s, CAST(%s AS jsonb)) RETURNING id"
    return int(ask(url, sql, kind, payload)[0][0])


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        ('{"order": "seven"}', "'order'"),
        ('{"order": 1.5}', "'order'"),
        ('{"order": null}', "'order'"),
        ("{}", "'order'"),
        ('{"order": 1, "colour": "red"}', "'colour'"),
        ('{"order": 1, "lines": [1]}', "'lines'"),
    ],
)
def test_9_a_payload_that_does_not_fit_fails_its_attempt_and_names_the_argument(
    database_url: str, app: App, payload: str, complaint: str
) -> None:
    poison = insert(database_url, "charge", payload)
    neighbour = insert(database_url, "charge", '{"order": 7}')
    drain(app)
    record = show(database_url, poison)
    assert (record.job.status, record.job.attempts) == ("pending", 1)
    assert record.errors[0]["type"] == "semel.errors.PayloadUnreadable"
    assert complaint in record.errors[0]["message"]
    assert record.payload == json.loads(payload)
    assert show(database_url, neighbour).job.status == "done"


@pytest.mark.parametrize("payload", ["[1]", "7", '"order"', "null"])
def test_9_a_payload_that_is_no_object_is_refused_at_the_insert(
    database_url: str, app: App, payload: str
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        insert(database_url, "charge", payload)


@pytest.mark.parametrize("kind", ["charge", "anything"])
def test_9_a_payload_that_is_too_deep(database_url: str, app: App, kind: str) -> None:
    deep = "[" * 5000 + "]" * 5000
    poison = insert(database_url, kind, f'{{"order": {deep}, "value": {deep}}}')
    neighbour = insert(database_url, "charge", '{"order": 7}')
    drain(app)
    rows = ask(
        database_url, "SELECT status, attempts, errors -> 0 ->> 'type' FROM jobs WHERE id = %s", poison
    )
    assert rows == [("pending", 1, "semel.errors.PayloadUnreadable")]
    assert show(database_url, neighbour).job.status == "done"


def test_9_an_unknown_kind_is_an_error_that_says_so(database_url: str, app: App) -> None:
    unknown = insert(database_url, "refund", "{}")
    drain(app)
    record = show(database_url, unknown)
    assert (record.job.status, record.job.attempts) == ("pending", 1)
    assert record.errors[0]["type"] == "semel.errors.UnknownKind"
    assert "no handler for the kind 'refund'" in record.errors[0]["message"]


def test_9_thousands_of_poisoned_jobs_end_like_one(database_url: str, app: App) -> None:
    """They end without a turn of the event loop between them, and must not pile up on the stack."""
    ask(
        database_url,
        """INSERT INTO jobs (kind, payload, max_attempts)
           SELECT CASE WHEN n % 2 = 0 THEN 'refund' ELSE 'charge' END, '{"order": "poison"}', 1
             FROM generate_series(1, 3000) AS n""",
    )
    last = insert(database_url, "charge", '{"order": 7}')
    drain(app)
    assert ask(database_url, "SELECT status, count(*) FROM jobs GROUP BY status") == [("failed", 3000)]
    assert show(database_url, last).job.status == "done"


def test_9_a_megabyte_goes_in_and_out_where_the_limit_allows(database_url: str) -> None:
    app = make_app(database_url, payload_limit=2_000_000)

    @app.job
    async def echo(text: str) -> str:
        return text

    text = "é" * 500_000
    jobs = [echo.enqueue(text) for _ in range(5)]
    drain(app)
    for job in jobs:
        assert show(database_url, job.id).result == text


def test_9_a_megabyte_is_refused_where_the_limit_does_not(app: App) -> None:
    with pytest.raises(ArgumentsTooLarge, match="65,536"):
        app.jobs["anything"].enqueue("x" * 1_000_000)


def test_9_a_deployed_handler_takes_what_an_older_one_could_not(database_url: str, app: App) -> None:
    waiting = insert(database_url, "refund", '{"order": 9}')
    drain(app)
    newer = make_app(database_url)

    @newer.job(retry=RetryPolicy(backoff=Backoff(base=0)))
    async def refund(order: int) -> int:
        return order

    ask(database_url, "UPDATE jobs SET run_at = now() WHERE id = %s", waiting)
    drain(newer)
    record = show(database_url, waiting)
    assert (record.job.status, record.job.attempts, record.result) == ("done", 2, 9)
