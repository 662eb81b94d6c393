"""A `semel worker` as the demonstration sees it: a process with children, started, killed, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from semel.embedded.postmaster import is_alive
from semel.embedded.process import start_owned
from semel.embedded.waiting import wait_until

CONCURRENCY: Final = 4
STOP_GRACE: Final = 2.0
COMMAND: Final = (sys.executable, "-m", "semel.cli", "worker")
_END_SECONDS: Final = 10.0
_LOG_LINES: Final = 8


class WorkerProcess:
    """A context manager: whatever is left of the worker at the end is killed.

    The worker is tethered: should this process die without a word, the worker is told to stop. It has a session
    of its own, so that Ctrl-C in the terminal reaches this process only, which then ends it.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        self._owned = start_owned(command, log, environment)
        self._child = self._owned.child

    @property
    def pid(self) -> int:
        """The supervisor's number."""
        return self._child.pid

    @property
    def ended(self) -> bool:
        return self._owned.ended()

    def kill(self) -> list[int]:
        """SIGKILL for the supervisor and all that it started, as when the machine dies; answers whom it hit.

        The supervisor goes first: it would give its children's jobs back at once, and no lease would be needed.
        """
        family = [self._child.pid, *descendants(self._child.pid)]
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._child.wait()
        self._owned.ended()
        wait_until(lambda: not any(map(is_alive, family[1:])), _END_SECONDS)
        return family

    def stop(self) -> int:
        """SIGTERM, as a deployment does; answers the exit code."""
        self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._owned.ended()
        return self._child.returncode

    def last_lines(self) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-_LOG_LINES:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.ended:
            self.kill()


def worker_environment(folder: Path, told: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without settings of other workers, and what the application is told."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SEMEL_")}
    return {**inherited, "PYTHONPATH": path, **told}


def worker_command(database: str, location: str, *, concurrency: int = CONCURRENCY) -> list[str]:
    """The command line of `semel worker` for an application."""
    options = {"database": database, "concurrency": str(concurrency), "stop-grace": f"{STOP_GRACE} s"}
    return [*COMMAND, location, *(word for name, value in options.items() for word in (f"--{name}", value))]


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that they started."""
    parents = _parents()
    found = [pid]
    for ancestor in found:
        found.extend(child for child, parent in parents.items() if parent == ancestor)
    return found[1:]


def _parents() -> dict[int, int]:
    """Every process's parent."""
    proc = Path("/proc")
    if not (proc / "self" / "stat").exists():
        listed = subprocess.run(["/bin/ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=True)
        return {int(line.split()[0]): int(line.split()[1]) for line in listed.stdout.splitlines()}
    parents = {}
    for entry in proc.iterdir():
        if entry.name.isdecimal():
            with suppress(FileNotFoundError, ProcessLookupError):
                status = (entry / "stat").read_text("utf-8", "replace")
                parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
    return parents
