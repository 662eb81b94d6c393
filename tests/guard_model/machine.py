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

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.guard.stored import Ago, Stored

from semel import AcceptDuplicate, AcceptMiss, Hold, Lookup, NotDone, Once, ProviderKey
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
        alive = self.calling() or any(self.holds(worker) for worker in self.workers)
        if act is Act.REDO and (self.effects or alive):
            return
        if act is Act.DONE and not self.effects:
            return
        decision = Decision(
            operation_id=self.stored.ask(
                f"SELECT id FROM semel_operations WHERE CAST(key AS TEXT) = '{self.key}'"
            )[0][0],
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
        record = self.record()
        return bool(record) and (record["token"], record["state"]) == (worker.op.request.token, "claimed")

    def the_promises_hold(self) -> None:
        assert len(self.effects) <= self.most
        record = self.record()
        if record is None:
            assert not self.effects
            return
        assert record["claim"] >= self.claim, "the number only rises"
        self.claim = record["claim"]
        if record["outcome"] in ("acted", "found", "by_person"):
            assert self.effects
        if record["state"] == "released":
            assert not self.effects, "released means that nothing happened"
        assert record["lease_until"] is not None
        assert sum(self.holds(worker) for worker in self.workers) <= 1


EFFECTS = ("hold", "lookup", "keyed", "keyed then lookup", "duplicate", "twice more", "miss")
ONE = st.integers(0, 5)


class Machine(RuleBasedStateMachine):
    """Some operations at once, with their deliveries."""

    once: Once
    stored: Stored
    steps = 0

    @initialize(effects=st.tuples(*[st.sampled_from(EFFECTS)] * 3), explicit=st.booleans())
    def begin(self, effects: tuple[str, ...], explicit: bool) -> None:
        self.lives = [Life(self.once, self.stored, each, explicit=explicit) for each in effects]

    @rule(which=ONE, lookup=st.sampled_from(["truth", "truth", "bare truth", "unknown", "error"]))
    def deliver(self, which: int, lookup: str) -> None:
        self.lives[which % 3].deliver(lookup)

    @rule(
        which=st.integers(0, 2), effect=st.sampled_from(EFFECTS), explicit=st.booleans(), lapses=st.booleans()
    )
    def another_operation(self, which: int, effect: str, explicit: bool, lapses: bool) -> None:
        """A delivery; after it, where nothing more can come of an operation, another one in its place."""
        life = self.lives[which]
        if lapses:
            life.the_lease_ends()
            life.the_settle_time_passes()
        life.deliver("truth")
        record = life.record()
        if not life.workers and record is not None and record["state"] in ("completed", "held"):
            self.lives[which] = Life(self.once, self.stored, effect, explicit=explicit)
            self.lives[which].deliver("truth")

    def _workers(self) -> list[tuple[Life, Worker]]:
        return [(life, worker) for life in self.lives for worker in life.workers]

    @precondition(lambda self: self._workers())
    @rule(which=ONE, then=st.sampled_from(["return", "return", "done", "done, then a bug", "a bug"]))
    def go_on(self, which: int, then: str) -> None:
        """A worker does the next thing that it would do."""
        workers = self._workers()
        life, worker = workers[which % len(workers)]
        match worker.phase:
            case "claimed":
                life.enter_acting(worker)
            case "calling":
                life.have_the_effect(worker)
            case "acted":
                life.end(worker, then)

    @precondition(lambda self: self._workers())
    @rule(which=ONE, how=st.sampled_from(["killed", "a bug", "not done"]))
    def go_wrong(self, which: int, how: str) -> None:
        workers = self._workers()
        life, worker = workers[which % len(workers)]
        if how == "killed":
            life.workers.remove(worker)
            return
        life.leave(
            worker, NotDone("it did not") if how == "not done" and worker.phase == "calling" else Bug()
        )

    @rule(which=ONE, provider=st.booleans())
    def time_passes(self, which: int, provider: bool) -> None:
        life = self.lives[which % 3]
        life.the_lease_ends()
        if provider:
            life.the_settle_time_passes()
            life.the_provider_forgets()

    @rule(which=ONE, act=st.sampled_from(list(Act)), older=st.booleans(), renew=st.booleans())
    def a_person_decides(self, which: int, act: Act, older: bool, renew: bool) -> None:
        self.lives[which % 3].a_person_decides(act, older, renew)

    @rule(which=ONE)
    def retention(self, which: int) -> None:
        self.lives[which % 3].retention()

    @invariant()
    def the_promises_hold(self) -> None:
        type(self).steps += 1
        for life in getattr(self, "lives", ()):
            life.the_promises_hold()
