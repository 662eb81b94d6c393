"""The example: a payout job on Celery and Redis that repeats, and the same with its guard, as an engineer goes through it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.adapters import brokers
from tests.support.keeping import free_port, run_directory
from tests.support.waiting import until

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "before_and_after"
DESCRIPTION = "replay-payout.toml"
BOTH = ("--code", "before=before", "--code", "after=after")
CHECKS = ("three-deliveries", "look-alikes", "killed-on-return-child", "killed-past-completion")
"""The tutorial, docs/it-happened-twice.md, has run two at once."""

Semel = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the example, which is a project of its own."""
    copy = tmp_path / "market"
    shutil.copytree(EXAMPLE, copy)
    (copy / "pyproject.toml").touch()
    return copy


@pytest.fixture
def database(project: Path, make_database: Callable[[str], Any]) -> str:
    """With the market's books, as the code after has them."""
    url: str = make_database("postgresql")
    with psycopg.connect(url) as connection:
        connection.execute((project / "after" / "schema.sql").read_text("utf-8"))
    return url


@pytest.fixture
def semel(request: pytest.FixtureRequest, project: Path, database: str) -> Iterator[Semel]:
    """The command in the project, with a Redis, a database and a bank that is open."""
    port = free_port()
    told = {
        **os.environ,
        "REDIS_URL": brokers.shared_redis(*run_directory(request)).new_url(),
        "SEMEL_DATABASE_URL": database,
        "BANK_URL": f"http://127.0.0.1:{port}",
        "C_FORCE_ROOT": "1",
    }

    def call(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "semel", *words],
            cwd=project,
            env={**told, **more},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=550,
            check=False,
        )

    bank = subprocess.Popen([sys.executable, "-m", "bank", "--port", str(port)], cwd=project)
    try:
        until(lambda: is_open(told["BANK_URL"]), "the bank is open")
        yield call
    finally:
        bank.send_signal(signal.SIGTERM)
        bank.wait(20)


def is_open(bank: str) -> bool:
    try:
        with urllib.request.urlopen(f"{bank}/payments?note=none", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def paid_at_the_bank(project: Path) -> set[str]:
    with sqlite3.connect(project / "bank.db") as ledger:
        return {note for (note,) in ledger.execute("SELECT note FROM payments")}


def written_down(database: str) -> set[str]:
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT payout_id, payment FROM market_payments").fetchall()
    assert len({payment for _, payment in found}) == len(found)
    return {f"payout {payout_id}" for payout_id, _ in found}


@pytest.mark.timeout(600)
def test_the_code_before_fails_and_the_code_after_holds(semel: Semel, project: Path, database: str) -> None:
    refused = semel("replay", DESCRIPTION, *BOTH)
    assert refused.returncode == 2
    assert "not-staging" in refused.stderr
    assert semel("replay", DESCRIPTION, *BOTH, "--staging").returncode == 0
    only = [word for check in CHECKS for word in ("--only", check)]
    done = semel("replay", DESCRIPTION, *BOTH, *only, "--json", "--html", "payout.html")
    assert done.returncode == 0, done.stdout + done.stderr
    before, after = json.loads(done.stdout)["runs"]
    verdicts = {
        run["label"]: {each["name"]: each["verdict"] for each in run["checks"]} for run in (before, after)
    }
    assert verdicts["after"] == dict.fromkeys(CHECKS, "holds")
    assert verdicts["before"] == {
        "three-deliveries": "holds",  # the books say so by then
        "look-alikes": "holds",
        "killed-on-return-child": "fails",
        "killed-past-completion": "holds",  # it has none
    }
    paid = paid_at_the_bank(project)
    assert paid
    assert paid - written_down(database) == set()


def test_what_happened_twice_already(semel: Semel) -> None:
    done = semel("repeats", "payments.csv", "-r", "payout_id", "-t", "paid_at", "--deploys", "deploys.txt")
    assert done.returncode == 1
    assert "30 came more than once (30 repeats)" in done.stdout
    assert "12 gaps (40.0%) about 10 min apart" in done.stdout
    assert "9 of 30 repeats within 10 min after a deploy" in done.stdout


def test_the_payments_are_made_anew_as_they_are(project: Path) -> None:
    before = [(project / name).read_bytes() for name in ("payments.csv", "deploys.txt")]
    subprocess.run([sys.executable, "make_payments.py"], cwd=project, check=True)
    assert [(project / name).read_bytes() for name in ("payments.csv", "deploys.txt")] == before


def test_its_note_is_current(semel: Semel, project: Path) -> None:
    done = semel("note", "--check", "payout.md", PYTHONPATH=str(project / "after"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_was_found_out_about_it_lacks_only_the_choice(semel: Semel, project: Path) -> None:
    done = semel("fit", "--answers", "fit.toml")
    assert done.returncode == 1
    assert done.stdout.count("[") == done.stdout.count("[policy-not-chosen]") == 1
