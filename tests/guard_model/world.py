"""A store, a world outside and a few workers, as values: what the search walks through, every order of every step.

The store applies the decisions of `semel.core.operations` as the SQL does: a decision is taken on a read and written
fenced by it; an attempt's own steps are fenced by its token. Time is three facts about the record: its lease is over, the
settle time has passed, the provider's memory of the reference is over. ``broken`` names one thing that is left out.

What the promises assume is assumed here too, and nowhere else (DESIGN 5.3, "Limits"): nobody is still inside the outside
call when the settle time or the provider's window ends; a person says "redo" only where no attempt lives and nothing
happened, and "done" only where it did; a look-up tells the truth or UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from semel.core.effects import Answer, Effect, Lookup, ProviderKey
from semel.core.operations import (
    Decision,
    Limits,
    Move,
    Outcome,
    Record,
    Reply,
    State,
    begin,
    failed,
    found,
    leaves_doubt,
    may_resend,
)
from semel.core.people import Act, refusal

SETTLE = timedelta(seconds=50)
VALID_FOR = timedelta(seconds=500)
LIMITS = Limits(max_unsure=2, max_takeovers=2)
LONGEST_RUN = timedelta(seconds=10)


GONE = 9
"""The token of a worker that has ended."""


class Row(NamedTuple):
    """The record."""

    state: State = State.CLAIMED
    outcome: Outcome | None = None
    claim: int = 1
    token: int | None = None
    acting: bool = False
    over: bool = False
    settled: bool = False
    unsure_known: bool = False
    reference: int = 1
    aged: bool = False
    unsure: int = 0
    takeovers: int = 0
    looks: int = 0
    extra_used: int = 0
    midway: bool = False
    """The claim of a `Row()`, committed without its completion."""


class Worker(NamedTuple):
    """One delivery. ``phase``: idle, decided, looking, told, claimed (before the point of no return), calling, acted or
    ended."""

    phase: str = "idle"
    decision: Decision | None = None
    fresh: bool = True
    """Nothing was written since the decision's read."""
    answer: Answer | None = None
    reference: int = 0
    passed: bool = False
    in_doubt: bool = False
    draft: Row | None = None
    """Of a `Row()`: the record as its open transaction leaves it."""


class World(NamedTuple):
    """Everything there is."""

    row: Row | None
    workers: tuple[Worker, ...]
    effects: tuple[int, ...] = ()
    """The reference of each effect that happened."""
    remembered: frozenset[int] = frozenset()
    """References that the provider still knows."""
    person: tuple[int, Act] | None = None
    """What a person saw and is about to decide."""
    decided: bool = False


Step = tuple[str, World]


class Rules:
    """The steps that a world can take, for one declared effect."""

    def __init__(self, effect: Effect, *, explicit: bool, broken: str = "", people: bool = True) -> None:
        self.effect = effect
        self.explicit = explicit
        self.broken = broken
        self.people = people
        self.looks = isinstance(effect, Lookup) or isinstance(getattr(effect, "then", None), Lookup)

    def steps(self, world: World) -> Iterator[Step]:
        for number, worker in enumerate(world.workers):
            for name, after in self._worker(world, number, worker):
                yield f"{number} {name}", plain(after)
        for name, after in self._time(world):
            yield name, plain(after)
        if self.people:
            for name, after in self._person(world):
                yield name, plain(after)

    def _worker(self, world: World, number: int, worker: Worker) -> Iterator[Step]:
        match worker.phase:
            case "idle":
                yield "reads", self._read(world, number)
            case "decided":
                yield from self._written(world, number, worker)
            case "looking":
                truth = Answer.DONE if worker.reference in world.effects else Answer.NOT_DONE
                for answer in (truth, Answer.UNKNOWN):
                    told = worker._replace(phase="told", answer=answer)
                    yield f"hears {answer}", with_worker(world, number, told)
            case "told":
                yield "writes its finding", self._found(world, number, worker)
            case "claimed":
                yield "enters acting", self._enter(world, number, worker)
                yield "fails before acting", self._fail(world, number, worker, not_done=False)
            case "calling":
                yield "has its effect", self._effect(world, number, worker)
                yield "fails inside", self._fail(world, number, worker, not_done=False)
                yield "fails, certainly not done", self._fail(world, number, worker, not_done=True)
            case "acted":
                yield "completes", self._complete(world, number)
                yield "completes, unheard", self._complete(world, number, heard=False)
                yield "fails after its effect", self._fail(world, number, worker, not_done=False)
        if worker.phase not in ("idle", "ended"):
            yield "is killed", with_worker(world, number, Worker("ended"))

    def _time(self, world: World) -> Iterator[Step]:
        row = world.row
        if row is None:
            return
        calling = any(worker.phase == "calling" for worker in world.workers)
        if row.state is State.CLAIMED and not row.over:
            yield "the lease ends", world._replace(row=row._replace(over=True))
        if self.looks and (row.over or row.unsure_known) and not row.settled and not calling:
            yield "the settle time passes", world._replace(row=row._replace(settled=True))
        if not self.explicit:  # then a decision to act is the point of no return
            calling = calling or any(worker.phase == "decided" for worker in world.workers)
        if isinstance(self.effect, ProviderKey) and not row.aged and not calling:
            aged = world._replace(row=row._replace(aged=True), remembered=frozenset())
            yield "the provider forgets", aged

    def _person(self, world: World) -> Iterator[Step]:
        row = world.row
        if row is None or world.decided:
            return
        if world.person is None:
            calling = any(worker.phase == "calling" for worker in world.workers)
            alive = calling or (row.token is not None and row.token != GONE)
            for act in Act:
                sure = {
                    Act.DONE: bool(world.effects),
                    Act.REDO: not world.effects and not alive,
                    Act.ABANDON: True,
                }[act]
                if sure and refusal(self._record(row, None), act, seen=row.claim, waiting=0) is None:
                    yield f"a person will say {act}", world._replace(person=(row.claim, act))
            return
        seen, act = world.person
        seen = row.claim if self.broken == "a person's decision without a fence" else seen
        if refusal(self._record(row, None), act, seen=seen, waiting=0) is not None:
            yield "a person is refused", world._replace(decided=True)
            return
        if act is Act.REDO:
            after = row._replace(
                state=State.RELEASED,
                claim=row.claim + 1,
                token=None,
                acting=False,
                unsure_known=False,
                unsure=0,
                takeovers=0,
                looks=0,
                midway=False,
            )
        else:
            after = row._replace(state=State.COMPLETED, outcome=act.outcome, token=None)
        yield f"a person says {act}", write(world, after)._replace(decided=True)

    def _read(self, world: World, number: int) -> World:
        record = None if world.row is None else self._record(world.row, number)
        decision = begin(record, self.effect, longest_run=LONGEST_RUN, limits=LIMITS)
        if self.broken == "a lost answer of a takeover to look" and decision.move is Move.RENEW:
            decision = replace(decision, reply=Reply.ACT)
        if decision.reply is Reply.IN_PROGRESS:
            return world
        return with_worker(world, number, Worker("decided", decision))

    def _record(self, row: Row, number: int | None) -> Record:
        settled = row.settled or self.broken == "no settle time"
        aged = row.aged and self.broken != "the provider's window ignored"
        return Record(
            state=row.state,
            outcome=row.outcome,
            revision=1,
            claim=row.claim,
            mine=number is not None and row.token == number,
            same_payload=True,
            lease_left=10.0 if not row.over else -100.0 if settled else -1.0,
            acting=row.acting,
            unsure_for=(100.0 if settled else 1.0) if row.unsure_known else None,
            reference=str(row.reference),
            reference_age=1000.0 if aged else 0.0,
            unsure=row.unsure,
            takeovers=row.takeovers,
            looks=row.looks,
            extra_used=row.extra_used,
        )

    def _written(self, world: World, number: int, worker: Worker) -> Iterator[Step]:
        decision = worker.decision
        assert decision is not None
        fenced = self.broken != "a takeover without its fence" or decision.move is Move.INSERT
        if fenced and not worker.fresh and decision.move is not Move.NOTHING:
            yield "must read again", with_worker(world, number, Worker())
            return
        row = self._moved(world.row, number, decision)
        after = world if decision.move is Move.NOTHING else write(world, row)
        if decision.reply is Reply.ACT:
            doubt = world.row is not None and leaves_doubt(self._record(world.row, number), decision.move)
            yield f"begins: {decision.move}", self._act(after, number, row, doubt)
            yield f"begins, unheard: {decision.move}", with_worker(after, number, Worker())
        elif decision.reply is Reply.LOOK:
            looking = Worker("looking", reference=row.reference)
            yield f"begins to look: {decision.move}", with_worker(after, number, looking)
            yield f"begins to look, unheard: {decision.move}", with_worker(after, number, Worker())
        else:
            yield f"is told: {decision.reply}", with_worker(after, number, Worker("ended"))

    def _moved(self, row: Row | None, number: int, decision: Decision) -> Row:
        """The row as the statement of this move leaves it."""
        from_start = not self.explicit
        if row is None:
            return Row(token=number, acting=from_start)
        lease = {"token": number, "over": False}
        match decision.move:
            case Move.RENEW:
                settled = row.settled and row.unsure_known
                return row._replace(over=False, settled=settled)
            case Move.CLAIM:
                fresh = row._replace(**lease, state=State.CLAIMED, claim=row.claim + 1, acting=from_start)
                return fresh._replace(unsure_known=False, settled=False)
            case Move.TAKE_OVER:
                reference = row.reference + (1 if self.broken == "a new reference at takeover" else 0)
                taken = row._replace(
                    **lease,
                    claim=row.claim + 1,
                    takeovers=row.takeovers + 1,
                    acting=row.acting or from_start,
                    unsure_known=False,
                    settled=False,
                    reference=reference,
                )
                return taken._replace(extra_used=row.extra_used + decision.use_extra)
            case Move.TAKE_OVER_TO_LOOK:
                kept = row.acting and self.broken != "acting forgotten at takeover"
                return row._replace(
                    **lease, claim=row.claim + 1, looks=row.looks + 1, unsure_known=True, acting=kept
                )
            case Move.HOLD:
                return row._replace(state=State.HELD, unsure_known=True)
            case Move.MISS:
                return row._replace(state=State.COMPLETED, outcome=Outcome.MISSED)
        return row

    def _act(self, world: World, number: int, row: Row, doubt: bool) -> World:
        phase = "claimed" if self.explicit and not row.acting else "calling"
        if self.explicit:
            phase = "claimed"
        worker = Worker(phase, reference=row.reference, passed=row.acting, in_doubt=doubt)
        return with_worker(world, number, worker)

    def _found(self, world: World, number: int, worker: Worker) -> World:
        row = world.row
        lookup = self.effect.then if isinstance(self.effect, ProviderKey) else self.effect
        assert isinstance(lookup, Lookup)
        answer = worker.answer
        if self.broken == "a look-up's DONE ignored" and answer is Answer.DONE:
            answer = Answer.NOT_DONE
        if self.broken == "no fence after a look-up" and answer is Answer.NOT_DONE:
            return with_worker(world, number, Worker("calling", reference=worker.reference, passed=True))
        if row is None or row.token != number or row.state is not State.CLAIMED:
            return with_worker(world, number, Worker("ended"))  # ClaimLost
        assert answer is not None
        decision = found(lookup, self._record(row, number), answer)
        ended = with_worker(world, number, Worker("ended"))
        match decision.move:
            case Move.COMPLETE_FOUND:
                return write(ended, row._replace(state=State.COMPLETED, outcome=Outcome.FOUND))
            case Move.HOLD:
                return write(ended, row._replace(state=State.HELD))
            case Move.LOOK_LATER:
                return write(ended, row._replace(over=False))
        after = row._replace(over=False, looks=0, acting=True, unsure_known=False, settled=False)
        after = after._replace(reference=row.reference + 1, aged=False)
        return self._act(write(world, after), number, after, False)

    def _enter(self, world: World, number: int, worker: Worker) -> World:
        row = world.row
        held = row is not None and row.token == number and row.state is State.CLAIMED
        calling = worker._replace(phase="calling", passed=True)
        if self.broken == "no fence at acting" and not held:
            return with_worker(world, number, calling)
        if row is None or not held:
            return with_worker(world, number, Worker("ended"))  # ClaimLost
        record = self._record(row, number)
        late = worker.in_doubt and not may_resend(record, self.effect, longest_run=LONGEST_RUN)
        if late and self.broken != "the window not looked at again":
            return self._fail(world, number, worker, not_done=False)
        acting = row._replace(acting=True, over=False, unsure_known=False, settled=False)
        return with_worker(write(world, acting), number, calling)

    def _effect(self, world: World, number: int, worker: Worker) -> World:
        acted = with_worker(world, number, worker._replace(phase="acted"))
        if isinstance(self.effect, ProviderKey):
            if worker.reference in world.remembered:
                return acted
            acted = acted._replace(remembered=world.remembered | {worker.reference})
        return acted._replace(effects=(*world.effects, worker.reference))

    def _complete(self, world: World, number: int, *, heard: bool = True) -> World:
        row = world.row
        ended = with_worker(world, number, Worker("ended")) if heard else world
        if row is None or row.token != number or row.state not in (State.CLAIMED, State.HELD):
            return ended
        return write(ended, row._replace(state=State.COMPLETED, outcome=Outcome.ACTED))

    def _fail(self, world: World, number: int, worker: Worker, *, not_done: bool) -> World:
        row = world.row
        ended = with_worker(world, number, Worker("ended"))
        if row is None or row.token != number or row.state is not State.CLAIMED:
            return ended  # evidence only
        doubt = worker.in_doubt and self.broken != "an earlier attempt's doubt forgotten"
        passed = worker.passed and self.broken != "every exception releases"
        if failed(acting=passed, not_done=not_done, in_doubt=doubt) is Move.RELEASE:
            released = row._replace(state=State.RELEASED, token=None, acting=False)
            return write(ended, released._replace(unsure_known=False))
        unsure = row._replace(unsure=row.unsure + 1, over=True, unsure_known=True, settled=False)
        return write(ended, unsure._replace(acting=True))


def plain(world: World) -> World:
    """The same world with what nobody can tell apart made equal: the order of workers, numbers that nobody will see again."""
    row = world.row
    if row is None:
        return world
    order = sorted(range(len(world.workers)), key=lambda number: _sorting(world, number))
    workers = tuple(world.workers[number] for number in order)
    alive = [number for number in order if world.workers[number].phase != "ended"]
    token = None if row.token is None else order.index(row.token) if row.token in alive else GONE
    known = {row.reference, *(world.workers[number].reference for number in alive)}
    claim = 1 if world.person is None or world.decided else 1 + (row.claim != world.person[0])
    person = None if world.person is None or world.decided else (1, world.person[1])
    return world._replace(
        row=row._replace(token=token, claim=claim),
        workers=workers,
        effects=tuple(sorted(each if each in known else 0 for each in world.effects)),
        remembered=world.remembered & known,
        person=person,
    )


def _sorting(world: World, number: int) -> tuple[object, ...]:
    worker, row = world.workers[number], world.row
    decided = "" if worker.decision is None else repr(worker.decision)
    mine = row is not None and row.token == number
    told = (
        worker.answer or "",
        worker.reference,
        worker.passed,
        worker.in_doubt,
        worker.fresh,
        repr(worker.draft),
    )
    return (worker.phase, mine, decided, told)


def with_worker(world: World, number: int, worker: Worker) -> World:
    workers = list(world.workers)
    workers[number] = worker
    return world._replace(workers=tuple(workers))


def write(world: World, row: Row) -> World:
    """The record is written: what others read before is no longer so."""
    workers = tuple(
        worker._replace(fresh=False) if worker.phase == "decided" else worker for worker in world.workers
    )
    return world._replace(row=row, workers=workers)
