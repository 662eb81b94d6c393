"""What `semel doctor --app` finds, alone and with what a database measured; and the command over everything at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.docs.pages import ROOT
from typer.testing import CliRunner

import semel
from semel.cli.main import build
from semel.core.effects import AcceptMiss, Hold, Lookup, ProviderKey, Row
from semel.core.measured import Runs
from semel.core.settings import Settings
from semel.doctor.application import ApplicationNumbers, GuardNumbers, JobNumbers, check_application
from semel.doctor.application_reading import read_application, retry_horizon
from semel.doctor.application_words import WORDS

DAY, HOUR, MINUTE, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
GUARD = GuardNumbers(name="charge", effect=Hold(), lease=MINUTE, longest_run=5 * MINUTE, extend=True)
JOB = JobNumbers(kind="charge_order", guard=GUARD)
RUNS = Runs(
    job_type="charge",
    count=100,
    p99=SECOND,
    longest=10 * SECOND,
    first=datetime(2026, 1, 1, tzinfo=UTC),
    last=datetime(2026, 1, 2, tzinfo=UTC),
    past_lease=0,
    longest_past_lease=timedelta(0),
)


def app(settings: Settings | None = None, **guard: Any) -> ApplicationNumbers:
    return ApplicationNumbers(
        settings=settings or Settings(), jobs=(replace(JOB, guard=replace(GUARD, **guard)),)
    )


def job(**changed: Any) -> ApplicationNumbers:
    return ApplicationNumbers(jobs=(replace(JOB, **changed),))


def codes(numbers: ApplicationNumbers, longest: timedelta | None = None) -> set[str]:
    measured = {} if longest is None else {"charge": replace(RUNS, longest=longest)}
    return {finding.code for finding in check_application(numbers, measured)}


def test_what_fits_has_no_findings() -> None:
    assert codes(app()) == codes(app(), 10 * SECOND) == set()


FOUND: dict[str, tuple[str, ApplicationNumbers, ApplicationNumbers]] = {
    "bare": ("app-not-guarded", job(guard=None), job(guard=None, in_transaction=True)),
    "lease": ("app-lease-short", app(Settings(lease=5 * SECOND)), app(Settings(lease=10 * SECOND))),
    "no time-out": ("app-no-timeout", job(timeout=None), job(timeout=HOUR)),
    "no time-out of a row": (
        "app-no-timeout",
        job(timeout=None),
        job(timeout=None, guard=replace(GUARD, effect=Row())),
    ),
    "retries": ("app-retention-retries", job(retries=90 * DAY), job(retries=50 * DAY)),
    "failed": ("app-retention-failed", app(keep=30 * DAY), app(keep=31 * DAY)),
    "window": (
        "app-provider-window",
        app(effect=ProviderKey(valid_for="6 min")),
        app(effect=ProviderKey(valid_for="7 min")),
    ),
    "retries past the window": (
        "app-provider-retries",
        job(guard=replace(GUARD, effect=ProviderKey(valid_for="2 h")), retries=3 * HOUR),
        job(guard=replace(GUARD, effect=ProviderKey(valid_for="2 h")), retries=HOUR),
    ),
    "settle": (
        "app-settle-short",
        app(effect=Lookup(print, settle=0)),
        app(effect=Lookup(print, settle="30 s")),
    ),
    "settle of a then": (
        "app-settle-short",
        app(effect=ProviderKey(valid_for="24 h", then=Lookup(print, settle=0))),
        app(effect=ProviderKey(valid_for="24 h", then=Lookup(print, settle="30 s"))),
    ),
    "delivery": (
        "app-delivery-key",
        app(key_fields=("message_id",)),
        app(key_fields=("order_id", "delivery_id")),
    ),
    "personal": (
        "app-personal-key",
        app(key_fields=("customer_email",)),
        app(key_fields=("email",), secret=True),
    ),
    "from start": ("app-from-start", app(explicit=False), app(explicit=False, effect=Row())),
}


@pytest.mark.parametrize("name", FOUND)
def test_each_is_found_where_it_is_and_nowhere_else(name: str) -> None:
    code, bad, good = FOUND[name]
    assert codes(bad) == {code}
    assert codes(good) == set()


def test_measured_runs() -> None:
    assert codes(app(), 31 * SECOND) == {"app-measured-stop"}
    assert codes(app(), 6 * MINUTE) == {"app-measured-run", "app-measured-stop"}
    assert codes(app(effect=Row()), 6 * MINUTE) == set(), "no lease counts"
    alone = app(extend=False, lease=20 * SECOND, longest_run=20 * SECOND)
    assert codes(alone, 25 * SECOND) == {"app-measured-run"}
    assert codes(app(effect=AcceptMiss()), 29 * SECOND) == set()


def test_every_code_has_its_line_and_its_case() -> None:
    text = (ROOT / "docs/doctor.md").read_text("utf-8")
    assert [code for code in WORDS if f"`{code}`" not in text] == []
    assert {code for code, *_ in FOUND.values()} | {"app-measured-run", "app-measured-stop"} == set(WORDS)


def test_how_long_retries_take() -> None:
    made = semel.App("postgresql://nowhere")

    @made.job
    def usual() -> None: ...

    @made.job(max_attempts=1)
    def once() -> None: ...

    @made.job(max_attempts=10_000)
    def long() -> None: ...

    assert retry_horizon(usual) == 254 * SECOND, "2 + 4 + … + 128"
    assert retry_horizon(once) == timedelta(0)
    assert 415 * DAY < retry_horizon(long) < 417 * DAY


SHOP = """
import semel
from celery import Celery
from semel.adapters.celery import guard

app = semel.App()
once = semel.Once(app)
celery = Celery("shop", broker="redis://localhost")

@app.job(once=once.operation("charge", key="order_id", acting="explicit"))
def charge(op: semel.Operation, order_id: int) -> None: ...

@app.job
def bare(order_id: int) -> None: ...

@once.operation("refund", key="request_id")
def refund(op: semel.Operation, request_id: str) -> None: ...

@celery.task(acks_late=True, reject_on_worker_lost=True, time_limit=55, soft_time_limit=50, shared=False)
@guard(once.operation("mail", key="order_id", lease="1 min", acting="explicit"))
def mail(op: semel.Operation, order_id: int) -> None: ...
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("SEMEL_APP", "SEMEL_DATABASE_URL", "SEMEL_SCHEMA", "SEMEL_CELERY_APP"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "doctor_shop.py").write_text(SHOP)
    (tmp_path / "sidekiq.yml").write_text(":timeout: 90\n")
    yield tmp_path
    sys.modules.pop("doctor_shop", None)


def call(*words: str, **environment: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(build(), ["doctor", *words], env=environment, prog_name="semel")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_an_application_is_read(folder: Path) -> None:
    import importlib

    found = read_application(importlib.import_module("doctor_shop").app)
    bare, charge = found.jobs
    assert (bare.guard, charge.kind) == (None, "charge")
    assert charge.guard is not None
    assert (charge.guard.name, charge.guard.extend, charge.guard.key_fields) == (
        "charge",
        True,
        ("order_id",),
    )


def measure(url: str, job_type: str, seconds: int) -> None:
    once = semel.Once(url)
    with once.claim(job_type, seconds):
        pass
    once.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "UPDATE semel.operations SET claimed_at = completed_at - make_interval(secs => %s) WHERE job_type = %s",
            (seconds, job_type),
        )


def test_everything_at_once_is_one_report(folder: Path, database_url: str) -> None:
    measure(database_url, "charge", 400)
    measure(database_url, "mail", 70)
    words = (
        "--database",
        database_url,
        "--app",
        "doctor_shop:app",
        "--celery",
        "doctor_shop:celery",
        "--sidekiq",
        "sidekiq.yml",
    )
    code, out, err = call(*words, "--json")
    assert code == 1, err
    report = json.loads(out)
    assert [each.partition(" ")[0] for each in report["checked"]] == ["database", "app", "celery", "sidekiq"]
    found = {(each["code"], each["subject"]) for each in report["findings"]}
    assert {
        ("database-fsync", "the database"),
        ("app-not-guarded", "the application"),
        ("app-measured-run", "charge"),
        ("app-measured-run", "mail"),
        ("celery-visibility-shared", "the broker"),
        ("sidekiq-time-out-over-lease", "the configuration"),
        ("sidekiq-dead-kept", "the dead set"),
    } <= found
    severities = [each["severity"] for each in report["findings"]]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    shown = call(*words)[1]
    assert shown.count(" [") == len(report["findings"])
    for each in report["findings"]:
        assert f"[{each['code']}]\n  {each['happened']}\n  {each['mend']}\n" in shown


def test_a_guarded_function_that_no_queue_calls_is_looked_at_by_its_name(
    folder: Path, database_url: str
) -> None:
    measure(database_url, "refund", 400)
    code, out, err = call("--guarded", "doctor_shop:refund", "--guarded", "doctor_shop:charge")
    assert code == 0, err
    assert "note: refund: key request_id [app-delivery-key]" in out
    assert "Looked at: guarded doctor_shop:refund, guarded doctor_shop:charge. To mend: 0; notes: 2." in out
    code, out, _ = call("--guarded", "doctor_shop:refund", "--database", database_url)
    assert "[app-measured-run]" in out
    code, _, err = call("--guarded", "doctor_shop:bare")
    assert code == 2
    assert "The job bare is not guarded." in err


def test_a_password_is_not_shown(folder: Path) -> None:
    _, out, err = call("--database", "postgresql://me:secret@127.0.0.1:1/nothing")
    assert "secret" not in out + err


def test_a_password_is_not_in_the_report_either(folder: Path, database_url: str) -> None:
    parts = urlsplit(database_url)
    user, _, host = parts.netloc.rpartition("@")
    given = parts._replace(netloc=f"{user.partition(':')[0] or 'postgres'}:hunter2@{host}").geturl()
    code, out, err = call("--database", given, "--fail-on", "never")
    assert code == 0, err
    assert f"Looked at: database postgresql://{host}{parts.path}. " in out
    assert "hunter2" not in out + err
    assert "hunter2" not in call("--database", given, "--json")[1]


def test_what_is_severe_enough_to_fail(folder: Path, database_url: str) -> None:
    note = ("--app", "doctor_shop:app")
    assert call(*note)[0] == 0
    assert call(*note, "--fail-on", "note")[0] == 1
    warning = ("--sidekiq", "sidekiq.yml")
    assert call(*warning)[0] == 1
    assert call(*warning, "--fail-on", "error")[0] == 0
    error = ("--database", database_url)
    assert call(*error, "--fail-on", "error")[0] == 1
    assert call(*error, "--fail-on", "never")[0] == 0
    assert call(*note, "--fail-on", "always")[0] == 2


def test_the_environments_database_counts_where_nothing_is_named(folder: Path, database_url: str) -> None:
    code, out, _ = call("--json", SEMEL_DATABASE_URL=database_url)
    assert code == 1
    assert json.loads(out)["checked"][0].startswith("database")
    _, out, _ = call("--app", "doctor_shop:app", "--json", SEMEL_DATABASE_URL=database_url)
    assert json.loads(out)["checked"] == ["app doctor_shop:app"]


def test_what_is_kept_is_the_applications(folder: Path, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("INSERT INTO semel.jobs (kind, run_at) VALUES ('far', now() + interval '80 days')")

    def found(*words: str) -> bool:
        return "[database-retention]" in call("--database", database_url, *words)[1]

    assert not found()
    assert found("--keep", "70 days")
    shop = folder / "doctor_shop.py"
    shop.write_text(SHOP.replace("semel.App()", 'semel.App(keep_operations="70 days")'))
    assert found("--app", "doctor_shop:app")


def test_the_connections_that_workers_need(folder: Path, database_url: str) -> None:
    assert (
        "[database-connections]" in call("--database", database_url, "--workers", "20", "--children", "8")[1]
    )
    assert (
        "[database-connections]"
        not in call("--database", database_url, "--workers", "2", "--children", "8")[1]
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "nothing to look at"),
        (("--database", "postgresql://127.0.0.1:1/nothing"), 3, "Could not connect"),
        (("--sidekiq", "missing.yml"), 2, "cannot be read"),
        (("--sidekiq-redis", "redis://127.0.0.1:1/0"), 3, "could not be asked"),
        (("--app", "nowhere:app"), 2, "no module"),
        (("--sidekiq", "sidekiq.yml", "--lease", "soon"), 2, "not a duration"),
    ],
)
def test_wrong_usage(folder: Path, words: tuple[str, ...], code: int, said: str) -> None:
    found, _, err = call(*words)
    assert found == code
    assert said in err
