"""What the second act came to, counted from the provider's charges and the guard's records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from semel.cli.demonstration.charges.script import FATES, Fate, Foretold, Method, foretell_all
from semel.core.operation_report import OperationFilter, OperationSummary
from semel.core.operations import State
from semel.core.report import JobSummary
from semel.core.states import Status
from semel.store.drivers.psycopg3 import PsycopgSession
from semel.store.guard_views import list_operations
from semel.store.run import run

_MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFigures:
    """One order's end."""

    order: int
    fate: str
    charges: int
    state: str
    """The operation's; without the guard, the job's."""
    outcome: str | None
    effect: str | None
    """As the record names it."""
    foretold_charges: int
    foretold_state: str

    @property
    def ended(self) -> bool:
        return self.state in (State.COMPLETED, Status.DONE)

    @property
    def held(self) -> bool:
        return self.state == State.HELD


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodFigures:
    """One way to charge, over all its orders."""

    method: str
    kind: str
    orders: int
    orders_by_charges: dict[str, int]
    """How many orders have 0, 1, 2 … charges."""
    charged_more_than_once: int
    completed: int
    held: int
    never_more_than: int | None
    """Promised; null without the guard."""
    completed_means: str | None
    stale: str | None
    """What is promised for a worker that died in the call."""
    foretold_orders_by_charges: dict[str, int]
    foretold_completed: int
    foretold_held: int
    order_list: list[OrderFigures]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFigures:
    """What a person decided about one held order, and what came of it."""

    act: str
    command: str
    order: int
    operation: int
    charges_before: int
    charges_after: int
    state: str
    outcome: str | None
    job_status: str | None


@dataclass
class ChargeNotes:
    """What the story saw happen and nothing else keeps."""

    killed: list[int] = field(default_factory=list)
    """The processes that got SIGKILL."""
    at_kill: Counter[Fate] = field(default_factory=Counter)
    """Orders that stood where their worker was to die, when it did."""
    exit_codes: list[int | None] = field(default_factory=list)
    """Of the workers that were told to stop."""
    answers_lost: int = 0
    decisions: list[DecisionFigures] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeFigures:
    """The result of the second act."""

    seconds: float
    postgresql: str
    speed: float
    lease_seconds: float
    orders_of_each_method: int
    fates: dict[str, int]
    killed_processes: int
    at_kill: dict[str, int]
    answers_lost: int
    worker_exit_codes: list[int | None]
    methods: list[MethodFigures]
    decisions: list[DecisionFigures]


def list_records(session: PsycopgSession, **wanted: Any) -> dict[int, OperationSummary]:
    """The guard's records by the order that they are of: its number is their label."""
    page = run(list_operations(OperationFilter(**wanted), limit=_MOST), session)
    return {int(record.label): record for record in page.operations if record.label}


def count_method(
    method: Method,
    orders: Sequence[int],
    charges: Mapping[int, int],
    records: Mapping[int, OperationSummary],
    jobs: Mapping[int, JobSummary],
) -> MethodFigures:
    """One method's figures. ``charges`` and ``jobs`` are by order."""
    foretold = foretell_all(method)
    listed = [
        _count_order(method, fate, expected, order, charges.get(order, 0), records.get(order), jobs[order])
        for order, fate, expected in zip(orders, FATES, foretold, strict=True)
    ]
    promised = method.promise
    return MethodFigures(
        method=method.name,
        kind=method.kind,
        orders=len(listed),
        orders_by_charges=_by_number(each.charges for each in listed),
        charged_more_than_once=sum(each.charges > 1 for each in listed),
        completed=sum(each.ended for each in listed),
        held=sum(each.held for each in listed),
        never_more_than=method.most,
        completed_means=None if promised is None else promised.completed_means,
        stale=None if promised is None else promised.stale,
        foretold_orders_by_charges=_by_number(each.charges for each in foretold),
        foretold_completed=sum(not each.held for each in foretold),
        foretold_held=sum(each.held for each in foretold),
        order_list=listed,
    )


def _count_order(
    method: Method,
    fate: Fate,
    expected: Foretold,
    order: int,
    charges: int,
    record: OperationSummary | None,
    job: JobSummary,
) -> OrderFigures:
    guarded = method.effect is not None
    state = job.status.value if not guarded else "unclaimed" if record is None else record.state
    return OrderFigures(
        order=order,
        fate=fate.value,
        charges=charges,
        state=state,
        outcome=None if record is None else record.outcome,
        effect=None if record is None else record.effect,
        foretold_charges=expected.charges,
        foretold_state="held" if expected.held else "completed" if guarded else "done",
    )


def _by_number(charges: Any) -> dict[str, int]:
    counted = Counter(charges)
    return {str(number): counted[number] for number in range(max([2, *counted]) + 1)}
