"""From what was expected and what was seen to a verdict."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.replay.judging import judge
from semel.replay.results import RETURNED, Evidence, Expected, Record, Verdict

WANTED = Expected(check="killed-on-return-child", least=1, most=1, records=("held",))


def seen(**changes: Any) -> Evidence:
    """Of a check that holds."""
    good: dict[str, Any] = {
        "begins": 2,
        "ends": 1,
        "entries": 1,
        "returns": 1,
        "effects": [1],
        "processes": 2,
        "killed_at": ["return (child)"],
        "exits": [-9],
        "records": [Record(count=1, state="held")],
        "control": 2,
    }
    return Evidence(**{**good, **changes})


VACUOUS = {
    "it was not done to its end: the worker is gone": {"unfinished": "the worker is gone"},
    "eager": {"eager": True},
    "never hit": {"entries": 0, "effects": [0]},
    "is also held, unwrapped, by shop.charge": {"escaped": ["shop.charge"]},
    "no second delivery": {"begins": 1},
    "7 of 8 rounds overlapped": {"overlapping": 7},
    "in one process": {"overlapping": 8, "processes": 1},
    "nothing was killed": {"killed_at": []},
    "ended by 1, not by the kill": {"exits": [1]},
    "there is no control": {"control": None},
    "did not repeat either": {"control": 1},
}
FAILS = {
    "more than 1 effects (the most: 2)": {"effects": [2]},
    "fewer than 1 effects": {"effects": [0]},
    "ended as completed acted, not as held": {"records": [Record(count=1, state="completed acted")]},
    "more than one record": {"records": [Record(count=2, state="held")]},
    "while an attempt was inside the effect, its record was held": {"midway": "held"},
    "the delivery ended as returned, not as ClaimLost": {"answer": RETURNED},
}


def wanted(**changes: Any) -> Expected:
    changed: Expected = msgspec.structs.replace(
        WANTED, midway="claimed", answer="ClaimLost", rounds=8, **changes
    )
    return changed


def test_what_came_as_expected_holds() -> None:
    assert judge(wanted(), seen(midway="claimed", answer="ClaimLost")) == (Verdict.HOLDS, ())


def test_what_nobody_could_look_at_is_not_held_against_it() -> None:
    assert judge(wanted(), seen(midway=None, answer=None)) == (Verdict.HOLDS, ())


@pytest.mark.parametrize("reason", VACUOUS)
def test_each_reason_makes_it_vacuous(reason: str) -> None:
    verdict, reasons = judge(wanted(), seen(**VACUOUS[reason]))

    assert verdict is Verdict.VACUOUS
    assert any(reason in each for each in reasons), reasons


@pytest.mark.parametrize("reason", FAILS)
def test_each_mismatch_makes_it_fail(reason: str) -> None:
    verdict, reasons = judge(wanted(), seen(**FAILS[reason]))

    assert verdict is Verdict.FAILS
    assert any(reason in each for each in reasons), reasons


@pytest.mark.parametrize("reason", VACUOUS)
def test_a_second_effect_is_one_however_it_was_looked_at(reason: str) -> None:
    changes = {**VACUOUS[reason], "effects": [2]}

    assert judge(wanted(), seen(**changes))[0] is Verdict.FAILS


def test_a_job_that_caught_the_exception_has_the_record_of_one_that_returned() -> None:
    raised = msgspec.structs.replace(WANTED, check="exception-after-effect")
    acted = [Record(count=1, state="completed acted")]
    assert judge(raised, seen(records=acted, answer=RETURNED))[0] is Verdict.HOLDS
    assert judge(raised, seen(records=acted, answer="Fault"))[0] is Verdict.FAILS
    assert judge(raised, seen(records=acted, answer=RETURNED, effects=[2]))[0] is Verdict.FAILS
    twice = [Record(count=2, state="completed acted")]
    assert judge(raised, seen(records=twice, answer=RETURNED))[0] is Verdict.FAILS


@pytest.mark.parametrize("changes", [{"unfinished": "it hangs"}, {"entries": 0, "effects": [0]}])
@pytest.mark.parametrize("reason", list(FAILS)[1:])
def test_what_was_not_done_does_not_fail_for_what_it_left(reason: str, changes: dict[str, Any]) -> None:
    """A check that broke off, or whose call nobody saw, shows nothing: it has no claim to an end."""
    assert judge(wanted(), seen(**{**FAILS[reason], **changes}))[0] is Verdict.VACUOUS


def test_a_reason_for_having_no_control_is_enough() -> None:
    assert judge(wanted(), seen(control=None, control_refused="it has no guard"))[0] is Verdict.HOLDS


def test_the_control_has_to_come_to_what_is_expected_of_it() -> None:
    assert judge(wanted(control=1), seen(control=1))[0] is Verdict.HOLDS
    assert judge(wanted(control=1), seen(control=0))[0] is Verdict.VACUOUS


def test_killed_before_the_call_nobody_hits_it_where_the_policy_leaves_it_undone() -> None:
    undone = Expected(check="killed-past-claim", least=0, most=0, records=("held",), control=1)

    assert judge(undone, seen(entries=0, effects=[0], killed_at=["claimed (child)"]))[0] is Verdict.HOLDS
    assert judge(undone, seen(entries=0, effects=[0], killed_at=[]))[0] is Verdict.VACUOUS


def test_two_that_look_alike_need_no_second_delivery_and_no_control() -> None:
    alike = seen(effects=[1, 1], begins=2, control=None, records=[])

    assert judge(Expected(check="look-alikes", least=1, most=1), alike)[0] is Verdict.HOLDS


def test_no_effect_needs_a_record_that_says_why() -> None:
    nothing = Expected(check="killed-on-entry-child", least=0, most=0, records=("held",))

    assert judge(nothing, seen(effects=[0], records=[]))[0] is Verdict.VACUOUS
    assert judge(nothing, seen(effects=[0]))[0] is Verdict.HOLDS


def test_no_effect_where_no_record_can_be_read_needs_a_kill_and_a_policy_that_leaves_it_undone() -> None:
    nothing = Expected(check="killed-on-entry-child", least=0, most=0)
    perhaps = msgspec.structs.replace(nothing, most=1)

    assert judge(nothing, seen(effects=[0], records=[]))[0] is Verdict.HOLDS
    assert judge(nothing, seen(effects=[0], records=[], killed_at=[]))[0] is Verdict.VACUOUS
    assert judge(nothing, seen(effects=[0], records=[], control=1))[0] is Verdict.VACUOUS
    assert judge(perhaps, seen(effects=[0], records=[]))[0] is Verdict.VACUOUS


@given(
    st.lists(st.sampled_from(sorted(VACUOUS)), min_size=1, unique=True),
    st.lists(st.sampled_from(sorted(FAILS)), unique=True),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
)
def test_nothing_holds_where_it_shows_nothing(
    empty: list[str], failed: list[str], effects: list[int]
) -> None:
    changes: dict[str, Any] = {"effects": effects}
    for name in failed:
        changes |= FAILS[name]
    for name in empty:
        changes |= VACUOUS[name]

    verdict, reasons = judge(wanted(), seen(**changes))

    assert verdict in (Verdict.VACUOUS, Verdict.FAILS)
    assert reasons
