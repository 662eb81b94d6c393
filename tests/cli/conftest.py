"""The command line, in this process and as a process of its own, over this test's database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from semel.cli.main import build

SHOP = """
from datetime import date
from semel import App

app = App()
other = App(schema="elsewhere")

@app.job
async def welcome_email(user_id: int, day: date | None = None) -> None: ...

@app.job(max_attempts=1, queue="mail")
def broken(why: str = "no reason") -> None:
    raise ValueError(why)

@app.schedule("0 2 * * *", tz="Europe/London")
@app.job
def nightly() -> None: ...

number = 7
"""


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


Command = Callable[..., Answer]


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SEMEL_APP", "SEMEL_DATABASE_URL", "SEMEL_SCHEMA", "SEMEL_WHO", "SEMEL_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an application, which is where the commands run."""
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    yield tmp_path
    sys.modules.pop("shop", None)


@pytest.fixture
def bare(clean_environment: None) -> Command:
    """A command in this process, as it is."""

    def call(*words: str, **environment: str) -> Answer:
        result = CliRunner().invoke(build(), list(words), env=environment, prog_name="semel")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def semel(bare: Command, database_url: str) -> Command:
    """A command in this process, on this test's database."""

    def call(*words: str, **environment: str) -> Answer:
        return bare(*words, **({"SEMEL_DATABASE_URL": database_url} | environment))

    return call


@pytest.fixture
def process(clean_environment: None, tmp_path: Path) -> Command:
    """A command as a process of its own, in the test's directory."""

    def call(*words: str, **environment: str) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "semel.cli", *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def sql(database_url: str) -> Callable[..., list[tuple[Any, ...]]]:
    """A statement on this test's database; answers its rows."""

    def execute(text: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with psycopg.connect(database_url, autocommit=True) as connection:
            cursor = connection.execute(text, parameters)
            return cursor.fetchall() if cursor.description else []

    return execute
