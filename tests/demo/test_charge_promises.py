"""The second act's own judgement: what each policy promises is written beforehand, and a broken promise is named."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import semel
from semel.cli.demonstration.charges.conductor import Conductor
from semel.cli.demonstration.charges.figures import (
    ChargeFigures,
    DecisionFigures,
    MethodFigures,
    OrderFigures,
    count_method,
)
from semel.cli.demonstration.charges.promises import broken_charge_promises
from semel.cli.demonstration.charges.script import FATES, HOW_MANY, Fate, Method, foretell_all, make_methods
from semel.cli.demonstration.charges.shop import load_shop
from semel.core.states import Status

POLICIES = SimpleNamespace(
    WITH_KEY=semel.ProviderKey(valid_for="1 h"),
    WITH_LOOKUP=semel.Lookup(find=lambda reference, order_id: semel.NOT_DONE, settle="1 s"),
    OR_HOLD=semel.Hold(),
    PERHAPS_TWICE=semel.AcceptDuplicate(extra=1),
    PERHAPS_NEVER=semel.AcceptMiss(),
)
METHODS = make_methods(POLICIES)


def as_foretold(method: Method) -> MethodFigures:
    """A run of a method in which all came as it was foretold."""
    numbers = range(1, len(FATES) + 1)
    foretold = foretell_all(method)
    ends = {True: ("held", None), False: ("completed", "acted")}
    records: dict[int, Any] = {}
    if method.effect is not None:
        for number, expected in zip(numbers, foretold, strict=True):
            state, outcome = ends[expected.held]
            records[number] = SimpleNamespace(state=state, outcome=outcome, effect=method.effect.name)
    jobs: dict[int, Any] = {number: SimpleNamespace(status=Status.DONE) for number in numbers}
    charges = {number: expected.charges for number, expected in zip(numbers, foretold, strict=True)}
    return count_method(method, numbers, charges, records, jobs)


DECISION = DecisionFigures(
    act="done",
    command="semel held done 1",
    order=1,
    operation=1,
    charges_before=1,
    charges_after=1,
    state="completed",
    outcome="by_person",
    job_status="done",
)
GOOD = ChargeFigures(
    seconds=20.0,
    postgresql="18",
    speed=25,
    lease_seconds=2.4,
    orders_of_each_method=len(FATES),
    fates={fate.value: number for fate, number in HOW_MANY.items()},
    killed_processes=4,
    at_kill={fate.value: number * len(METHODS) for fate, number in HOW_MANY.items() if fate.killed},
    answers_lost=12,
    worker_exit_codes=[0],
    methods=[as_foretold(method) for method in METHODS],
    decisions=[DECISION, replace(DECISION, act="redo")],
)


def with_order(name: str, fate: Fate, **changes: Any) -> ChargeFigures:
    """One order of a method went another way."""
    methods = []
    for method in GOOD.methods:
        listed: list[OrderFigures] = list(method.order_list)
        if method.method == name:
            place = next(place for place, each in enumerate(listed) if each.fate == fate.value)
            listed[place] = replace(listed[place], **changes)
        methods.append(replace(method, order_list=listed))
    return replace(GOOD, methods=methods)


def test_a_run_as_foretold_breaks_nothing() -> None:
    assert broken_charge_promises(GOOD, METHODS) == []


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (
            with_order("ProviderKey", Fate.KILLED_CHARGED, charges=2),
            "ProviderKey promised never more than 1 charge of an order",
        ),
        (
            with_order("Lookup", Fate.KILLED_CALLING, charges=0),
            "Lookup promised that a completed order has exactly 1 of a charge",
        ),
        (with_order("Hold", Fate.LOST, charges=2), "Hold promised never more than 1 charge of an order"),
        (
            with_order("AcceptDuplicate", Fate.LOST, charges=3),
            "AcceptDuplicate promised never more than 2 charges of an order",
        ),
        (
            with_order("AcceptDuplicate", Fate.LOST, charges=0),
            "AcceptDuplicate promised that a completed order has 1 or more",
        ),
        (with_order("AcceptMiss", Fate.LOST, charges=2), "AcceptMiss promised never more than 1 charge"),
        (
            with_order("Hold", Fate.LOST, state="completed"),
            "was foretold to be held with 1 charge; it is completed with 1 charge",
        ),
        (with_order("Hold", Fate.WELL, state="claimed"), "must end or be held; it is claimed"),
        (with_order("Hold", Fate.WELL, effect="accept_miss"), "names the effect accept_miss, not hold"),
        (replace(GOOD, answers_lost=0), "it lost none"),
        (replace(GOOD, worker_exit_codes=[-9]), "exit code 0; it was -9"),
        (replace(GOOD, at_kill={}), "killed after the claim, before the call: 0 were"),
        (replace(GOOD, decisions=[DECISION]), "A person must decide about two held orders"),
        (
            replace(GOOD, decisions=[DECISION, replace(DECISION, act="redo", charges_after=2)]),
            "must be completed with 1 charge: it is completed with 2 charges",
        ),
    ],
)
def test_a_broken_promise_is_named(figures: ChargeFigures, said: str) -> None:
    assert any(said in sentence for sentence in broken_charge_promises(figures, METHODS))


def test_a_run_without_double_charges_shows_nothing() -> None:
    unguarded = replace(GOOD.methods[0], charged_more_than_once=0)
    (sentence,) = broken_charge_promises(replace(GOOD, methods=[unguarded, *GOOD.methods[1:]]), METHODS)
    assert "Without the guard some orders must be charged twice" in sentence


def test_what_is_foretold_is_within_what_is_promised() -> None:
    for method in METHODS[1:]:
        least, most = method.completed_bounds
        for each in foretell_all(method):
            assert method.most is not None
            assert each.charges <= method.most
            if not each.held:
                assert least <= each.charges
                assert most is None or each.charges <= most


def test_the_jobs_of_the_shop_declare_what_is_promised(database_url: str) -> None:
    shop = load_shop(database_url)
    assert [method.kind for method in make_methods(shop.policies)] == list(shop.jobs.app.jobs)
    shop.jobs.app.close()


@pytest.fixture
def conductor() -> Conductor:
    points = SimpleNamespace(CHECKED="checked", RECEIVED="received", CHARGED="charged")
    made = Conductor(points)
    made.expect(
        {"well": Fate.WELL, "killed": Fate.KILLED_CHARGED, "lost": Fate.LOST, "twice": Fate.LOST_TWICE}
    )
    return made


def test_answers_are_lost_as_often_as_foretold(conductor: Conductor) -> None:
    points = ("checked", "received", "charged")
    assert [conductor(point, "well") for point in points] == [True, True, True]
    assert [conductor(point, "lost") for point in points] == [True, True, False]
    assert [conductor("charged", "lost"), conductor("charged", "unknown")] == [True, True]
    assert [conductor("charged", "twice") for _ in range(3)] == [False, False, True]
    assert conductor.lost == 3


def test_an_answer_is_held_until_the_worker_is_dead(conductor: Conductor) -> None:
    answers: list[bool] = []
    assert conductor("received", "killed")
    caller = threading.Thread(target=lambda: answers.append(conductor("charged", "killed")))
    caller.start()
    while not conductor.waiting:
        caller.join(0.01)
    assert conductor.waiting == Counter({Fate.KILLED_CHARGED: 1})
    assert answers == []
    conductor.let_go()
    caller.join(10)
    assert answers == [False]
    assert conductor("charged", "killed"), "the next one gets its answer"
