"""What the handlers' marks say: how many jobs ran, when the first one started, and which ran other than once."""

from __future__ import annotations

import struct
from pathlib import Path

from benchmarks.figures import Refused
from benchmarks.programs.marks import HEADER


class Seen:
    """Reads the files of one run of workers, which are in a directory of their own."""

    def __init__(self, directory: Path, jobs: int) -> None:
        self.directory = directory
        self.jobs = jobs

    def ran(self) -> int:
        """How many jobs have run; one that ran in two processes counts twice."""
        return sum(self.jobs - runs.count(0) for _, runs in self._files())

    def first(self) -> float:
        """When the first handler started."""
        return min(float(struct.unpack_from("d", header)[0]) for header, _ in self._files())

    def starts(self, count: int) -> list[float]:
        """When each of the first jobs started; 0.0 for one that has not."""
        found = [0.0] * count
        for header, _ in self._files():
            for number, start in enumerate(struct.unpack_from(f"{count}d", header, 8)):
                found[number] = found[number] or start
        return found

    def check(self) -> None:
        """Refuse what was measured unless every job ran exactly once."""
        files = [runs for _, runs in self._files()]
        lost = twice = 0
        if len(files) == 1 and files[0].count(1) == self.jobs:
            return
        for runs in zip(*files, strict=True):
            lost += sum(runs) == 0
            twice += sum(runs) > 1
        if not files:
            lost = self.jobs
        if lost or twice:
            raise Refused(f"of {self.jobs} jobs {lost} never ran and {twice} ran more than once")

    def _files(self) -> list[tuple[bytes, bytes]]:
        whole = [path.read_bytes() for path in self.directory.iterdir()]
        size = HEADER + self.jobs
        return [(each[:HEADER], each[HEADER:]) for each in whole if len(each) == size]
