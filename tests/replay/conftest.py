"""Databases and folders that replays run in; and a project with a job that is replayed in earnest, guarded and not."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.guard.conftest import make_database, mariadb

from semel.replay.staging import declare
from semel.store.guard_tables import create_tables

__all__ = ["make_database", "mariadb"]

JOBS = """
import pathlib, semel, provider

once = semel.Once(str(pathlib.Path(__file__).parent / "guard.db"))

@once.operation("charge", key="order", acting="explicit", effect=semel.Hold(), lease="30 s")
def charge(op, order: int):
    with op.acting():
        provider.charge(order)
    return op.done(order)

def bare(order: int):
    provider.charge(order)
"""
PROVIDER = """
import pathlib

def charge(order):
    with (pathlib.Path(__file__).parent / "charges.txt").open("a") as file:
        file.write(f"{order}\\n")
"""
DESCRIPTION = """
name = "{name}"
rounds = 2

[deliver]
by = "callable"
function = "replayed_jobs:{name}"

[watch]
call = "provider.charge"

[message]
order = "{{n}}"

[look_alike]
order = "{{n}}"
{more}
"""
GUARDED = '\n[guard]\noperation = "replayed_jobs:charge"\n'
UNGUARDED = '\n[control]\nnone = "nothing guards it"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of the test's own, with no project around it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sqlite(folder: Path) -> Path:
    """A SQLite file with the guard's tables."""
    path = folder / "guard.db"
    create_tables(path)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of the project; its targets are declared as staging."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "replayed_jobs.py").write_text(JOBS)
    (tmp_path / "provider.py").write_text(PROVIDER)
    (tmp_path / "charge.toml").write_text(DESCRIPTION.format(name="charge", more=GUARDED))
    (tmp_path / "bare.toml").write_text(DESCRIPTION.format(name="bare", more=UNGUARDED))
    command = [
        sys.executable,
        "-m",
        "semel.cli",
        "migration",
        "sql",
        "--only",
        "guard",
        "--dialect",
        "sqlite",
    ]
    sql = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    with sqlite3.connect(tmp_path / "guard.db") as connection:
        connection.executescript(sql)
    connection.close()
    declare(
        tmp_path,
        {
            "guard": str(tmp_path / "guard.db"),
            "a": "function replayed_jobs:charge",
            "b": "function replayed_jobs:bare",
        },
    )
    return tmp_path


@pytest.fixture
def semel(project: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command as a process of its own, in the project."""

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "semel.cli", *words]
        return subprocess.run(
            command,
            cwd=project,
            capture_output=True,
            text=True,
            timeout=350,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return call
