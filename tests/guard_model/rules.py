"""The steps of the state machine: which delivery, crash, person or passing of time comes next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.guard.stored import Stored
from tests.guard_model.machine import Bug, Life, Worker
from tests.guard_model.row_life import RIVAL, WAYS, RowLife

from semel import NotDone, Once
from semel.core.people import Act

EFFECTS = ("hold", "lookup", "keyed", "keyed then lookup", "duplicate", "twice more", "miss", "row", "row")
ONE = st.integers(0, 5)


class Machine(RuleBasedStateMachine):
    """Some operations at once, with their deliveries."""

    once: Once
    stored: Stored
    begin_row: Callable[[], Any]
    """A connection of the caller's, with a transaction."""
    steps = 0
    rows = 0
    rivals = 0
    """How many deliveries met an open transaction; MySQL waits a second each time."""
    most_rivals = 1_000_000

    @initialize(effects=st.tuples(*[st.sampled_from(EFFECTS)] * 3), explicit=st.booleans())
    def begin(self, effects: tuple[str, ...], explicit: bool) -> None:
        self.lives = [self._life(each, explicit) for each in effects]

    def _life(self, effect: str, explicit: bool) -> Life:
        if effect == "row":
            type(self).rows += 1
            return RowLife(self.once, self.stored, type(self).begin_row)
        return Life(self.once, self.stored, effect, explicit=explicit)

    @rule(which=ONE, lookup=st.sampled_from(["truth", "truth", "bare truth", "unknown", "error"]))
    def deliver(self, which: int, lookup: str) -> None:
        self.lives[which % 3].deliver(lookup)

    def _rows(self) -> list[RowLife]:
        return [life for life in self.lives if isinstance(life, RowLife)]

    @precondition(lambda self: self._rows())
    @rule(which=ONE, way=st.sampled_from([*WAYS, RIVAL]))
    def deliver_row(self, which: int, way: str) -> None:
        if way == RIVAL:
            if type(self).rivals >= type(self).most_rivals:
                return
            type(self).rivals += 1
        rows = self._rows()
        rows[which % len(rows)].deliver_row(way)

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
            self.lives[which] = self._life(effect, explicit)
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
