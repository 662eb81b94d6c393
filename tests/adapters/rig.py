"""What a queue has to offer for the contract: start its workers, send, and say what its broker does by itself."""

from __future__ import annotations

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from tests.adapters.job import JOB_TYPE
from tests.adapters.stage import Stage
from tests.guard.stored import Ago, Stored
from tests.support.waiting import until

from semel.core.keys import compute_key
from semel.core.operation_report import OperationFilter
from semel.store.own_connections import open_own

Victim = Literal["child", "parent", "group"]
UNGUARDED = "unguarded"


@dataclass
class Worker:
    """A worker that was started: its own process group, so that all of it can be killed."""

    process: subprocess.Popen[bytes]
    log: str
    children: bool
    """Whether jobs run in children of the process."""

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self, victim: Victim, job_pid: int) -> None:
        """SIGKILL: the process that runs the job, its parent, or the whole group."""
        match victim:
            case "child":
                os.kill(job_pid, signal.SIGKILL)
            case "parent":
                os.kill(self.pid, signal.SIGKILL)
            case "group":
                self._kill_all()
        if victim != "child" or job_pid == self.pid:
            self.process.wait(20)

    def stop(self) -> int:
        """Ask it to end, and wait."""
        self.process.terminate()
        return self.process.wait(60)

    def end(self) -> None:
        """End all of it, whatever it does."""
        self._kill_all()
        self.process.wait(20)

    def _kill_all(self) -> None:
        """The process, its group, and what descends from it in groups of their own."""
        below = descendants(self.pid)
        for kill, number in ((os.killpg, self.pid), *((os.kill, each) for each in below)):
            try:
                kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass


def descendants(pid: int) -> list[int]:
    """The processes below one, by ``/proc``."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text("utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(after_name[1]), []).append(int(stat.parent.name))
    found, look_at = [], [pid]
    while look_at:
        for child in parents.get(look_at.pop(), []):
            found.append(child)
            look_at.append(child)
    return found


@dataclass
class Rig(ABC):
    """One adapter on its real broker, beside one database with the guard's tables and the stage.

    A *message* is whatever the rig needs to send the same one again, under the same id.
    """

    name: ClassVar[str]
    victims: ClassVar[tuple[Victim, ...]] = ("child", "parent", "group")
    """Whom it makes sense to kill. A queue whose jobs run in the worker's one process has ``("parent",)``."""
    stores_results: ClassVar[bool] = False
    retries: ClassVar[bool] = True
    """Whether the queue itself delivers again what raised, soon: its rig sets its backoff to about a second."""

    stage: Stage
    database: str
    """As it is given to ``Once``."""
    where: Any
    """As `Stored.at` takes it."""
    dialect: str
    directory: Path
    """For logs and whatever else its processes write."""
    rounds: int = 100
    """Of two workers at once; fewer where a version of a broker is tried beside the main one."""
    workers: list[Worker] = field(default_factory=list)

    # what each queue has to say

    @abstractmethod
    def start(self, *, concurrency: int = 1, lease: float = 60.0, **options: Any) -> Worker:
        """Start a worker (its own process group) and return when it takes jobs. It is put into ``workers``."""

    @abstractmethod
    def send(self, name: str, *, how: str = "hold", amount: int = 100, **options: Any) -> Any:
        """Send one message of the job ``name``; ``how`` is an effect of `tests.adapters.job.effects` or UNGUARDED."""

    @abstractmethod
    def send_again(self, message: Any) -> None:
        """Deliver the very same message once more, with its id, as the broker's at-least-once does."""

    @abstractmethod
    def redelivers(self, victim: Victim) -> bool:
        """Whether the broker itself delivers again what a worker had that was killed there."""

    @abstractmethod
    def pending(self) -> int:
        """How many messages the broker still has: waiting, delayed, or unacknowledged."""

    @abstractmethod
    def result(self, message: Any) -> Any:
        """What the queue stored as the message's result, where ``stores_results``."""

    @abstractmethod
    def resender(self) -> Any:
        """The adapter's `Resender`; None where the decision itself settles the job."""

    @abstractmethod
    def wait_stopping(self, worker: Worker) -> None:
        """Wait until a worker that was asked to end has noticed."""

    # what all of them have

    def wait_settled(self, name: str) -> None:
        """Wait until the queue has written what a held operation means for the job; most have nothing to write."""
        self.wait_state(name, "held")

    @contextmanager
    def session(self) -> Iterator[Any]:
        """A session on the guard's tables, as the commands of people have one."""
        own = open_own(self.database, schema="semel")
        try:
            with own.session() as session:
                yield session
        finally:
            own.close()

    def filter(self, name: str) -> OperationFilter:
        return OperationFilter(key=compute_key(name).digest)

    def stored(self) -> Stored:
        return Stored.at(self.dialect, self.where)

    def record(self, name: str) -> dict[str, Any] | None:
        stored = self.stored()
        try:
            return stored.record(compute_key(name).digest)
        finally:
            stored.close()

    def state(self, name: str) -> str:
        """``completed acted``, ``held``, ``none`` …"""
        record = self.record(name)
        return "none" if record is None else " ".join(filter(None, (record["state"], record["outcome"])))

    def wait_state(self, name: str, *states: str, patience: float = 60.0) -> str:
        """Wait for the record to come to one of these states."""
        until(lambda: self.state(name) in states, f"{name} is {states}, it is {self.state(name)}", patience)
        return self.state(name)

    def wait_idle(self, patience: float = 60.0) -> None:
        """Wait until the broker has nothing left."""
        until(lambda: self.pending() == 0, f"{self.name} has nothing left", patience)

    def answered(self, name: str, answer: str) -> int:
        """How often a delivery got this answer, by the log lines of all workers."""
        line = f"operation {JOB_TYPE} {name}: {answer}"
        return sum(self._log(worker).count(line) for worker in self.workers)

    def wait_answered(self, name: str, answer: str, count: int = 1, patience: float = 60.0) -> None:
        """Wait for an answer of the guard, by the workers' logs."""
        until(lambda: self.answered(name, answer) >= count, f"{name} is answered {answer} x{count}", patience)

    @staticmethod
    def _log(worker: Worker) -> str:
        return Path(worker.log).read_text(encoding="utf-8", errors="replace")

    def age(self, name: str) -> None:
        """Let the claim's lease have ended, by the database's clock."""
        stored = self.stored()
        try:
            stored.change(compute_key(name).digest, lease_until=Ago(0.01))
        finally:
            stored.close()

    def close(self) -> None:
        for worker in self.workers:
            worker.end()

    def _begin(
        self,
        command: Sequence[str],
        environment: dict[str, str],
        log: str,
        *,
        ready: Callable[[Worker], bool],
        children: bool,
    ) -> Worker:
        """Start a worker's process and wait until it is ready."""
        with Path(log).open("ab") as output:
            process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        worker = Worker(process, log, children)
        self.workers.append(worker)

        def is_ready() -> bool:
            if process.poll() is not None:
                raise AssertionError(f"{self.name}: its worker ended: {self._log(worker)[-3000:]}")
            return ready(worker)

        until(is_ready, f"{self.name}: a worker is ready")
        return worker
