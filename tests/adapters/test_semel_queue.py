"""The semel queue under the contract of all adapters."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from tests.adapters import job
from tests.adapters.contract import *  # noqa: F403
from tests.adapters.rig import UNGUARDED, Rig, Victim, Worker
from tests.adapters.stage import run_stage
from tests.guard.conftest import make_database
from tests.support.waiting import until

__all__ = ["make_database"]


class SemelRig(Rig):
    name: ClassVar[str] = "semel"
    stores_results: ClassVar[bool] = True

    def start(self, *, concurrency: int = 1, lease: float = 60.0, **options: Any) -> Worker:
        number = len(self.workers)
        command = [sys.executable, "-m", "semel", "worker", "tests.adapters.semel_jobs:app"]
        environment = {
            "SEMEL_DATABASE_URL": self.database,
            job.PORT: str(self.stage.port),
            job.LEASE: str(lease),
        }
        return self._begin(
            [*command, "--concurrency", str(concurrency)],
            environment,
            str(self.directory / f"worker-{number}.log"),
            ready=lambda worker: "worker started" in self._log(worker),
            children=True,
        )

    def send(self, name: str, *, how: str = "hold", amount: int = 100, **options: Any) -> Any:
        kind = UNGUARDED if how == UNGUARDED else f"charge_{how}"
        return self._insert(kind, json.dumps({"name": name, "amount": amount}))

    def send_again(self, message: Any) -> None:
        """A second job: the queue itself delivers a job again only where an attempt of it ended without a word."""
        kind, payload, _ = message
        self._insert(kind, payload)

    def redelivers(self, victim: Victim) -> bool:
        return True

    def pending(self) -> int:
        return int(self._ask("SELECT count(*) FROM semel.jobs WHERE status IN ('pending', 'running')"))

    def result(self, message: Any) -> Any:
        return self._ask("SELECT result #>> '{}' FROM semel.all_jobs WHERE id = %s", message[2])

    def resender(self) -> Any:
        return None

    def wait_stopping(self, worker: Worker) -> None:
        until(lambda: "stopping: nothing more" in self._log(worker), "the worker is stopping")

    def wait_settled(self, name: str) -> None:
        until(
            lambda: self._ask("SELECT count(*) FROM semel.jobs WHERE status = 'held'") == 1, "the job is held"
        )

    def _insert(self, kind: str, payload: str) -> tuple[str, str, int]:
        text = "INSERT INTO semel.jobs (kind, payload) VALUES (%s, %s) RETURNING id"
        return kind, payload, int(self._ask(text, kind, payload))

    def _ask(self, text: str, *parameters: Any) -> Any:
        with psycopg.connect(self.database, autocommit=True) as connection:
            row = connection.execute(text, parameters).fetchone()
        return None if row is None else row[0]


@pytest.fixture
def rig(make_database: Callable[[str], Any], tmp_path: Path) -> Iterator[Rig]:
    url = make_database("postgresql")
    with run_stage() as stage:
        made = SemelRig(stage, url, url, "postgresql", tmp_path)
        try:
            yield made
        finally:
            made.close()
