"""Connections that end between a commit and its answer, or before the commit, at every statement: mine is mine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.guard_crash.actors import (
    EFFECTS,
    Answer,
    Delivery,
    Step,
    deliver_to_end,
    make_watch,
    pools_of,
    steps_of,
    watch_all,
)
from tests.guard_crash.test_every_statement import prepare, ways
from tests.guard_crash.world import World

import semel

ROWS_OWN = {"Boom", "acted", "repeat", "Held", "DatabaseUnreachable"}


def cut_at(once: semel.Once, step: Step) -> list[str]:
    """Close the guard's connection at one point; what came of it."""
    turns: Counter[tuple[str, str]] = Counter()
    cut: list[str] = []

    def watched(taken: Callable[[Any], Any], lane: Any) -> Any:
        session = taken(lane)

        def watch(moment: str, name: str) -> None:
            turns[moment, name] += 1
            if (moment, name, turns[moment, name]) == step:
                cut.append(name)
                session.close()
                raise semel.DatabaseUnreachable("The connection ended.")

        session.watch = watch
        return session

    for own in pools_of(once):
        own._take = partial(watched, own._take)  # type: ignore[method-assign]
    return cut


def passed_by(world: World, delivery: Delivery) -> list[Step]:
    """The points of one run in this process."""
    seen: list[tuple[str, str]] = []
    once = semel.Once(world.target)
    watch_all(once, make_watch(seen, None))
    deliver_to_end(once, delivery)
    once.close()
    return [step for step in steps_of(seen) if step.name not in ("guard/read_only", "guard/renew")]


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_lost_answer_changes_nothing(world: World, effect: str) -> None:
    def run(case: tuple[object, Step]) -> str | None:
        way, step = case
        delivery = replace(prepare(world, way, step), lease=5.0, dies_at=None)  # type: ignore[arg-type]
        before = world.effects(delivery)
        once = semel.Once(world.target)
        cut = cut_at(once, step)
        answer = deliver_to_end(once, delivery)
        once.close()
        again = deliver_to_end(world.once, replace(delivery, raises=None))
        return check(world, delivery, before, answer, again.kind, cut)

    kinds = [way for way in ways(effect) if way.before != "unsure_behind_the_effect"]
    cases = []
    for way in kinds:
        steps = passed_by(
            world, replace(prepare(world, way, Step("normal", "run", 0)), lease=5.0, dies_at=None)
        )
        cases += [(way, step) for step in steps]
    faults = {case: fault for case, fault in zip(cases, world.at_once(run, cases), strict=True) if fault}
    print(f"{world.dialect}, {effect}: {len(cases)} lost answers")
    assert len(cases) > 10
    assert not faults


def check(
    world: World, delivery: Delivery, before: int, said: Answer, again: str, cut: list[str]
) -> str | None:
    """What is wrong; None where the answer is as if nothing had been lost."""
    effects = world.effects(delivery) - before
    answer = said.kind
    told = f"{said}, then {again}; {effects} effects, {world.state(delivery)}, cut at {cut}"
    if not cut:
        return told
    if delivery.effect == "row":  # all of it is one transaction, which is gone with its connection
        return None if effects == 1 and again in ("acted", "repeat") and answer in ROWS_OWN else told
    if delivery.raises is None:
        acts = {"hold": "Held", "accept_miss": "repeat"} if "unsure" in delivery.name else {}
        wanted = acts.get(delivery.effect, "acted")
        expected = 1 if wanted == "acted" else 0
        return None if answer == wanted and effects == expected else told
    return None if answer == "Boom" and effects <= 2 else told
