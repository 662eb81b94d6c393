"""The order of events: orders are charged, workers are killed in the call, answers are lost; first without the guard."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from semel.cli.demonstration.charges.conductor import Conductor
from semel.cli.demonstration.charges.decisions import Person
from semel.cli.demonstration.charges.figures import ChargeNotes, MethodFigures, count_method, list_records
from semel.cli.demonstration.charges.script import FATES, HOW_MANY, NO_GUARD, Fate, Method, foretell_all
from semel.cli.demonstration.charges.shop import LOCATION, PROVIDER_VARIABLE, QUEUE, SPEED_VARIABLE, Shop
from semel.cli.demonstration.example import SPEED
from semel.cli.demonstration.figures import View, look, look_at
from semel.cli.demonstration.promises import PromiseBroken
from semel.cli.demonstration.screen import Screen
from semel.cli.demonstration.stage import Stage
from semel.cli.demonstration.worker import WorkerProcess, worker_command, worker_environment
from semel.core.report import JobFilter, JobSummary
from semel.core.states import Status
from semel.store.drivers.psycopg3 import PsycopgSession

WANTED: Final = JobFilter(queue=QUEUE)
CONCURRENCY: Final = 60
"""Jobs at a time: all that are to be killed in their call run at once."""
TIME_LIMIT: Final = 120.0
"""Seconds after which something must be wrong; it takes about 20."""
HELD_METHOD: Final = "charge-order-or-hold"
_LOOK_EVERY: Final = 0.1
_ENDED: Final = frozenset({Status.DONE, Status.HELD, Status.FAILED, Status.CANCELLED})


@dataclass
class ChargeStory:
    """One demonstration of the guard, told on a screen."""

    stage: Stage
    shop: Shop
    provider: Any
    conductor: Conductor
    screen: Screen
    session: PsycopgSession
    methods: tuple[Method, ...]
    notes: ChargeNotes = field(default_factory=ChargeNotes)
    orders: dict[str, list[int]] = field(default_factory=dict)
    """Of each method, by its name."""
    workers: int = 0
    began: float = field(default_factory=time.monotonic)

    def tell(self) -> list[MethodFigures]:
        """Play it; answers what there was to count before a person decided."""
        self._introduce()
        unguarded, *guarded = self.methods
        self._take_orders([unguarded])
        with self._worker() as first:
            self._kill_in_the_call(first, [unguarded])
        with self._worker() as second:
            self._wait_for_ends(second)
            doubled = sum(number > 1 for number in self._charges().values())
            self.screen.say(f"{NO_GUARD}: {doubled} of {len(FATES)} orders were charged more than once")
            self._take_orders(guarded)
            self._kill_in_the_call(second, guarded)
        with self._worker() as third:
            self._wait_for_ends(third)
            figures = self._count()
            self._let_a_person_decide(third)
            self.notes.exit_codes.append(third.stop())
        self.notes.answers_lost = self.conductor.lost
        return figures

    def _introduce(self) -> None:
        uncertain = sum(number for fate, number in HOW_MANY.items() if fate.uncertain)
        self.screen.say(
            f"a payment provider on 127.0.0.1:{self.provider.port}; {len(FATES)} orders for each of "
            f"{len(self.methods)} ways to charge, and {uncertain} of each {len(FATES)} end their first attempt without "
            f"anybody's knowing (time runs {SPEED} times faster: lease {self.shop.lease:g} s)"
        )

    def _take_orders(self, methods: list[Method]) -> None:
        """Each order with its job, and its fate."""
        for method in methods:
            cards = [f"{method.kind}-{number}" for number in range(len(FATES))]
            self.conductor.expect(dict(zip(cards, FATES, strict=True)))
            self.orders[method.name] = self.shop.take_orders(method.kind, cards)
        names = ", ".join(method.name for method in methods)
        self.screen.say(f"{len(methods) * len(FATES)} orders to charge, each a job: {names}")

    def _kill_in_the_call(self, worker: WorkerProcess, methods: list[Method]) -> None:
        """When all that are to be killed stand at their points, and all others came to their end."""
        wanted = Counter({fate: HOW_MANY[fate] * len(methods) for fate in Fate if fate.killed})

        def reached(view: View) -> bool:
            ended = sum(self._ended(job) for job in view.jobs.values())
            return self.conductor.waiting == wanted and ended == len(view.jobs) - wanted.total()

        self._wait(worker, "the orders that are to be killed", reached)
        at_kill = self.conductor.waiting
        killed = worker.kill()
        self.conductor.let_go()
        self.notes.at_kill += at_kill
        self.notes.killed += killed
        told = ", ".join(f"{number} {fate.value.removeprefix('killed ')}" for fate, number in at_kill.items())
        self.screen.say(f"kill -9 for processes {' and '.join(map(str, killed))}: {told}")

    def _let_a_person_decide(self, worker: WorkerProcess) -> None:
        jobs = self._jobs_by_order()

        def settled(order: int) -> str | None:
            def ended(view: View) -> bool:
                return view.jobs[jobs[order].id].status in _ENDED

            self._wait(worker, f"order {order} to end", ended)
            return look(self.session, WANTED).jobs[jobs[order].id].status.value

        person = Person(
            session=self.session,
            url=self.stage.url,
            charges_of=lambda order: self._charges()[order],
            find_charges=self.provider.find,
            say=self.screen.say,
            settled=settled,
        )
        self.notes.decisions = person.decide(HELD_METHOD)

    def _wait_for_ends(self, worker: WorkerProcess) -> None:
        """It takes over what the killed one left, when the leases end, and ends all that can end."""

        def reached(view: View) -> bool:
            return all(self._ended(job) for job in view.jobs.values())

        self._wait(worker, "all orders to end or be held", reached)

    def _ended(self, job: JobSummary) -> bool:
        return job.status in _ENDED

    def _count(self) -> list[MethodFigures]:
        charges, jobs = self._charges(), self._jobs_by_order()
        records = list_records(self.session)
        return [
            count_method(method, self.orders[method.name], charges, records, jobs) for method in self.methods
        ]

    def _charges(self) -> Counter[int]:
        """The provider's charges of each order."""
        return Counter(charge.order for charge in tuple(self.provider.charges))

    def _jobs_by_order(self) -> dict[int, JobSummary]:
        view = look(self.session, WANTED)
        return {
            int(look_at(self.session, job_id).payload["order_id"]): job for job_id, job in view.jobs.items()
        }

    @contextmanager
    def _worker(self) -> Iterator[WorkerProcess]:
        self.workers += 1
        told = {SPEED_VARIABLE: str(SPEED), PROVIDER_VARIABLE: f"127.0.0.1:{self.provider.port}"}
        log = self.stage.folder / f"shop-worker-{self.workers}.log"
        command = worker_command(self.stage.url, LOCATION, concurrency=CONCURRENCY)
        with WorkerProcess(command, worker_environment(self.shop.folder, told), log) as worker:
            self.screen.say(f"worker {self.workers} starts (process {worker.pid})")
            try:
                yield worker
            finally:
                self.conductor.let_go()

    def _wait(self, worker: WorkerProcess, what: str, reached: Callable[[View], bool]) -> None:
        while True:
            view = look(self.session, WANTED)
            self.screen.show(view, "provider", f"{len(self.provider.charges)} charges")
            if reached(view):
                return
            late = time.monotonic() - self.began > TIME_LIMIT
            if worker.ended or late:
                ended = f"{TIME_LIMIT:.0f} s were over" if late else f"worker {self.workers} ended"
                raise PromiseBroken(
                    f"The demo waited for {what}, and {ended}.",
                    remedy=f"The log of worker {self.workers} ends with:\n{worker.last_lines()}",
                )
            time.sleep(_LOOK_EVERY)


def foretold(methods: tuple[Method, ...]) -> list[tuple[Method, int, int]]:
    """Before the run: how many orders of each method will end, and how many will be held."""
    return [
        (method, sum(not each.held for each in all_), sum(each.held for each in all_))
        for method, all_ in ((method, foretell_all(method)) for method in methods)
    ]
