"""How long a repeat is known."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.guard_cases.conftest import Case

from semel import Held, InProgress, TooOld
from semel.store.guard_upkeep import purge_completed, purge_released
from semel.store.own_connections import open_own
from semel.store.run import run

DAY = 24 * 3600


def purge(case: Case) -> None:
    own = open_own(case.target)
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


def test_c68_an_operation_that_knows_its_date_can_refuse_to_act_too_late(case: Case) -> None:
    oldest: list[Callable[[], Any]] = []
    charge = case.charge()

    def too_old() -> None:
        raise TooOld("The order is from before what is remembered.")

    oldest.append(too_old)
    case.hooks["claimed"] = too_old
    with pytest.raises(TooOld):
        charge(1)
    assert (case.state, case.effects) == ("released", [])
