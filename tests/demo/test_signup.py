"""The sign-up application of examples/ by itself, as its README runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def sign_up(database: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "signup", *arguments],
        cwd=EXAMPLES,
        env={**os.environ, "SEMEL_DATABASE_URL": database},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_sign_up_stores_a_user_and_a_job(database_url: str) -> None:
    done = sign_up(database_url, "Ada Lovelace", "ada@example.org")
    assert (done.returncode, done.stderr) == (0, "")
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT name, email, kind, status FROM users JOIN semel.jobs ON (payload ->> 'user_id')::bigint = users.id"
        ).fetchall()
    assert rows == [("Ada Lovelace", "ada@example.org", "welcome_email", "pending")]


def test_a_sign_up_that_fails_stores_neither(database_url: str) -> None:
    sign_up(database_url, "Ada Lovelace", "ada@example.org")
    again = sign_up(database_url, "Ada Byron", "ada@example.org")
    assert (again.returncode, again.stderr) == (1, "ada@example.org has signed up before.\n")
    with psycopg.connect(database_url) as connection:
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM semel.jobs)"
        ).fetchone()
    assert counts == (1, 1)


def test_without_a_name_it_says_how(database_url: str) -> None:
    done = sign_up(database_url)
    assert done.returncode == 2
    assert "python -m signup" in done.stderr
