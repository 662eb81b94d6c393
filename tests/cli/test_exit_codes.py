"""Exit codes and messages: 0 done, 1 not so, 2 wrong usage, 3 not reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import SHOP, Command

NOWHERE = "postgresql://semel@127.0.0.1:1/none"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("jobs",), 0, ""),
        (("job", "show", "999"), 1, "There is no job 999."),
        (("job", "retry", "999"), 1, "There is no job 999."),
        (("jobs", "--schema", "other"), 1, "There is no table other.migrations"),
        (("jobs", "--status", "lost"), 2, "'lost' is not a status."),
        (("jobs", "--older", "soon"), 2, "--older is 'soon': neither an age nor a date."),
        (("jobs", "--limit", "0"), 2, "--limit"),
        (("jobs", "--wrong"), 2, "--wrong"),
        (("job", "show", "x"), 2, "ID"),
        (("retry",), 2, "No filter was given."),
        (("purge", "--status", "running", "--older", "1 h"), 2, "cannot be purged"),
        (("jobs", "--database", NOWHERE), 3, "Could not connect to the database"),
        (("migrate", "--database", NOWHERE), 3, "Could not connect to the database"),
        (("jobs", "--database", "http://x"), 2, "This is not a PostgreSQL URL"),
        (("migration", "flyway"), 2, "FORMAT"),
        (("worker",), 2, "No application was given."),
        (("enqueue", "shop:missing", "k"), 2, "missing of shop is not there."),
        (("enqueue", "shop:number", "k"), 2, "number of shop is a int, not a semel.App."),
        (("enqueue", "nowhere:app", "k"), 2, "There is no module nowhere."),
        (("enqueue", "shop.jobs.app", "k"), 2, "Write shop.jobs:app."),
        (("enqueue", "shop", "k"), 2, "'shop' is not written as module:attribute."),
        (("enqueue", "broken_import:app", "k"), 2, "Importing broken_import failed: ZeroDivisionError"),
        (
            ("enqueue", "missing_import:app", "k"),
            2,
            "Importing missing_import failed: No module named 'absent'",
        ),
        (("enqueue", "shop:app", "unknown"), 2, "shop:app has no job 'unknown'."),
        (("enqueue", "shop:app", "welcome_email"), 2, "user_id"),
        (("enqueue", "shop:app", "welcome_email", "--args", "[1]"), 2, "--args is no JSON object."),
        (("enqueue", "shop:app", "welcome_email", "--args", "{"), 2, "--args is not JSON"),
        (("db", "destroy", "--directory", "none"), 2, "Say --yes"),
        (("db", "status", "--directory", "none"), 1, ""),
        (("db", "psql", "--directory", "none"), 3, "does not run"),
    ],
)
def test_exit_codes(semel: Command, project: Path, words: tuple[str, ...], code: int, message: str) -> None:
    (project / "broken_import.py").write_text("1 / 0")
    (project / "missing_import.py").write_text("import absent")
    answer = semel(*words)
    assert answer.code == code, answer.err
    assert message in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("jobs",), 0, ""),
        (("job", "show", "999"), 1, "Error: There is no job 999. [not-found]\n"),
        (
            ("jobs", "--status", "lost"),
            2,
            "Error: 'lost' is not a status. [configuration]\n  One of: pending, ",
        ),
        (("jobs", "--wrong"), 2, "No such option"),
        (("jobs", "--database", NOWHERE), 3, "Could not connect to the database"),
    ],
)
def test_exit_codes_of_processes(
    process: Command, database_url: str, words: tuple[str, ...], code: int, message: str
) -> None:
    answer = process(*words, SEMEL_DATABASE_URL=database_url)
    assert answer.code == code, answer.err
    assert message in answer.err
    assert "Traceback" not in answer.err


def test_debug_shows_the_traceback(process: Command, database_url: str) -> None:
    for words, environment in (
        (("--debug", "job", "show", "9"), {}),
        (("job", "show", "9"), {"SEMEL_DEBUG": "1"}),
    ):
        answer = process(*words, SEMEL_DATABASE_URL=database_url, **environment)
        assert answer.code == 1
        assert "Traceback" in answer.err
        assert "There is no job 9." in answer.err


def test_a_database_that_refuses_is_one_sentence(
    process: Command, database_url: str, sql: Callable[..., object]
) -> None:
    role = f"reader_{database_url.split('/test_')[1][:8]}"
    sql(f"CREATE ROLE {role} LOGIN")
    try:
        sql(f"GRANT USAGE ON SCHEMA semel TO {role}")
        answer = process("jobs", SEMEL_DATABASE_URL=database_url.replace("semel@", f"{role}@"))
        assert answer.code == 3
        assert answer.err.startswith("Error: The database refused: permission denied for table migrations.")
        assert "Traceback" not in answer.err
    finally:
        sql(f"REVOKE USAGE ON SCHEMA semel FROM {role}")
        sql(f"DROP ROLE {role}")


def test_a_drained_worker_ends_with_0(process: Command, database_url: str, tmp_path: Path, sql) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    stored = process(
        "enqueue", "shop:app", "welcome_email", "--args", '{"user_id": 1}', SEMEL_DATABASE_URL=database_url
    )
    assert stored.code == 0, stored.err
    answer = process("worker", "shop:app", "--drain", "--database", database_url)
    assert answer.code == 0, answer.err
    assert sql("SELECT kind, status FROM semel.all_jobs") == [("welcome_email", "done")]
    assert process("worker", "nowhere:app", "--drain", "--database", database_url).code == 2
