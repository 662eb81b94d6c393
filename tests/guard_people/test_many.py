"""Decisions by filter, and retention."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.guard_people.conftest import ME, STATES, Inbox

from semel.core.operation_report import OperationFilter
from semel.core.operations import Reply, State
from semel.core.people import Act
from semel.errors import ConfigurationError, RetryTransaction
from semel.operate import held_many
from semel.operate.held import done
from semel.operate.held_many import decide_many, purge_operation_events, purge_operations
from semel.store.faults import LockBusy
from semel.store.guard_begin import begin_known, begin_new
from semel.store.guard_end import uncertain
from semel.store.guard_request import Again
from semel.store.guard_upkeep import purge_completed, purge_released
from semel.store.guard_upkeep import purge_operation_events as purge_window
from semel.store.guard_views import count_waiting, list_operations
from semel.store.statement import Operation

YEAR = 366 * 86_400
DAY = timedelta(days=1)


def test_a_filter_decides_what_matches(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_many, "PAGE", 2)
    matching = [inbox.make("held", job_type="mail")[0] for _ in range(5)]
    others = [
        inbox.make("held")[0],
        inbox.make("stale", job_type="mail")[0],
        inbox.make("completed", job_type="mail")[0],
    ]
    wanted = OperationFilter(job_type="mail")
    dry = inbox.act(decide_many, wanted, Act.ABANDON, who=ME, why="too late", dry_run=True)
    assert (dry.matched, dry.changed) == (5, 0)
    seen: list[tuple[int, int]] = []
    many = inbox.act(
        decide_many,
        wanted,
        Act.ABANDON,
        who=ME,
        why="too late",
        progress=lambda done, total: seen.append((done, total)),
    )
    assert (many.matched, many.changed, many.unsent, many.left) == (5, 5, 0, ())
    assert seen[-1] == (5, 5)
    assert {inbox.get(made).operation.state for made in matching} == {State.COMPLETED}
    assert [inbox.get(made).operation.state for made in others] == [
        State.HELD,
        State.CLAIMED,
        State.COMPLETED,
    ]
    assert all(inbox.events(made)[-1] == ("abandon", ME, "too late") for made in matching)


def test_what_was_written_since_it_was_listed_is_left(inbox: Inbox) -> None:
    """The same attempt comes back while others are decided: its claim is the same, and what is known is not."""
    first, request = inbox.make("held")
    second, _ = inbox.make("held")

    def come_back(done: int, total: int) -> None:
        if done == 1:
            inbox.run(uncertain(request, error="TimeoutError"))

    wanted = OperationFilter(job_type="charge")
    many = inbox.act(decide_many, wanted, Act.REDO, who=ME, why="not there", progress=come_back)
    assert (many.matched, many.changed) == (2, 1)
    assert "it was written since it was shown" in many.left[0]
    states = [inbox.get(made).operation.state for made in (first, second)]
    assert states == [State.HELD, State.RELEASED]


def test_a_filter_can_take_stale_claims(inbox: Inbox) -> None:
    stale, _ = inbox.make("stale")
    held, _ = inbox.make("held")
    claimed, _ = inbox.make("claimed")
    many = inbox.act(decide_many, OperationFilter(idle=timedelta(0)), Act.REDO, who=ME, why="not there")
    assert (many.changed, many.unsent) == (1, 1)
    states = [inbox.get(made).operation.state for made in (stale, held, claimed)]
    assert states == [State.RELEASED, State.HELD, State.CLAIMED]


def test_what_changed_since_the_filter_looked_is_left(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = inbox.make("held")
    second, _ = inbox.make("held")
    real = held_many._try

    def late(session: object, decision: object, resenders: object) -> object:
        if inbox.get(first).operation.state is State.HELD:
            with inbox.own.session() as other:
                done(other, first, 1, "bob@desk", "found it")
        return real(session, decision, resenders)  # type: ignore[arg-type]

    monkeypatch.setattr(held_many, "_try", late)
    many = inbox.act(decide_many, OperationFilter(label=None), Act.REDO, who=ME, why="not there")
    assert (many.matched, many.changed, len(many.left)) == (2, 1, 1)
    assert f"Operation {first} " in many.left[0]
    assert inbox.get(second).operation.state is State.RELEASED


@pytest.mark.parametrize("state", STATES)
def test_retention_takes_completed_and_long_released_ones_only(inbox: Inbox, state: str) -> None:
    young, _ = inbox.make(state)
    old, request = inbox.make(state)
    for column in ("changed_at", "completed_at", "lease_until", "claimed_at"):
        inbox.shift(old, column, YEAR if state != "claimed" or column != "lease_until" else 0)
    gone = inbox.run(purge_completed(keep=timedelta(days=90))) + inbox.run(
        purge_released(keep=timedelta(days=365))
    )
    expires = state in ("completed", "released", "unclaimed")
    assert gone == int(expires)
    assert (inbox.find(old) is None) == expires
    assert inbox.find(young) is not None
    if expires:
        assert inbox.run(begin_new(inbox.again(request))) is not None


def test_purge_by_hand(inbox: Inbox) -> None:
    made = [inbox.make("completed")[0] for _ in range(3)]
    released, _ = inbox.make("released")
    for one in (*made[:2], released):
        inbox.shift(one, "completed_at", YEAR)
        inbox.shift(one, "changed_at", YEAR)
    dry = inbox.act(purge_operations, frozenset({State.COMPLETED}), DAY, dry_run=True)
    assert (dry.matched, dry.changed) == (2, 0)
    done = inbox.act(purge_operations, frozenset({State.COMPLETED}), DAY)
    assert (done.matched, done.changed) == (2, 2)
    assert inbox.find(released) is not None
    both = inbox.act(purge_operations, frozenset({State.COMPLETED, State.RELEASED}), DAY)
    assert (both.matched, both.changed) == (1, 1)
    for state in (State.HELD, State.CLAIMED):
        with pytest.raises(ConfigurationError, match="cannot be purged"):
            inbox.act(purge_operations, frozenset({state}), DAY)


def test_what_people_decided_outlives_the_operation(inbox: Inbox) -> None:
    gone, _ = inbox.make("held")
    inbox.act(done, gone, 1, ME, "found it")
    kept, _ = inbox.make("held")
    inbox.shift(gone, "completed_at", YEAR)
    assert inbox.run(purge_completed(keep=DAY)) == 1
    from semel.store.guard_views import list_operation_events

    assert [event.event for event in inbox.run(list_operation_events(gone))] == ["held", "done"]
    assert inbox.act(purge_operation_events, DAY) == 0
    for one in (gone, kept):
        inbox.shift(one, "at", YEAR, "events")
    assert inbox.act(purge_operation_events, DAY) == 2
    assert inbox.run(list_operation_events(gone)) == ()
    assert [event.event for event in inbox.run(list_operation_events(kept))] == ["held"]


def test_the_history_is_purged_window_by_window(beside: Inbox) -> None:
    beside.text(
        "INSERT INTO semel.operation_events (operation_id, scope, job_type, event, claim, at) "
        "SELECT 999, '', 'k', 'refused', 1, now() - interval '2 years' FROM generate_series(1, 2500)"
    )
    beside.text(
        "INSERT INTO semel.operation_events (operation_id, scope, job_type, event, claim) VALUES (999, '', 'k', 'x', 1)"
    )
    first = beside.run(purge_window(keep=DAY))
    assert (first.deleted, first.more) == (1000, True)
    assert beside.act(purge_operation_events, DAY) == 1500


def test_a_purge_skips_what_is_being_claimed(beside: Inbox) -> None:
    made, request = beside.make("released")
    beside.shift(made, "changed_at", YEAR)
    with psycopg.connect(beside.url) as claiming:
        claiming.execute("SELECT 1 FROM semel.operations WHERE id = %s FOR NO KEY UPDATE", (made,))
        assert beside.run(purge_released(keep=DAY)) == 0
    assert beside.run(begin_known(beside.again(request))).reply is Reply.ACT


def test_a_purge_that_comes_first_makes_the_claim_a_new_one(beside: Inbox) -> None:
    made, request = beside.make("released")
    beside.shift(made, "changed_at", YEAR)
    answers = []
    with psycopg.connect(beside.url) as purging:
        purging.execute("DELETE FROM semel.operations WHERE id = %s", (made,))
        claiming = threading.Thread(
            target=lambda: answers.append(beside.run(begin_known(beside.again(request))))
        )
        claiming.start()
        threading.Event().wait(0.1)
        purging.commit()
        claiming.join()
    assert answers == [Again()]
    assert beside.run(begin_new(beside.again(request))) is not None


def patiently(inbox: Inbox, operation: Operation[Any]) -> Any:
    """Run it; again where the whole file (SQLite) or the row was locked for too long, or a deadlock chose it."""
    while True:
        with suppress(LockBusy, RetryTransaction):
            return inbox.run(operation)


def test_purges_and_claims_race_without_errors(inbox: Inbox) -> None:
    made = [inbox.make("released") for _ in range(30)]
    for one, _ in made:
        inbox.shift(one, "changed_at", YEAR)
    acted: list[bool] = []

    def claim() -> None:
        for _, request in made:
            mine = inbox.again(request)
            begun = patiently(inbox, begin_known(mine))
            if isinstance(begun, Again):
                begun = patiently(inbox, begin_new(mine))
            acted.append(begun is not None and begun.reply is Reply.ACT)

    claiming = threading.Thread(target=claim)
    claiming.start()
    while claiming.is_alive():
        patiently(inbox, purge_released(keep=DAY))
    claiming.join()
    assert acted == [True] * 30
    assert {one.state for one in inbox.run(list_operations(OperationFilter())).operations} == {State.CLAIMED}


def test_what_waits_is_counted_by_type(inbox: Inbox) -> None:
    for state in STATES:
        inbox.make(state)
    inbox.make("completed", job_type="quiet")
    inbox.make("held", job_type="mail")
    charge, mail = inbox.run(count_waiting())
    assert (charge.job_type, charge.held, charge.stale, charge.released) == ("charge", 1, 1, 1)
    assert timedelta(seconds=699) < charge.longest < timedelta(seconds=800)
    assert (mail.job_type, mail.held, mail.stale, mail.released) == ("mail", 1, 0, 0)


def test_filters_and_pages(inbox: Inbox) -> None:
    ids = {state: inbox.make(state, scope="eu")[0] for state in STATES}
    other, request = inbox.make("held", scope="us", job_type="mail")

    def found(limit: int = 50, before_id: int | None = None, **wanted: object) -> list[int]:
        page = inbox.run(list_operations(OperationFilter(**wanted), limit=limit, before_id=before_id))  # type: ignore[arg-type]
        return [one.id for one in page.operations]

    assert found() == sorted([*ids.values(), other], reverse=True)
    assert found(states=frozenset({State.HELD})) == [other, ids["held"]]
    assert (
        found(scope="us")
        == found(job_type="mail")
        == found(key=request.key)
        == found(label=request.label)
        == [other]
    )
    idle = timedelta(minutes=10)
    assert found(idle=idle) == sorted([ids["stale"], ids["unclaimed"]], reverse=True)
    assert found(changed_before=idle) == [ids["unclaimed"]]
    assert ids["unclaimed"] not in found(changed_after=idle)
    page = inbox.run(list_operations(OperationFilter(), limit=3))
    assert page.next_before_id == page.operations[-1].id
    assert found(before_id=page.next_before_id) == found()[3:]
    assert inbox.run(list_operations(OperationFilter(), limit=7)).next_before_id is None
    with pytest.raises(ConfigurationError, match="64 hexadecimal"):
        OperationFilter(key="xyz")
