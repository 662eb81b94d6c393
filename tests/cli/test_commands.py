"""Each command's effect and its JSON."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command

from semel.sql import SCHEMA_VERSION
from semel.store.migrate import load_steps

Sql = Callable[..., list[tuple[Any, ...]]]


def fail(sql: Sql, count: int = 1, **columns: str) -> list[int]:
    names = "".join(f", {name}" for name in columns)
    values = "".join(", %s" for _ in columns)
    return [
        sql(
            f"INSERT INTO semel.jobs (kind, status, attempts, last_error{names}) "
            f"VALUES ('k', 'failed', 8, 'ValueError: [red]50%%'{values}) RETURNING id",
            tuple(columns.values()),
        )[0][0]
        for _ in range(count)
    ]


@pytest.mark.usefixtures("project")
def test_enqueue_checks_the_arguments_by_the_signature(semel: Command, sql: Sql) -> None:
    answer = semel(
        "enqueue", "shop:app", "welcome_email", "--args", '{"user_id": 1, "day": "2026-01-31"}', "--run", "10 min",
        "--priority", "5", "--queue", "mail", "--unique-key", "u", "--max-attempts", "3", "--json",
    )  # fmt: skip
    stored = answer.json()
    assert stored == {"id": stored["id"], "created": True, "status": "pending", "kind": "welcome_email"}
    ((payload, priority, queue, most, delayed),) = sql(
        "SELECT payload, priority, queue, max_attempts, run_at > now() + interval '9 min' FROM semel.jobs"
    )
    assert payload == {"user_id": 1, "day": "2026-01-31"}
    assert (priority, queue, most, delayed) == (5, "mail", 3, True)
    again = semel(
        "enqueue", "welcome_email", "--args", '{"user_id": 1}', "--unique-key", "u", SEMEL_APP="shop:app"
    )
    assert again.out == f"Job {stored['id']} has this unique key already; it is pending.\n"
    wrong = semel("enqueue", "shop:app", "welcome_email", "--args", '{"user_id": 1, "dya": "x"}')
    assert wrong.code == 2
    assert "dya" in wrong.err


@pytest.mark.usefixtures("project")
def test_enqueue_uses_the_applications_queue_and_attempts(semel: Command, sql: Sql) -> None:
    assert semel("enqueue", "shop:app", "broken").code == 0
    assert sql("SELECT queue, max_attempts FROM semel.jobs") == [("mail", 1)]


def test_enqueue_raw_needs_no_application(semel: Command, sql: Sql) -> None:
    at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert semel("enqueue", "--raw", "any", "--args", '{"ü": [1]}', "--run", at).code == 0
    assert sql("SELECT kind, payload, run_at::text FROM semel.jobs")[0][:2] == ("any", {"ü": [1]})
    large = semel("enqueue", "--raw", "any", "--args", f'{{"x": "{"y" * 70_000}"}}')
    assert large.code == 2
    assert "over the limit of 65,536" in large.err
    assert semel("enqueue", "--raw", "a", "b").code == 2


def test_jobs_lists_newest_first_by_filter(semel: Command, sql: Sql) -> None:
    first, second = fail(sql, 2)
    (waiting,) = sql("INSERT INTO semel.jobs (kind, queue) VALUES ('k', 'mail') RETURNING id")[0]
    page = semel("jobs", "--json").json()
    assert [job["id"] for job in page["jobs"]] == [waiting, second, first]
    assert set(page) == {"as_of", "jobs", "next_before_id"}
    assert set(page["jobs"][0]) == {
        "id", "kind", "queue", "status", "priority", "attempts", "max_attempts", "crashes", "run_at", "locked_until",
        "created_at", "finished_at", "unique_key", "last_error", "progress", "progress_message",
    }  # fmt: skip
    assert datetime.fromisoformat(page["as_of"]).utcoffset() == timedelta(0)
    assert [job["id"] for job in semel("jobs", "-s", "pending,held", "--json").json()["jobs"]] == [waiting]
    page = semel("jobs", "-s", "failed", "-n", "1", "--json").json()
    assert (page["jobs"][0]["id"], page["next_before_id"]) == (second, second)
    page = semel("jobs", "-s", "failed", "--before", str(second), "--json").json()
    assert [job["id"] for job in page["jobs"]] == [first]
    assert semel("jobs", "--newer", "1 h", "--error", "50%", "--ended-newer", "2020-01-01", "--json").json()[
        "jobs"
    ]
    assert semel("jobs", "--older", "1 h").out == "No such jobs.\n"


def test_tables_show_what_is_stored_and_obey_nothing_in_it(semel: Command, sql: Sql) -> None:
    fail(sql, queue="a\x1b[31mb")
    out = semel("jobs").out
    assert "ValueError: [red]50%" in out
    assert "\x1b" not in out
    (job,) = fail(sql)
    sql("UPDATE semel.jobs SET last_error = E'two\\nlines \\x1b[2J' WHERE id = %s", (job,))
    assert "\x1b" not in semel("job", "show", str(job)).out


def test_job_show(semel: Command, sql: Sql) -> None:
    (job,) = fail(sql)
    semel("job", "retry", str(job), "--who", "ann", "--why", "mended")
    record = semel("job", "show", str(job), "--json").json()
    assert set(record) == {
        "as_of", "job", "payload", "result", "errors", "events", "unique_until", "ordering_key", "claim", "worker",
        "in_history", "meta",
    }  # fmt: skip
    assert record["job"]["status"] == "pending"
    (event,) = record["events"]
    assert {key: event[key] for key in ("act", "who", "why", "before", "after")} == {
        "act": "retry",
        "who": "ann",
        "why": "mended",
        "before": "failed",
        "after": "pending",
    }
    out = semel("job", "show", str(job)).out
    assert f"Job {job}: k, pending, due, in queue default" in out
    assert "retry by ann, failed → pending: mended" in out


def test_acts_go_on_after_one_that_cannot_be_done(semel: Command, sql: Sql) -> None:
    first, second = fail(sql, 2)
    answer = semel("job", "retry", str(first), "999", str(second), "--json")
    assert answer.code == 1
    assert '"error": "not-found"' in answer.out
    assert sql("SELECT count(*) FROM semel.jobs WHERE status = 'pending'") == [(2,)]
    assert "There is no job 999." in answer.err
    ((who,),) = sql("SELECT DISTINCT who FROM semel.job_events")
    assert "@" in who
    cancelled = semel("job", "cancel", str(first), "--json").json()
    assert cancelled == {
        "results": [
            {
                "job_id": first,
                "act": "cancel",
                "before": "pending",
                "after": "cancelled",
                "new_id": None,
                "note": "",
            }
        ]
    }
    assert semel("job", "delete", str(first)).out == f"Job {first}: cancelled → deleted.\n"
    gone = semel("job", "show", str(first))
    assert gone.code == 1
    assert "did 'delete' at" in gone.err


def test_cancelling_a_running_job_says_what_follows(semel: Command, sql: Sql) -> None:
    ((job,),) = sql("INSERT INTO semel.jobs (kind, status) VALUES ('k', 'running') RETURNING id")
    refused = semel("job", "delete", str(job))
    assert refused.code == 1
    assert f"semel job cancel {job}" in refused.err
    assert "its handler is told so at its worker's next lease beat" in semel("job", "cancel", str(job)).out


def test_retry_of_many(semel: Command, sql: Sql) -> None:
    fail(sql, 3)
    fail(sql, 2, queue="mail")
    assert semel("retry", "--queue", "mail", "--dry-run").out == "2 jobs would be run again.\n"
    assert semel("retry", "--queue", "mail", "--json").json() == {
        "matched": 2,
        "changed": 2,
        "dry_run": False,
    }
    assert semel("retry", "--all").out == "3 jobs run again.\n"


def test_purge(semel: Command, sql: Sql) -> None:
    fail(sql, 3)
    words = ("purge", "--status", "failed", "--status", "done", "--older")
    assert semel(*words, "1 h", "--dry-run").out == "0 jobs would be deleted.\n"
    assert semel(*words, "0 s", "--json").json() == {"matched": 3, "changed": 3, "dry_run": False}
    assert semel("purge", "--status", "done").code == 2


def test_queues_and_schedules(semel: Command, sql: Sql) -> None:
    assert semel("queues").out == "No jobs.\n"
    assert semel("schedules").out.startswith("No schedules.")
    fail(sql)
    sql("INSERT INTO semel.jobs (kind) VALUES ('k')")
    sql("INSERT INTO semel.schedules (name, definition, kind) VALUES ('daily', '0 2 * * *', 'k')")
    counts = semel("queues", "--history", "--json").json()
    (default,) = counts["queues"]
    assert 0 <= default.pop("oldest_due_seconds") < 60
    assert default == {
        "queue": "default", "due": 1, "delayed": 0, "retrying": 0, "running": 0, "expired": 0, "failed": 1, "held": 0,
        "finished": 0,
    }  # fmt: skip
    assert set(counts["history"][0]) == {"day", "jobs", "bytes"}
    listed = semel("schedules", "--json").json()
    assert set(listed["schedules"][0]) == {"name", "definition", "kind", "since", "seen_at", "last_tick"}
    assert "default" in semel("queues").out
    assert "daily" in semel("schedules").out


def test_migrate(bare: Command, empty_database_url: str) -> None:
    on = ("--database", empty_database_url)
    steps = load_steps()
    listed = [{"version": step.version, "phase": step.phase, "name": step.name} for step in steps]
    dry = bare("migrate", "--dry-run", "--json", *on).json()
    assert dry == {"schema": "semel", "version": 0, "dry_run": True, "steps": listed}
    assert bare("jobs", *on).code == 1
    done = f"The schema semel is at version {SCHEMA_VERSION}.\n"
    assert bare("migrate", *on).out == "".join(f"applied {step}\n" for step in steps) + done
    assert bare("migrate", *on).out == f"Nothing to do.\n{done}"
    assert bare("jobs", *on).code == 0


def test_migration_writes_a_file_and_never_over_one(bare: Command, tmp_path: Path) -> None:
    target = tmp_path / "0001_semel.sql"
    assert bare("migration", "sql", "--schema", "mine", "-o", str(target)).code == 0
    assert target.read_text() == bare("migration", "sql", "--schema", "mine").out
    assert 'CREATE SCHEMA IF NOT EXISTS "mine"' in target.read_text()
    again = bare("migration", "sql", "-o", str(target))
    assert again.code == 2
    assert "Could not write" in again.err
    assert "DROP TABLE" in bare("migration", "sql", "--down").out


@pytest.mark.usefixtures("project")
def test_the_application_says_where_nothing_else_does(
    bare: Command, database_url: str, project: Path
) -> None:
    source = project / "shop.py"
    source.write_text(
        source.read_text()
        .replace("App()", f"App({database_url!r})")
        .replace('App(schema="elsewhere")', f'App({database_url!r}, schema="elsewhere")')
    )
    assert bare("jobs", SEMEL_APP="shop:app").code == 0
    elsewhere = bare("jobs", SEMEL_APP="shop:other")
    assert elsewhere.code == 1
    assert "There is no table elsewhere.migrations" in elsewhere.err
    assert bare("jobs", "--schema", "semel", SEMEL_APP="shop:other").code == 0


def test_without_a_database_the_embedded_server_is_used(bare: Command, tmp_path: Path) -> None:
    home = {"SEMEL_HOME": str(tmp_path / "home")}
    try:
        listed = bare("jobs", **home)
        assert (listed.code, listed.out) == (0, "No such jobs.\n")
        assert "Using the embedded PostgreSQL" in listed.err
        status = bare("db", "status", "--json", **home).json()
        assert status["state"] == "ready"
        assert bare("db", "start", **home).out == f"{status['url']}\n"
        assert bare("db", "url", **home).out == f"{status['url']}\n"
        assert bare("migrate", **home).out.startswith("Nothing to do.")
        assert bare("db", "stop", **home).out == "Stopped.\n"
        assert bare("db", "stop", **home).out == "It was not running.\n"
        assert bare("db", "status", **home).code == 1
    finally:
        assert bare("db", "destroy", "--yes", **home).code == 0
    assert bare("db", "status", "--json", **home).code == 1


def commands() -> list[tuple[str, ...]]:
    top = (
        "worker",
        "enqueue",
        "jobs",
        "queues",
        "schedules",
        "retry",
        "purge",
        "migrate",
        "migration",
        "job",
        "db",
    )
    under = [("job", name) for name in ("show", "retry", "cancel", "delete")]
    under += [("db", name) for name in ("start", "stop", "status", "psql", "url", "destroy")]
    return [(name,) for name in top] + under


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_has_an_example(bare: Command, words: tuple[str, ...]) -> None:
    out = bare(*words, "--help").out
    assert "Example: " in out
    assert " ".join(words) in out.split("Example: ")[1]


def test_help_explains_exit_codes(bare: Command) -> None:
    out = " ".join(bare("--help").out.split())
    assert "Exit codes: 0 done" in out
    assert bare("--version").out.startswith("semel ")
