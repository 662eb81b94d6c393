"""What handlers did and when, in a file that outlives every process and every database.

One line an event, there as a whole or not at all. Times are of the monotonic clock, which all processes share.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.appending import write

from semel.queue.context import JobContext

VARIABLE = "SEMEL_TEST_JOURNAL"


class Entry(NamedTuple):
    """``start``, then ``end`` or ``broken``: an exception, or asked to end."""

    event: str
    job: int
    attempt: int
    crashes: int
    process: int
    run: int
    """When this run of the handler began: with the job it names the run."""
    at: int


@dataclass
class Run:
    """One run of one job's handler."""

    job: int
    attempt: int
    crashes: int
    process: int
    start: int
    end: int | None = None
    broken: bool = False


class Journal:
    """One test's file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def entries(self) -> list[Entry]:
        lines = self.path.read_text("utf-8").splitlines()
        return [Entry(event, *map(int, rest)) for event, *rest in map(str.split, lines)]

    def count(self, event: str) -> int:
        return sum(entry.event == event for entry in self.entries())

    def runs(self) -> dict[int, list[Run]]:
        """Every job's runs in the order of their starts."""
        runs: dict[tuple[int, int], Run] = {}
        for entry in self.entries():
            key = entry.job, entry.run
            if entry.event == "start":
                runs[key] = Run(entry.job, entry.attempt, entry.crashes, entry.process, entry.at)
            else:
                runs[key].end = entry.at
                runs[key].broken = entry.event == "broken"
        by_job: dict[int, list[Run]] = defaultdict(list)
        for run in sorted(runs.values(), key=lambda run: run.start):
            by_job[run.job].append(run)
        return by_job


@contextmanager
def recorded(context: JobContext) -> Iterator[None]:
    """Write down that a handler runs, and how that ended."""
    begun = time.monotonic_ns()
    note("start", context, begun, begun)
    try:
        yield
    except BaseException:
        note("broken", context, begun, time.monotonic_ns())
        raise
    note("end", context, begun, time.monotonic_ns())


def note(event: str, context: JobContext, run: int, at: int) -> None:
    """Append one line."""
    line = f"{event} {context.job_id} {context.attempt} {context.crashes} {os.getpid()} {run} {at}"
    write(_open(os.environ[VARIABLE]), line)


@cache
def _open(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND)
