"""How long a repeat is known."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from tests.guard_cases.conftest import Case

import semel
from semel import Held, InProgress, KeyRefused, TooOld
from semel.store.guard_upkeep import purge_completed, purge_released
from semel.store.own_connections import open_own
from semel.store.run import Watch, run

DAY = 24 * 3600


def purge(case: Case, *, watch: Watch | None = None) -> None:
    own = open_own(case.target, watch=watch)
    with own.session() as session:
        for make in (purge_completed, purge_released):
            while run(make(keep=timedelta(days=7)), session) == 1000:
                pass
    own.close()


def test_c24_a_purge_leaves_what_is_claimed_stale_or_held(case: Case) -> None:
    charge = case.charge()

    def now_and_then() -> None:
        purge(case)
        with pytest.raises(InProgress):
            charge(1)
        case.later(30 * DAY)
        purge(case)
        assert case.state == "claimed"
        with pytest.raises(Held):
            charge(1)
        case.later(30 * DAY)
        purge(case)
        assert case.state == "held"

    case.hooks["acting"] = now_and_then
    charge(1)
    assert len(case.effects) == 1


def test_c37_a_purge_that_is_killed_half_way_leaves_nothing_behind(case: Case) -> None:
    """It has no claim of its own that the next one would have to wait for, and nothing of it makes a stale claim another."""
    charge = case.charge()
    charge("done")
    case.dies("acting", lambda: charge("stale"))
    case.later(8 * DAY)
    for moment in ("before", "after"):
        case.dies(moment, lambda: purge(case, watch=lambda at, _: case.at(at)))
    purge(case)
    assert case.state == "claimed"
    with pytest.raises(Held):
        charge("stale")


def test_c34_a_completed_operation_is_known_however_quick_it_was(case: Case) -> None:
    charge = case.charge()
    charge("slot 12:00")
    case.later(3600)
    purge(case)
    assert charge("slot 12:00") == "charge of slot 12:00"
    assert len(case.effects) == 1


def test_c27_after_its_retention_a_repeat_acts_again(case: Case) -> None:
    """The limit of the promise, and why retention must be longer than the longest redelivery."""
    charge = case.charge()
    charge(1)
    case.later(6 * DAY)
    purge(case)
    charge(1)
    assert len(case.effects) == 1
    case.later(2 * DAY)
    purge(case)
    charge(1)
    assert len(case.effects) == 2


def test_c68_an_operation_older_than_the_records_is_not_acted_on(case: Case) -> None:
    @case.once.operation(case.job, key="order", dated="ordered", keep="7 days", payload=(), acting="explicit")
    def charge(op: semel.Operation, order: int, ordered: date) -> str:
        with op.acting():
            case.effect(op.reference)
        return op.done(f"charge of {order}")

    today = datetime.now(UTC).date()
    charge(1, ordered=today)
    assert charge(1, ordered=today - timedelta(days=10)) == "charge of 1", "its record is still there"
    case.later(8 * DAY)
    purge(case)
    with pytest.raises(TooOld):
        charge(1, ordered=today - timedelta(days=10))
    assert (case.records(), len(case.effects)) == (0, 1)


@pytest.mark.parametrize("ordered", [None, "2030-01-01", 7], ids=repr)
def test_c68_what_is_no_date_is_refused(case: Case, ordered: Any) -> None:
    @case.once.operation(case.job, key="order", dated="ordered", payload=())
    def charge(op: semel.Operation, order: int, ordered: Any) -> None:
        case.effect(op.reference)

    with pytest.raises(KeyRefused, match="The date of"):
        charge(1, ordered=ordered)
    assert (case.records(), case.effects) == (0, [])
