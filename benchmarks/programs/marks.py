"""What a handler notes of each run, without a query: a file a process, mapped into memory. Standard library only.

The file: the time of the first run, the times at which the first PICKED_UP jobs started, then a byte a job that counts
its runs. Times are CLOCK_MONOTONIC, which every process of the machine reads alike. queue.mjs writes the same layout.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from pathlib import Path

PICKED_UP = 1_000
"""Jobs with a smaller number have their start noted."""

HEADER = 8 + 8 * PICKED_UP


class Marks:
    """Called by a handler with its job's number; opens its file at the first call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: memoryview | None = None
        self._starts = memoryview(bytearray(0)).cast("d")

    def __call__(self, number: int) -> None:
        now = time.monotonic()
        runs = self._runs
        if runs is None:
            runs = self._open(now)
        if number < PICKED_UP:
            self._starts[number + 1] = now
        runs[number] += 1

    def _open(self, now: float) -> memoryview:
        with self._lock:
            if self._runs is None:
                path = Path(os.environ["BENCHMARK_MARKS"], str(os.getpid()))
                size = HEADER + int(os.environ["BENCHMARK_JOBS"])
                with path.open("w+b") as file:
                    file.truncate(size)
                    whole = memoryview(mmap.mmap(file.fileno(), size))
                self._starts = whole[:HEADER].cast("d")
                self._starts[0] = now
                self._runs = whole[HEADER:]
            return self._runs


mark = Marks()
