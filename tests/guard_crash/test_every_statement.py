"""SIGKILL before, after and past the commit of every statement of every way through the guard.

A first run of each way, in which nobody is killed, lists the statements; so a new one is covered by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest
from tests.guard_crash.actors import (
    EFFECTS,
    Answer,
    Delivery,
    Step,
    deliver_to_end,
    run_alone,
    steps_of,
)
from tests.guard_crash.test_points import EXACTLY_ONE_ONCE_COMPLETED, NEVER_MORE_THAN
from tests.guard_crash.world import World, numbers

# What the run that is killed meets: nothing yet; an attempt that ended without knowing, before or behind its effect.
BEFORE = {"new": None, "unsure_before_the_effect": "inside", "unsure_behind_the_effect": "effect"}
ENDS = {
    "well": None,
    "with_an_exception_before_acting": "claimed",
    "with_an_exception_after_the_effect": "effect",
}
TRIES = 20
MUST_PASS = {
    "row": {"guard/insert_row", "guard/complete_row", "guard_complete_row"},
    "provider_key": {"guard/take_over", "guard/uncertain", "guard/release"},
    "lookup": {"guard/take_over_to_look", "guard/complete_late", "guard/act", "guard/event", "guard_looked"},
    "hold": {
        "guard/insert",
        "guard/act",
        "guard/complete",
        "guard/hold",
        "guard/uncertain",
        "guard_complete",
    },
    "accept_duplicate": {"guard/take_over"},
    "accept_miss": {"guard/miss", "guard_begin_known"},
}


class Way(NamedTuple):
    """One way through the guard."""

    effect: str
    before: str
    end: str

    def name(self, step: Step) -> str:
        return "-".join(map(str, (*self, *step, next(numbers))))


def ways(effect: str) -> list[Way]:
    """New ones that end in each manner; stale ones that end well."""
    fresh = [Way(effect, "new", end) for end in ENDS]
    return fresh if effect == "row" else fresh + [Way(effect, before, "well") for before in list(BEFORE)[1:]]


def prepare(world: World, way: Way, step: Step) -> Delivery:
    delivery = world.delivery(way.effect, way.name(step), raises=BEFORE[way.before])
    if delivery.raises is not None:
        assert deliver_to_end(world.once, delivery).kind == "Boom"
    return replace(delivery, raises=ENDS[way.end], dies_at=step)


def record_steps(world: World, way: Way) -> list[tuple[Way, Step]]:
    """What a run passes that is in time: its lease is a long one."""
    answer, seen = run_alone(replace(prepare(world, way, Step("normal", "run")), lease=60.0))
    assert answer is not None
    return [(way, step) for step in steps_of(seen) if step.name != "guard/read_only"]


def kill(world: World, case: tuple[Way, Step]) -> Delivery:
    """A message whose process was killed there; where one was so slow that it went another way, another message."""
    way, step = case
    for _ in range(TRIES):
        delivery = prepare(world, way, step)
        answer, _ = run_alone(delivery)
        if answer is None:
            return replace(delivery, raises=None, dies_at=None)
    raise AssertionError(f"it was not killed: {answer}, {delivery}")


@pytest.mark.parametrize("effect", EFFECTS)
def test_3_a_kill_at_every_statement_keeps_the_promise(world: World, effect: str) -> None:
    def run(case: tuple[Way, Step]) -> str | None:
        later = kill(world, case)
        deliver_to_end(world.once, later)
        last = deliver_to_end(world.once, later)
        return wrong(world.effects(later), world.state(later), last, later)

    recorded = world.at_once(lambda way: record_steps(world, way), ways(effect))
    cases = [case for cases in recorded for case in cases]
    passed = {step.name for _, step in cases}
    assert passed >= MUST_PASS[effect], passed
    if effect != "row":
        assert {step.moment for _, step in cases} == {"before", "after", "committed"}
    faults = {case: fault for case, fault in zip(cases, world.at_once(run, cases), strict=True) if fault}
    print(f"{world.dialect}, {effect}: {len(cases)} kills at {len(passed)} statements and commits")
    assert not faults


def wrong(effects: int, state: str, last: Answer, delivery: Delivery) -> str | None:
    """What breaks the promise; None where all is well."""
    told = f"{effects} effects, {state}, {last}"
    if effects > NEVER_MORE_THAN[delivery.effect]:
        return told
    if state == "held":
        return None if last.kind == "Held" and delivery.effect != "row" else told
    if not state.startswith("completed") or last.kind != "repeat":
        return told
    if delivery.effect in EXACTLY_ONE_ONCE_COMPLETED:
        return None if effects == 1 else told
    return None if effects >= 1 or state == "completed missed" else told


def test_the_promise_is_checked_in_every_way() -> None:
    """The check itself: each kind of broken promise is told."""
    delivery = Delivery(target="", receiver=0, effect="hold", name="x")
    repeat, held = Answer("repeat"), Answer("Held")
    assert wrong(1, "completed acted", repeat, delivery) is None
    assert wrong(0, "held", held, delivery) is None
    broken: list[Callable[[], str | None]] = [
        lambda: wrong(2, "completed acted", repeat, delivery),
        lambda: wrong(2, "held", held, delivery),
        lambda: wrong(0, "completed acted", repeat, delivery),
        lambda: wrong(1, "claimed", Answer("InProgress"), delivery),
        lambda: wrong(0, "completed acted", repeat, replace(delivery, effect="accept_miss")),
        lambda: wrong(0, "completed acted", repeat, replace(delivery, effect="accept_duplicate")),
        lambda: wrong(0, "held", held, replace(delivery, effect="row")),
    ]
    assert all(check() for check in broken)
