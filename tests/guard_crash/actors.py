"""One delivery of a guarded operation, in this process or in another that dies at a given point.

Other processes are forked from a server that has everything imported: real processes, real SIGKILL, a few milliseconds each.
"""

from __future__ import annotations

import datetime
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

from tests.guard_crash.recorder import post
from tests.support.waiting import until

import semel
from semel.core.effects import Effect
from semel.store.own_connections import OwnSessions
from semel.store.run import Watch

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["tests.guard_crash.actors", "psycopg", "pymysql", "sqlite3", "semel.store.drivers.mysql_driver"]
)
_ONE_AT_A_TIME = threading.Lock()
"""To start a process looks after the others that have ended, and an exit code can be read only once."""

EFFECTS = ("row", "provider_key", "lookup", "hold", "accept_duplicate", "accept_miss")
OUTSIDE = EFFECTS[1:]
LEASE = 0.5
Reach = Callable[[str], None]


class Boom(Exception):
    """An exception of the handler's own."""


class Answer(NamedTuple):
    """``acted``, ``repeat``, or the name of the exception that came out."""

    kind: str
    value: Any = None
    retry_after: float | None = None


class Step(NamedTuple):
    """A point at the statements that a process passes: the moment, the statement's or operation's name, the turn."""

    moment: str
    name: str
    turn: int = 1


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One message of one operation, and what is to happen while it is handled."""

    target: str
    receiver: int
    effect: str
    name: str
    """The operation's key, and the name that its effects are counted by."""
    acting: str = "explicit"
    lease: float = LEASE
    dwell: float = 0.0
    raises: str | None = None
    """The point at which the handler raises Boom."""
    dies: str | None = None
    """The point at which the process kills itself: ``claimed``, ``inside``, ``effect`` or ``returned``."""
    dies_at: Step | None = None
    stops: str | None = None
    """The point at which the process stops itself, until somebody wakes it."""
    clock: float = 0.0
    """How far its process's clock is ahead, in seconds."""
    options: tuple[tuple[str, Any], ...] = ()


def effect_of(delivery: Delivery) -> Effect:
    def find(reference: str, name: str) -> Any:
        found = post(delivery.receiver, "find", reference=reference)["id"]
        return semel.NOT_DONE if found is None else semel.Found(found)

    return {
        "row": semel.Row(),
        "provider_key": semel.ProviderKey(valid_for="1 h"),
        "lookup": semel.Lookup(find=find, settle="0 s", backoff="0.1 s"),
        "hold": semel.Hold(),
        "accept_duplicate": semel.AcceptDuplicate(extra=1),
        "accept_miss": semel.AcceptMiss(),
    }[delivery.effect]


def do_effect(op: Any, delivery: Delivery, name: str) -> str:
    """The effect: a row through the operation's connection, or a call to the receiver."""
    if delivery.effect == "row":
        cursor = op.connection.cursor()
        cursor.execute(f"INSERT INTO effects (name) VALUES ('{name}')")
        cursor.close()
        time.sleep(delivery.dwell)
        return f"row-{name}"
    told = {"name": name, "reference": op.reference, "dwell": delivery.dwell}
    answer = post(delivery.receiver, "charge", **told, honours=delivery.effect == "provider_key")
    return str(answer["id"])


def guard(once: semel.Once, delivery: Delivery, reach: Reach) -> Any:
    """The guarded function of a delivery."""
    explicit = delivery.acting == "explicit" and delivery.effect != "row"

    @once.operation(
        "charge",
        key="name",
        effect=effect_of(delivery),
        acting="explicit" if explicit else "from_start",
        lease=timedelta(seconds=delivery.lease),
        **dict(delivery.options),
    )
    def charge(op: semel.Operation, name: str) -> str:
        reach("claimed")
        with op.acting() if explicit else nullcontext():
            reach("inside")
            receipt = do_effect(op, delivery, name)
            reach("effect")
        return receipt

    return charge


def deliver(once: semel.Once, delivery: Delivery) -> Answer:
    """Deliver once; the answer, whatever it is."""
    points: list[str] = []

    def reach(point: str) -> None:
        points.append(point)
        if point == delivery.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        if point == delivery.stops:
            os.kill(os.getpid(), signal.SIGSTOP)
        if point == delivery.raises:
            raise Boom(point)

    try:
        value = guard(once, delivery, reach)(delivery.name)
    except BaseException as error:
        later = getattr(error, "retry_after", None)
        return Answer(type(error).__name__, str(error), None if later is None else later.total_seconds())
    reach("returned")
    return Answer("acted" if "claimed" in points else "repeat", value)


def deliver_to_end(once: semel.Once, delivery: Delivery, limit: float = 30.0) -> Answer:
    """Deliver as an adapter would: again where the guard says later."""
    ends = time.monotonic() + limit
    while True:
        answer = deliver(once, delivery)
        if answer.kind not in ("InProgress", "Busy"):
            return answer
        assert time.monotonic() < ends, answer
        time.sleep(min(answer.retry_after or 0.0, 0.2) + 0.005)


def make_watch(seen: list[tuple[str, str]], death: Step | None) -> Watch:
    """Notes what passes, and dies at one point."""
    turns: Counter[tuple[str, str]] = Counter()

    def watch(moment: str, name: str) -> None:
        seen.append((moment, name))
        turns[moment, name] += 1
        if death is not None and (moment, name, turns[moment, name]) == death:
            os.kill(os.getpid(), signal.SIGKILL)

    return watch


def steps_of(seen: Sequence[tuple[str, str]]) -> list[Step]:
    """Every point that was passed, each with its turn."""
    turns: Counter[tuple[str, str]] = Counter()
    steps = []
    for point in seen:
        turns[point] += 1
        steps.append(Step(*point, turns[point]))
    return steps


def pools_of(once: semel.Once) -> list[OwnSessions]:
    """All connections of a guard's own, whatever it keeps them for."""
    return [each for each in vars(once.place).values() if isinstance(each, OwnSessions)]


def watch_all(once: semel.Once, watch: Watch) -> None:
    for own in pools_of(once):
        own.watch = watch


def watched_once(delivery: Delivery, seen: list[tuple[str, str]]) -> semel.Once:
    """A guard whose statements pass the watch."""
    once = semel.Once(delivery.target)
    watch_all(once, make_watch(seen, delivery.dies_at))
    return once


def _move_clock(seconds: float) -> None:
    """Python's clock, for whoever asks it in this process."""
    real = time.time

    class Moved(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Moved:
            return cls.fromtimestamp(time.time(), tz)

        @classmethod
        def utcnow(cls) -> Moved:
            return cls.now(datetime.UTC).replace(tzinfo=None)

    time.time = lambda: real() + seconds
    time.time_ns = lambda: int(time.time() * 1e9)
    for module in list(sys.modules.values()):
        if getattr(module, "datetime", None) is datetime.datetime and module.__name__ != "datetime":
            module.datetime = Moved  # type: ignore[attr-defined]


def _main(delivery: Delivery, pipe: Any) -> None:
    if delivery.clock:
        _move_clock(delivery.clock)
    seen: list[tuple[str, str]] = []
    once = watched_once(delivery, seen)
    pipe.send((deliver(once, delivery), seen))
    once.close()


class Actor:
    """A process with one delivery."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self._pipe, theirs = PROCESSES.Pipe()
        self.process = PROCESSES.Process(target=_main, args=(delivery, theirs), daemon=True)
        with _ONE_AT_A_TIME:
            self.process.start()
        theirs.close()
        self.seen: list[tuple[str, str]] = []

    def stopped(self) -> None:
        """Return once it has stopped itself."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "the process stopped")

    def wake(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def wait(self, limit: float = 60.0) -> Answer | None:
        """Its answer; None where it was killed."""
        assert wait([self.process.sentinel], limit), f"it hangs: {self.delivery}"
        with _ONE_AT_A_TIME:
            self.process.join()
        if self.process.exitcode == -signal.SIGKILL:
            return None
        assert self.process.exitcode == 0, (self.process.exitcode, self.delivery)
        answer, self.seen = self._pipe.recv()
        return answer  # type: ignore[no-any-return]


def run_alone(delivery: Delivery) -> tuple[Answer | None, list[tuple[str, str]]]:
    """Deliver in a process, again while it is told Busy, when nothing has happened; its answer and what it passed."""
    while True:
        actor = Actor(delivery)
        answer = actor.wait()
        if answer is None or answer.kind != "Busy":
            return answer, actor.seen


def killed(delivery: Delivery) -> None:
    """Deliver in a process that must die of SIGKILL."""
    answer, _ = run_alone(delivery)
    assert answer is None, f"it was not killed, but answered {answer}: {delivery}"
