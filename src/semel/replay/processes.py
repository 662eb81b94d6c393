"""Workers as processes: started in groups of their own, killed by SIGKILL, never by name."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from semel.errors import WorkerDidNotStart

Victim = Literal["child", "parent", "group"]
PROC: Final = Path("/proc")
_LOOK: Final = 0.01


@dataclass
class Worker:
    """A worker that was started, and its log."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def read_log(self) -> str:
        """Its output so far."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def is_alive(self) -> bool:
        """Whether its first process still runs."""
        return self.process.poll() is None

    def kill(self, victim: Victim, pid: int, *, patience: float = 20.0) -> int | None:
        """SIGKILL the process that runs the job, its parent, or all of them; the exit code seen (None: not our child)."""
        known = pid > 0  # 0 and below mean whole groups of processes, replay's own among them
        if victim == "group":
            self.kill_all()
        else:
            _kill(pid if victim == "child" and known else self.pid)
        if victim != "parent" and known and pid != self.pid:
            _wait_gone(pid, patience)
        if victim == "child" and known and pid != self.pid:
            return None
        return self.process.wait(patience)

    def wake(self) -> None:
        """SIGCONT to whatever of it was stopped."""
        for pid in (self.pid, *descendants(self.pid)):
            _signal(pid, signal.SIGCONT)

    def end(self) -> None:
        """End all of it, whatever it does."""
        self.kill_all()
        self.process.wait(20)

    def kill_all(self) -> None:
        """SIGKILL to the process, its group, and what descends from it in groups of their own."""
        below = descendants(self.pid)
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for pid in below:
            _kill(pid)


def start_worker(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: Path,
    log: Path,
    ready: Callable[[Worker], bool],
    patience: float = 60.0,
) -> Worker:
    """Start one and wait until it is ready. Raises `WorkerDidNotStart`, with the end of its log; nothing is left running."""
    with log.open("ab") as output:
        try:
            process = subprocess.Popen(  # noqa: S603  # the command is the description's
                list(command),
                env=dict(environment),
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerDidNotStart(command, str(error)) from error
    worker = Worker(process, log)
    end = time.monotonic() + patience
    while not ready(worker):
        if not worker.is_alive() or time.monotonic() > end:
            worker.end()
            raise WorkerDidNotStart(command, worker.read_log()[-2000:])
        time.sleep(_LOOK)
    return worker


def descendants(pid: int) -> list[int]:
    """The processes below one, by ``/proc`` (by ``ps`` where there is none)."""
    parents: dict[int, list[int]] = {}
    for child, parent in _all_processes():
        parents.setdefault(parent, []).append(child)
    found, look_at = [], [pid]
    while look_at:
        below = parents.get(look_at.pop(), [])
        found += below
        look_at += below
    return found


def _all_processes() -> list[tuple[int, int]]:
    if not _has_proc():
        return [
            (int(pid), int(parent)) for pid, parent in map(str.split, _ps("-axo", "pid=,ppid=").splitlines())
        ]
    found = []
    for name in filter(str.isdigit, os.listdir(PROC)):  # noqa: PTH208  # a glob looks at each, and one may be gone
        after_name = _stat(int(name))
        if after_name:
            found.append((int(name), int(after_name[1])))
    return found


def state_of(pid: int) -> str:
    """The letter of a process's state, such as T for stopped; empty where it has ended, reaped or not. As `descendants`."""
    if pid <= 0:
        return ""
    told = _stat(pid) if _has_proc() else _ps("-o", "stat=", "-p", str(pid)).split()
    return told[0][0] if told and told[0][0] not in "ZX" else ""


def _has_proc() -> bool:
    return (PROC / "self" / "stat").exists()


def _ps(*words: str) -> str:
    """What ``ps`` shows, for systems without ``/proc``; nothing where there is no such process."""
    return subprocess.run(["ps", *words], capture_output=True, text=True, check=False).stdout  # noqa: S603, S607


def _stat(pid: int) -> list[str]:
    """What ``/proc`` says of it behind its name; empty where there is no such process."""
    try:
        text = (PROC / str(pid) / "stat").read_text("utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _wait_gone(pid: int, patience: float) -> None:
    """Wait until a process has ended; one that nobody has reaped yet has ended too."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if not state_of(pid):
            return
        time.sleep(_LOOK)


def _kill(pid: int) -> None:
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
