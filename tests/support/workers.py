"""Workers under test: real processes that can be stopped, frozen and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from tests.support.deaths import DEATH, RECORD, Death, Mark, children_of, mark_of
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
LEASE = 1.0
"""Seconds, of the workers under test unless they say otherwise."""


class Worker:
    """One supervisor with its children, running the application of `tests.support.application`."""

    def __init__(
        self, url: str, directory: Path, *, name: str = "worker", death: Death | None = None, **options: Any
    ) -> None:
        self.log_path = directory / f"{name}.log"
        self.record = str(directory / name)
        told = {"app": "tests.support.application:app", "database": url, "lease": LEASE} | options
        environment = os.environ | {RECORD: self.record}
        if death is not None:
            environment[DEATH] = msgspec.json.encode(death).decode()
        with self.log_path.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.supervisor", json.dumps(told)],
                cwd=ROOT,
                env=environment,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text("utf-8")

    @property
    def mark(self) -> Mark | None:
        """Left by the death that was asked for, once it came."""
        return mark_of(self.record)

    @property
    def children(self) -> list[int]:
        """The process ids of all children that began, in order."""
        return children_of(self.record)

    def passed(self, name: str) -> int:
        """How often its processes have begun this statement."""
        path = Path(self.record + ".statements")
        return path.read_text("utf-8").count(f" before {name} ") if path.exists() else 0

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def started(self) -> Self:
        """Wait until it takes jobs."""
        until(lambda: "worker started" in self.log or self.ended, "the worker started")
        assert not self.ended, self.log
        return self

    def send(self, number: signal.Signals, *, children: bool = False) -> None:
        """A signal to the supervisor, or (first) to its youngest child as well."""
        if children:
            os.kill(self.children[-1], number)
        self.process.send_signal(number)

    def wait(self, limit: float = 60.0) -> int:
        """The exit code."""
        return self.process.wait(limit)

    def stop(self, limit: float = 60.0) -> int:
        self.send(signal.SIGTERM)
        return self.wait(limit)

    def close(self) -> None:
        """Kill what is left of it."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for child in self.children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()
