"""Many operations at once: decisions by filter, each fenced and committed by itself; and retention by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from semel.core.operation_report import OperationFilter, OperationSummary
from semel.core.operations import State
from semel.core.people import Act
from semel.errors import ConfigurationError, NotFound, WrongState
from semel.guard.declaration import make_reference
from semel.operate.carry_out import carry_out
from semel.operate.held import Resolved, resolve
from semel.operate.many import ManyActed, Progress
from semel.operate.resending import Resender
from semel.store.faults import LockBusy
from semel.store.guard_people import Decision
from semel.store.guard_upkeep import count_purge, purge_completed, purge_released
from semel.store.guard_upkeep import purge_operation_events as purge_events
from semel.store.guard_views import count_operations, list_operations
from semel.store.run import Session, run

PAGE: Final = 200
_NEVER: Final = timedelta(days=36_500)
PURGEABLE: Final = frozenset({State.COMPLETED, State.RELEASED})


@dataclass(frozen=True, slots=True)
class ManyResolved:
    """How many operations matched when it began, and what became of them."""

    matched: int
    changed: int = 0
    unsent: int = 0
    """Released, but to be sent again by somebody: their messages are not kept, or could not be sent."""
    unsent_why: tuple[str, ...] = field(default=())
    """Why those were not sent, each reason once; at most 20 of them."""
    left: tuple[str, ...] = field(default=())
    """Why some were left as they were; at most 20 of them."""


def decide_many(
    session: Session,
    wanted: OperationFilter,
    act: Act,
    *,
    who: str,
    why: str,
    new_reference: bool = False,
    resenders: Sequence[Resender] = (),
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ManyResolved:
    """Decide about every held operation that matches, newest first; ``idle`` in the filter takes stale ones instead.

    Each is read, then decided on the claim number and the revision that were read; one that was written in between is
    left. With ``dry_run`` only counts.
    """
    chosen = _choose(wanted)
    matched, newest = run(count_operations(chosen), session)
    if dry_run or not matched:
        return ManyResolved(matched)
    changed, left = 0, 0
    reasons: list[str] = []
    unsent: list[str] = []
    for one in _each(session, chosen, newest + 1):
        decision = Decision(
            operation_id=one.id,
            act=act,
            seen=one.claim,
            revision=one.revision,
            who=who,
            why=why,
            new_reference=make_reference() if new_reference and act is Act.REDO else None,
        )
        resolved = _try(session, decision, resenders)
        if isinstance(resolved, str):
            left += 1
            reasons += [resolved] if left <= 20 else []
            continue
        changed += 1
        unsent += [resolved.note] if resolved.sent is False else []
        if progress is not None:
            progress(changed, matched)
    return ManyResolved(matched, changed, len(unsent), tuple(dict.fromkeys(unsent))[:20], tuple(reasons))


def purge_operations(
    session: Session,
    states: frozenset[State],
    older_than: timedelta,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ManyActed:
    """Delete completed (or released) operations older than that, in batches; never claimed or held ones.

    A deleted operation is forgotten: a delivery that comes after that acts. With ``dry_run`` only counts.
    """
    wrong = states - PURGEABLE
    if wrong or not states:
        raise ConfigurationError(
            f"Operations that are {', '.join(sorted(wrong)) or 'in no state'} cannot be purged.",
            holds="Nothing was deleted.",
            remedy="Possible: completed, released. A claimed or held one never expires: see semel held list",
        )
    counts = count_purge(
        completed=older_than if State.COMPLETED in states else _NEVER,
        released=older_than if State.RELEASED in states else _NEVER,
    )
    completed, released = run(counts, session)
    total = completed + released
    if dry_run:
        return ManyActed(total, 0)
    changed = 0
    for state, purge in ((State.COMPLETED, purge_completed), (State.RELEASED, purge_released)):
        if state not in states:
            continue
        while gone := carry_out(purge(keep=older_than), session):
            changed += gone
            if progress is not None:
                progress(changed, total)
    return ManyActed(total, changed)


def purge_operation_events(session: Session, older_than: timedelta) -> int:
    """Delete the history of operations that are gone, older than that; answers how many events."""
    deleted, after = 0, 0
    while True:
        window = carry_out(purge_events(keep=older_than, after=after), session)
        deleted += window.deleted
        if not window.more:
            return deleted
        after = window.last


def _choose(wanted: OperationFilter) -> OperationFilter:
    if wanted.states:
        return wanted
    stale = frozenset({State.CLAIMED, State.RELEASED})
    return replace(wanted, states=frozenset({State.HELD}) if wanted.idle is None else stale)


def _each(session: Session, wanted: OperationFilter, before_id: int | None) -> Iterator[OperationSummary]:
    """Page after page; each operation is met once, even if it is held again meanwhile."""
    while before_id is not None:
        page = run(list_operations(wanted, limit=PAGE, before_id=before_id), session)
        yield from page.operations
        before_id = page.next_before_id


def _try(session: Session, decision: Decision, resenders: Sequence[Resender]) -> Resolved | str:
    try:
        return resolve(session, decision, resenders)
    except (WrongState, NotFound, LockBusy) as error:
        return error.happened
