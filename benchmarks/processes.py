"""Processes of the run: their trees, what they use, and their end, by their own ids."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.figures import Noise

TICKS = os.sysconf("SC_CLK_TCK")
STOP_SECONDS = 10.0
QUIET = 0.3
"""Cores of others that a reading can bear."""


def tree(*processes: int) -> list[int]:
    """These processes and all their descendants, by one look at everything that runs: it takes some 20 ms."""
    children: dict[int, list[int]] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and (fields := _fields(int(directory.name))):
            children.setdefault(int(fields[1]), []).append(int(directory.name))
    found, ahead = [], [*processes]
    while ahead:
        found.append(ahead.pop())
        ahead += children.get(found[-1], [])
    return found


def processor_seconds(processes: Iterable[int]) -> float:
    """What they have used, with their children that ended."""
    return sum(sum(map(int, fields[11:15])) for each in processes if (fields := _fields(each))) / TICKS


def peak_megabytes(process: int) -> float:
    """The most that one process had in memory."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def end_all(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """SIGTERM to each; what is still there after ten seconds is killed, with its descendants."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    limit = time.monotonic() + STOP_SECONDS
    for process in processes:
        try:
            process.wait(max(0.1, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            for each in reversed(tree(process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            process.wait()


class Meter:
    """What others used of the machine since it was made: all that was used, without this process's own tree."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy, self._steal = _machine()
        self._own = processor_seconds(tree(os.getpid()))

    def read(self) -> Noise:
        elapsed = max(0.1, time.monotonic() - self._began)
        busy, steal = _machine()
        foreign = busy - self._busy - (processor_seconds(tree(os.getpid())) - self._own)
        return Noise(round(max(0.0, foreign) / elapsed, 3), round((steal - self._steal) / elapsed, 3))


def wait_for_quiet(seconds: float) -> None:
    """Until others use less than 0.3 cores, so long at most."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        meter = Meter()
        time.sleep(1)
        if meter.read().foreign < QUIET:
            return


@contextmanager
def started(
    command: list[str], environment: dict[str, str], log: Path, count: int = 1
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Some processes alike, stopped at the end. Ctrl-C reaches them through us only."""
    running: list[subprocess.Popen[bytes]] = []
    with log.open("ab") as output:
        try:
            running.extend(
                subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
                for _ in range(count)
            )
            yield running
        finally:
            end_all(running)


def _machine() -> tuple[float, float]:
    user, nice, system, _, _, interrupts, soft, steal = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + interrupts + soft) / TICKS, steal / TICKS


def _fields(process: int) -> list[str]:
    """Of /proc/…/stat, from the state on; empty for one that is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
