"""The server process of one data directory: found by postmaster.pid, and believed only if it is that process.

The number in the file may belong to anything by now: the machine was started anew, or the number used again.
A zombie counts as gone, although it still answers to signal 0: some containers reap late or never.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from semel.embedded.place import Place
from semel.embedded.settings import DEFAULT_PORT
from semel.embedded.waiting import wait_until


@dataclass(frozen=True)
class Postmaster:
    """A server that runs; ``state`` is PostgreSQL's own word: starting, ready, standby or stopping."""

    pid: int
    state: str
    port: int

    @property
    def ready(self) -> bool:
        """Whether it takes connections."""
        return self.state in ("ready", "standby")

    def send(self, number: signal.Signals) -> None:
        """Send a signal; one that is gone by now needs none."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def ended_within(self, seconds: float) -> bool:
        """Whether it ended in that time."""
        return wait_until(lambda: not is_alive(self.pid), seconds)


def find_postmaster(data: Path) -> Postmaster | None:
    """The server that runs on this data directory, or None."""
    lines = _pid_file(data)
    if not lines or not lines[0].strip().isdecimal():
        return None
    pid = int(lines[0])
    if not _is_postmaster_of(pid, data):
        return None
    state = lines[7].strip() if len(lines) > 7 else "starting"
    return Postmaster(pid, state, int(lines[3]) if len(lines) > 3 else DEFAULT_PORT)


def has_stale_pid_file(data: Path) -> bool:
    """Whether a server died here without removing its postmaster.pid."""
    return bool(_pid_file(data)) and find_postmaster(data) is None


def remove_remains(place: Place) -> None:
    """Remove the lock files of a server that died; call this under the lock, with no server running.

    PostgreSQL itself would heed them as long as any process has their number. Its other safeguard stays:
    processes of the dead server that still live hold its shared memory, and keep a new one from starting.
    """
    (place.data / "postmaster.pid").unlink(missing_ok=True)
    for path in place.runtime.glob(".s.PGSQL.*"):
        path.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Whether a process runs under this number; a zombie does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except FileNotFoundError:
        return _ps(pid, "stat=")[:1] not in ("", "Z")
    except ProcessLookupError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text("utf-8", "replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_postmaster_of(pid: int, data: Path) -> bool:
    """Its command line names postgres and this data directory; children of the server carry other titles."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return f"postgres -D {data} " in f"{_ps(pid, 'command=').strip()} " and is_alive(pid)
    named = os.fsencode(data)
    return Path(os.fsdecode(words[0])).name == "postgres" and (b"-D", named) in pairwise(words)


def _ps(pid: int, column: str) -> str:
    """One column of ps, for systems without /proc."""
    if Path("/proc/self/stat").exists():
        return ""
    command = ["/bin/ps", "-ww", "-o", column, "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
