"""Many jobs at once, in batches that commit one by one, so that an interrupted run has done what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from semel.core.report import JobFilter, When
from semel.core.states import Status
from semel.errors import ConfigurationError
from semel.operate.carry_out import carry_out
from semel.store.run import Session, run
from semel.store.schedules import read_clock
from semel.store.statement import Operation, Statement, Steps
from semel.store.views import filter_parameters

Progress = Callable[[int, int], None]
"""Told after each batch: how many are done, of how many."""

RETRIABLE_MANY: Final = frozenset({Status.FAILED, Status.HELD})
PURGEABLE: Final = frozenset({Status.DONE, Status.CANCELLED, Status.FAILED, Status.HELD})


@dataclass(frozen=True, slots=True)
class ManyActed:
    """How many jobs matched when it began, and how many were changed; others had some of them locked."""

    matched: int
    changed: int


@dataclass(frozen=True, slots=True)
class _Batch:
    changed: int
    last: int


def retry_many(
    session: Session,
    wanted: JobFilter,
    *,
    who: str,
    why: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ManyActed:
    """Run failed jobs (or held ones, where the filter says so) again, from their first attempt, in id order.

    Each job is taken once, even if it fails again meanwhile; rows that others have locked are left out. With
    ``dry_run`` only counts.
    """
    statuses = wanted.statuses or frozenset({Status.FAILED})
    _only(statuses, RETRIABLE_MANY, "retried in bulk")
    filled = filter_parameters(wanted, run(read_clock(), session))
    filled["statuses"] = sorted(status.value for status in statuses)
    matched, last = carry_out(_pair("operate/count_retry", filled), session)
    if dry_run or not matched:
        return ManyActed(matched, 0)
    filled |= {"who": who, "why": why, "last": last}
    return ManyActed(matched, _repeat(session, "operate/retry_batch", filled, 0, matched, progress))


def purge(
    session: Session,
    statuses: frozenset[Status],
    older_than: When,
    *,
    who: str,
    queue: str | None = None,
    kind: str | None = None,
    why: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ManyActed:
    """Delete ended jobs that ended before ``older_than``, from the table and the history.

    Finished jobs that are remembered for their unique key stay. With ``dry_run`` only counts.
    """
    if not statuses:
        raise ConfigurationError("purge needs at least one status.", remedy=f"One of: {_names(PURGEABLE)}.")
    _only(statuses, PURGEABLE, "purged")
    filled = _purge_parameters(statuses, older_than, run(read_clock(), session), queue, kind)
    here, in_history = carry_out(_pair("operate/count_purge", filled), session)
    if dry_run:
        return ManyActed(here + in_history, 0)
    total = here + in_history
    filled |= {"who": who, "why": why}
    changed = _repeat(session, "operate/purge_batch", filled, 0, total, progress) if here else 0
    if in_history:
        changed += _repeat(session, "operate/purge_history_batch", filled, changed, total, progress)
    return ManyActed(total, changed)


def _purge_parameters(
    statuses: frozenset[Status], older_than: When, now: datetime, queue: str | None, kind: str | None
) -> dict[str, object]:
    wanted = JobFilter(statuses=statuses, queue=queue, kind=kind, finished_before=older_than)
    chosen = ("statuses", "queue", "kind", "finished_before")
    return {name: value for name, value in filter_parameters(wanted, now).items() if name in chosen}


def _repeat(
    session: Session,
    name: str,
    parameters: dict[str, object],
    done: int,
    total: int,
    progress: Progress | None,
) -> int:
    """Batch after batch until one is empty; each starts after the last id of the one before."""
    changed, after = 0, 0
    while True:
        batch = carry_out(_batch(name, parameters | {"after": after}), session)
        if not batch.changed:
            return changed
        changed += batch.changed
        after = batch.last
        if progress is not None:
            progress(done + changed, total)


def _batch(name: str, parameters: dict[str, object]) -> Operation[_Batch]:
    def steps() -> Steps[_Batch]:
        ((changed, last),) = yield Statement(name, parameters)
        return _Batch(changed, last or 0)

    return Operation(name.rpartition("/")[2], steps, alone=True)


def _pair(name: str, parameters: dict[str, object]) -> Operation[tuple[int, int]]:
    def steps() -> Steps[tuple[int, int]]:
        ((first, second),) = yield Statement(name, parameters)
        return int(first), int(second)

    return Operation(name.rpartition("/")[2], steps, alone=True)


def _only(statuses: frozenset[Status], accepted: frozenset[Status], done: str) -> None:
    wrong = statuses - accepted
    if wrong:
        raise ConfigurationError(
            f"Jobs that are {_names(wrong)} cannot be {done}.",
            holds="Nothing was changed.",
            remedy=f"Possible: {_names(accepted)}.",
        )


def _names(statuses: frozenset[Status]) -> str:
    return ", ".join(status.value for status in Status if status in statuses)
