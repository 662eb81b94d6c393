"""Random deliveries, crashes, lease ends, exceptions, look-ups, people and purges over a real record.

Each worker is a block of the guard's own API, entered and left by rules; time passes by moving the stored times. The model
is the promises only: it knows what happened outside, and what a completed, held or released record may then say.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tests.guard.stored import Ago, Stored

from semel import AcceptDuplicate, AcceptMiss, Hold, Lookup, NotDone, Once, ProviderKey, Row
from semel.core.effects import DONE, NOT_DONE, UNKNOWN, Found
from semel.core.keys import compute_key
from semel.core.people import Act
from semel.errors import Abandoned, Busy, ClaimLost, Held, InProgress
from semel.store.guard_people import Decided, Decision, decide
from semel.store.guard_upkeep import purge_completed, purge_released

LONG = 1_000_000
NUMBERS = itertools.count(1)


class Bug(Exception):
    """Of a handler."""


@dataclass(eq=False)
class Worker:
    """A delivery that holds a claim: before its point of no return, inside its call, or behind it."""

    number: int
    block: Any
    op: Any
    reference: str
    inside: ExitStack = field(default_factory=ExitStack)
    phase: str = "claimed"


class Life:
    """One operation, and everything that became of it outside."""

    def __init__(self, once: Once, stored: Stored, effect: str, *, explicit: bool) -> None:
        self.once, self.stored = once, stored
        look = Lookup(self.find, settle="1 h", looks=3)
        self.effect = {
            "hold": Hold(),
            "lookup": look,
            "keyed": ProviderKey(valid_for="1 day"),
            "keyed then lookup": ProviderKey(valid_for="1 day", then=look),
            "duplicate": AcceptDuplicate(),
            "twice more": AcceptDuplicate(extra=2),
            "miss": AcceptMiss(),
            "row": Row(),
        }[effect]
        self.most = {"duplicate": 2, "twice more": 3}.get(effect, 1)
        self.explicit = explicit
        self.name = f"machine {next(NUMBERS)}"
        self.key = compute_key((self.name,)).digest
        self.workers: list[Worker] = []
        self.effects: list[str] = []
        self.provider: dict[str, int] = {}
        self.results: set[Any] = set()
        self.claim = 0
        self.lookup_says = "truth"

    def find(self, reference: str) -> Any:
        if self.lookup_says == "error":
            raise ConnectionError("the provider is away")
        if self.lookup_says == "unknown":
            return UNKNOWN
        if reference not in self.effects:
            return NOT_DONE
        self.results.add(f"found {reference}")
        return Found(f"found {reference}") if self.lookup_says == "truth" else DONE

    # deliveries

    def deliver(self, lookup: str) -> None:
        self.lookup_says = lookup
        before = self.record()
        block = self.once.claim(
            "machine",
            self.name,
            effect=self.effect,
            acting="explicit" if self.explicit else "from_start",
            lease="1 h",
            longest_run="30 min",
        )
        try:
            op = block.__enter__()
        except InProgress as told:
            assert not isinstance(told, Busy)  # noqa: PT017
            assert told.retry_after >= timedelta(0)  # noqa: PT017
            assert self.record()["state"] == "claimed"
        except Held:
            assert self.record()["state"] == "held"
        except Abandoned:
            assert self.record()["outcome"] == "abandoned"
        else:
            if op.is_repeat:
                assert self.record()["state"] == "completed"
                assert op.result is None or op.result in self.results
                return
            if before is not None and before["state"] == "claimed":
                assert before["lease_until"] >= 0, "a claim within its lease was taken over"
            number = next(NUMBERS)
            self.workers.append(Worker(number, block, op, op.reference))
            if not self.explicit:
                self.workers[-1].phase = "calling"

    def enter_acting(self, worker: Worker) -> None:
        mine = self.holds(worker)
        try:
            worker.inside.enter_context(worker.op.acting())
        except ClaimLost as lost:
            assert not mine or "forgotten" in str(lost)  # noqa: PT017
            self.leave(worker, lost)
        else:
            assert mine
            worker.phase = "calling"

    def have_the_effect(self, worker: Worker) -> None:
        worker.phase = "acted"
        if isinstance(self.effect, ProviderKey):
            if worker.reference in self.provider:
                return
            self.provider[worker.reference] = worker.number
        self.effects.append(worker.reference)

    def end(self, worker: Worker, then: str) -> None:
        mine = self.holds(worker) or (self.record() or {}).get("token") == worker.op.request.token
        try:
            if then.startswith("done"):
                self.results.add(worker.number)
                worker.op.done(worker.number)
                assert mine
        except ClaimLost as lost:
            assert not mine
            self.leave(worker, lost)
            return
        self.leave(worker, Bug() if then.endswith("a bug") else None)

    def leave(self, worker: Worker, error: BaseException | None) -> None:
        """Leave the block as Python does."""
        self.workers.remove(worker)
        try:
            with ExitStack() as stack:
                stack.push(worker.block)
                stack.enter_context(worker.inside)
                if error is not None:
                    raise error
        except (Bug, NotDone, ClaimLost):
            pass

    # time

    def the_lease_ends(self) -> None:
        record = self.record()
        if record is not None and record["state"] == "claimed" and record["lease_until"] < 0:
            self.stored.change(self.key, lease_until=Ago(1))

    def the_settle_time_passes(self) -> None:
        record = self.record()
        if record is None or record["state"] != "claimed" or self.calling():
            return
        if record["unsure_until"] is not None:
            self.stored.change(self.key, unsure_until=Ago(LONG))
        elif record["lease_until"] >= 0:
            self.stored.change(self.key, lease_until=Ago(LONG))

    def the_provider_forgets(self) -> None:
        if self.record() is not None and not self.calling():
            self.stored.change(self.key, reference_at=Ago(LONG))
            self.provider.clear()

    def calling(self) -> bool:
        return any(worker.phase == "calling" for worker in self.workers)

    # people and retention

    def a_person_decides(self, act: Act, older: bool, renew: bool) -> None:
        record = self.record()
        if record is None:
            return
        alive = self.calling() or any(_holds(worker, record) for worker in self.workers)
        if act is Act.REDO and (self.effects or alive):
            return
        if act is Act.DONE and not self.effects:
            return
        decision = Decision(
            operation_id=self.stored.id_of(self.key),
            act=act,
            seen=record["claim"] - older,
            who="anna",
            why="looked",
            new_reference=f"again {next(NUMBERS)}" if renew and act is Act.REDO else None,
        )
        told = self.once.place.ask(decide(decision))
        stale = record["state"] == "claimed" and record["lease_until"] >= 0
        applies = (
            record["state"] == "held" or stale or (record["state"] == "released" and act is not Act.REDO)
        )
        assert isinstance(told, Decided) is (applies and not older)

    def retention(self) -> None:
        record = self.record()
        self.once.place.ask(purge_released(keep=timedelta(days=1)))
        if record is None or record["state"] != "completed" or self.workers:
            self.once.place.ask(purge_completed(keep=timedelta(days=1)))
            assert (self.record() is None) is (record is None), "only completed ones end"
            return
        self.stored.change(self.key, completed_at=Ago(LONG))
        self.once.place.ask(purge_completed(keep=timedelta(days=1)))
        assert self.record() is None
        self.effects.clear()  # what is beyond retention is another life
        self.provider.clear()
        self.claim = 0

    # what holds always

    def record(self) -> dict[str, Any] | None:
        return self.stored.record(self.key)

    def holds(self, worker: Worker) -> bool:
        return _holds(worker, self.record())

    def the_promises_hold(self) -> dict[str, Any] | None:
        assert len(self.effects) <= self.most
        record = self.record()
        if record is None:
            assert not self.effects
            return None
        assert record["claim"] >= self.claim, "the number only rises"
        self.claim = record["claim"]
        if record["outcome"] in ("acted", "found", "by_person"):
            assert self.effects
        if record["state"] == "released":
            assert not self.effects, "released means that nothing happened"
        assert record["lease_until"] is not None
        assert sum(_holds(worker, record) for worker in self.workers) <= 1
        return record


def _holds(worker: Worker, record: dict[str, Any] | None) -> bool:
    return record is not None and (record["token"], record["state"]) == (worker.op.request.token, "claimed")
