"""The steps of a `Row()`: claim, effect and completion are hidden in a worker's transaction until it commits.

While a transaction is open, others find the key busy, and a person's decision waits. What may go wrong is what people do
to their own transaction: commit or roll back midway, lose the connection, or the answer to their commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.guard_model.world import LIMITS, LONGEST_RUN, Row, Rules, Step, Worker, World, with_worker, write

from semel.core.operations import Move, Outcome, Record, Reply, State, begin


class RowRules(Rules):
    """Phases of a worker: idle, open (claimed in its transaction), written, completed (not yet committed), midway (it ended
    its transaction itself, and goes on) or ended."""

    def _worker(self, world: World, number: int, worker: Worker) -> Iterator[Step]:
        match worker.phase:
            case "idle":
                yield from self._begin(world, number)
            case "open":
                yield "writes its effect", with_worker(world, number, worker._replace(phase="written"))
                yield "commits midway, with nothing written", self._midway(world, number, worker)
            case "written":
                yield "commits midway", self._midway(world, number, worker)
                yield "completes", self._complete_row(world, number, worker)
            case "completed":
                yield "commits", self._commit(world, number, worker)
                yield "commits, unheard", with_worker(self._commit(world, number, worker), number, Worker())
            case (
                "midway"
            ):  # its completion is not in the transaction that claimed: refused, and all is rolled back
                yield "is refused", with_worker(world, number, Worker("ended"))
        if worker.draft is not None:
            yield "rolls back midway", with_worker(world, number, Worker("midway"))
            yield "loses its connection", with_worker(world, number, Worker())
        if worker.phase not in ("idle", "ended"):
            yield "fails", with_worker(world, number, Worker("ended"))

    def _begin(self, world: World, number: int) -> Iterator[Step]:
        busy = any(worker.draft is not None for worker in world.workers)
        if busy and self.broken != "an open transaction is not seen":
            return
        row = world.row
        record = None if row is None else self._record(row, number)
        decision = begin(record, self.effect, longest_run=LONGEST_RUN, limits=LIMITS)
        if decision.reply is Reply.ACT:
            draft = self._moved(row, number, decision)._replace(token=None)
            claimed = Worker("open", reference=draft.reference, draft=draft)
            yield f"begins: {decision.move}", with_worker(world, number, claimed)
        elif decision.reply is not Reply.IN_PROGRESS:
            told = (
                world if decision.move is Move.NOTHING else write(world, self._moved(row, number, decision))
            )
            yield f"is told: {decision.reply}", with_worker(told, number, Worker("ended"))

    def _midway(self, world: World, number: int, worker: Worker) -> World:
        """Its claim is committed, unfinished, and its effect if it was written."""
        assert worker.draft is not None
        effects = (*world.effects, worker.reference) if worker.phase == "written" else world.effects
        committed = write(world, worker.draft._replace(token=number, midway=True))
        return with_worker(
            committed._replace(effects=effects), number, Worker("midway", reference=worker.reference)
        )

    def _complete_row(self, world: World, number: int, worker: Worker) -> World:
        assert worker.draft is not None
        done = worker.draft._replace(state=State.COMPLETED, outcome=Outcome.ACTED)
        apart = self.broken == "its completion is a commit of its own"
        return with_worker(
            write(world, done) if apart else world, number, worker._replace(phase="completed", draft=done)
        )

    def _commit(self, world: World, number: int, worker: Worker) -> World:
        assert worker.draft is not None
        committed = write(world, worker.draft)._replace(effects=(*world.effects, worker.reference))
        return with_worker(committed, number, Worker("ended"))

    def _record(self, row: Row, number: int | None) -> Record:
        record = super()._record(row, number)
        if self.broken == "a commit midway is taken over":
            return replace(record, committed_midway=False, acting=False)
        return replace(record, committed_midway=row.midway and not record.mine)

    def _moved(self, row: Row | None, number: int, decision: object) -> Row:
        return super()._moved(row, number, decision)._replace(midway=False)  # type: ignore[arg-type]

    def _person(self, world: World) -> Iterator[Step]:
        if any(worker.draft is not None for worker in world.workers):
            return
        yield from super()._person(world)
