"""What each check must come to, by policy: there is an expectation for each pair, and none promises what no guard can."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from semel.replay.checks import checks_for
from semel.replay.description import CalledFunction, Description, GuardPlace, Watch
from semel.replay.expectations import POLICIES, Policy, expected
from semel.replay.results import Expected
from semel.replay.scenarios import SCENARIOS

RECORDED = [name for name in POLICIES if name != "once"]
ENDS = {"completed acted", "completed found", "completed missed", "held"}
CHECKS = sorted(SCENARIOS)


def policy(name: str, **changes: Any) -> Policy:
    given: dict[str, Any] = {"recorded": name != "once", "extra": 1 if name == "accept_duplicate" else 0}
    return Policy(name, f"the policy {name}", **{**given, **changes})


def of(check: str, name: str, **changes: Any) -> Expected:
    return expected(check, policy(name, **changes))


@pytest.mark.parametrize(
    ("check", "name", "explicit"), list(itertools.product(CHECKS, POLICIES, (False, True))), ids=str
)
def test_every_check_has_an_expectation_under_every_policy(check: str, name: str, explicit: bool) -> None:
    wanted = of(check, name, explicit=explicit)

    assert 0 <= wanted.least <= wanted.most
    assert wanted.most <= {"accept_duplicate": 2, "lookup": 2}.get(name, 1)
    assert wanted.because == f"the policy {name}"
    assert set(wanted.records) <= ENDS
    assert bool(wanted.records) == (name != "once"), "records are looked at where they are semel's"
    if name == "once":
        assert not wanted.midway
        assert not wanted.answer


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    "check", ["three-deliveries", "two-at-once", "look-alikes", "killed-past-completion"]
)
def test_where_nobody_died_in_doubt_it_is_one_effect(check: str, name: str) -> None:
    wanted = of(check, name)

    assert (wanted.least, wanted.most) == (1, 1)
    assert wanted.records in ((), ("completed acted",))


@pytest.mark.parametrize(
    ("name", "entry", "back"),
    [
        ("row", (1, 1, "completed acted"), (1, 1, "completed acted")),
        ("provider_key", (1, 1, "completed acted"), (1, 1, "completed acted")),
        ("lookup", (1, 1, "completed acted"), (1, 1, "completed found")),
        ("hold", (0, 0, "held"), (1, 1, "held")),
        ("accept_duplicate", (1, 1, "completed acted"), (1, 2, "completed acted")),
        ("accept_miss", (0, 0, "completed missed"), (1, 1, "completed missed")),
    ],
)
def test_a_death_in_doubt_ends_as_the_policy_says(
    name: str, entry: tuple[int, int, str], back: tuple[int, int, str]
) -> None:
    for checks, end in (
        (("killed-on-entry", "old-claim"), entry),
        (("killed-on-return", "exception-after-effect"), back),
    ):
        for check in checks:
            wanted = of(check, name)
            assert (wanted.least, wanted.most, *wanted.records) == end


@pytest.mark.parametrize("name", RECORDED)
def test_a_death_before_the_point_of_no_return_leaves_no_doubt(name: str) -> None:
    wanted = of("killed-past-claim", name, explicit=True)

    assert (wanted.least, wanted.most, wanted.records) == (1, 1, ("completed acted",))


@pytest.mark.parametrize("name", [name for name in RECORDED if name != "row"])
def test_who_sleeps_before_the_point_of_no_return_is_told_that_it_lost(name: str) -> None:
    wanted = of("paused-past-lease", name, explicit=True)

    assert (wanted.least, wanted.most, wanted.answer) == (1, 1, "ClaimLost")


@pytest.mark.parametrize(
    ("name", "most"), [("lookup", 2), ("hold", 1), ("accept_duplicate", 2), ("accept_miss", 1)]
)
def test_who_sleeps_past_it_cannot_be_stopped_by_a_record(name: str, most: int) -> None:
    assert of("paused-past-lease", name).most == most


@pytest.mark.parametrize("name", [name for name in RECORDED if name != "row"])
def test_a_claim_that_is_alive_stays_claimed(name: str) -> None:
    assert of("young-claim", name).midway == "claimed"


@pytest.mark.parametrize("name", POLICIES)
def test_killed_before_the_effect_the_control_acts_once(name: str) -> None:
    for check in ("killed-on-entry", "killed-past-claim", "old-claim"):
        assert of(check, name).control == 1
    assert of("three-deliveries", name).control == 2


def test_a_row_of_a_dead_transaction_is_gone_without_the_guard_as_well() -> None:
    assert of("killed-on-return", "row").control == of("exception-after-effect", "row").control == 1
    assert of("killed-on-return", "hold").control == of("killed-past-completion", "row").control == 2


def test_nobody_sees_a_row_before_it_is_committed() -> None:
    assert of("young-claim", "row").midway == ""


def test_rounds_are_those_that_were_asked_for() -> None:
    assert expected("two-at-once", policy("hold"), rounds=100).rounds == 100


@pytest.mark.parametrize("name", POLICIES)
def test_each_check_has_a_scenario_and_what_is_skipped_says_why(name: str) -> None:
    description = Description(
        name="charge",
        deliver=CalledFunction(function="shop:charge"),
        watch=Watch(call="shop.charge"),
        message={"n": "{n}"},
        guard=GuardPlace(),
    )

    checks = checks_for(description, policy(name), ("child", "parent", "group"))

    assert {check.scenario for check in checks} == set(SCENARIOS)
    assert len({check.name for check in checks}) == len(checks)
    assert all(check.skipped is None or check.skipped.strip() for check in checks)
