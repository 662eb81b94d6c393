"""Workers that run: until all jobs have run, what they used meanwhile, and their end."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Refused
from benchmarks.processes import end_all, peak_megabytes, processor_seconds, tree
from benchmarks.seen import Seen

LIMIT = 300.0
STALL = 3.0
"""Seconds without a run after which the database is asked whether anything is left at all."""


class Run:
    """The worker processes of one queue."""

    def __init__(self, processes: list[subprocess.Popen[bytes]], log: Path) -> None:
        self._processes = processes
        self._log = log
        self._began = time.monotonic()
        self._used_at_first = (0.0, 0)
        self._timeline: list[tuple[float, int]] = []

    def check(self) -> None:
        """Refuse what is measured where a worker has ended, or it takes too long."""
        if any(process.poll() is not None for process in self._processes):
            raise Refused(f"a worker ended: {self._log.read_text(errors='replace').strip()[-800:]}")
        if time.monotonic() - self._began > LIMIT:
            raise Refused(f"after {LIMIT:.0f} s jobs were left")

    def until_all_ran(self, seen: Seen, remaining: Callable[[], int]) -> None:
        """Looks at the marks only: no query runs meanwhile, but where nothing moves."""
        pause = 0.01 if seen.jobs < 200_000 else 0.1
        moved = began = time.monotonic()
        while (ran := seen.ran()) < seen.jobs:
            now = time.monotonic()
            if ran and not self._timeline:
                self._used_at_first = (self._used(), ran)
            if ran and ran != (self._timeline or [(0.0, 0)])[-1][1]:
                self._timeline.append((now, ran))
                moved = now
            if now - moved > STALL:
                if not remaining():
                    return
                moved = now
            self.check()
            time.sleep(max(pause, 10 * (now - began)))  # forty workers have as many files to look at
            began = time.monotonic()
        self._timeline.append((time.monotonic(), ran))

    def microseconds_a_job(self, count: int) -> float:
        """Of the processor, in all processes of the workers, since the first job was seen to run."""
        used, ran = self._used_at_first
        return (self._used() - used) / max(1, count - ran) * 1e6

    def largest_megabytes(self) -> float:
        """The peak of the process that had most."""
        return max(map(peak_megabytes, self._members()))

    def last_over_first_fifth(self, count: int) -> float:
        """How fast the last fifth of the jobs ran, against the first."""
        times = [self._when(count * part // 5) for part in range(6)]
        return (times[1] - times[0]) / max(0.001, times[5] - times[4])

    def stop(self) -> None:
        end_all(self._processes)

    def _when(self, ran: int) -> float:
        return next((at for at, count in self._timeline if count >= ran), self._timeline[-1][0])

    def _used(self) -> float:
        return processor_seconds(self._members())

    def _members(self) -> list[int]:
        return tree(*(process.pid for process in self._processes))
