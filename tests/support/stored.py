"""What the database holds about jobs."""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg


class StoredJob(NamedTuple):
    id: int
    kind: str
    status: str
    attempts: int
    crashes: int
    claim: int
    result: Any


def ask(url: str, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Run one statement on a connection of its own."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def stored_jobs(url: str, queue: str = "default") -> list[StoredJob]:
    """Every job of a queue, whether still in ``jobs`` or in the history."""
    rows = ask(
        url,
        "SELECT id, kind, status, attempts, crashes, claim, result FROM semel.all_jobs WHERE queue = %s ORDER BY id",
        queue,
    )
    return [StoredJob(*row) for row in rows]


def statuses(url: str, queue: str = "default") -> dict[str, int]:
    """How many jobs of a queue are in each status."""
    rows = ask(url, "SELECT status, count(*) FROM semel.all_jobs WHERE queue = %s GROUP BY 1", queue)
    return dict(rows)  # type: ignore[arg-type]


def unfinished(url: str, queue: str = "default") -> int:
    """How many jobs of a queue are neither done nor given up."""
    (row,) = ask(url, "SELECT count(*) FROM semel.jobs WHERE live AND queue = %s", queue)
    return int(row[0])
