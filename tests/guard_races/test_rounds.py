"""Two and eight processes at once, 100 rounds that truly overlap; ``SEMEL_TEST_ROUNDS`` for another number."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.guard_crash.actors import Delivery
from tests.guard_crash.world import World
from tests.guard_races.rounds import DWELL, Rival, Turn, overlap, play

ROUNDS = int(os.environ.get("SEMEL_TEST_ROUNDS", "100"))
DEFINED = {"acted", "repeat", "InProgress", "Busy"}


@contextmanager
def rivals(delivery: Delivery, count: int, *, guarded: bool = True) -> Iterator[list[Rival]]:
    made = [Rival(delivery, guarded=guarded) for _ in range(count)]
    try:
        yield made
    finally:
        for rival in made:
            rival.close()


def overlapping(found: list[Rival], prefix: str, rounds: int) -> dict[str, list[Turn]]:
    """So many rounds that overlap, of at most four times as many."""
    counted: dict[str, list[Turn]] = {}
    for number in range(4 * rounds):
        name = f"{prefix}-{number}"
        turns = play(found, name)
        if overlap(turns):
            counted[name] = turns
        if len(counted) == rounds:
            return counted
    raise AssertionError(f"vacuous: only {len(counted)} of {4 * rounds} rounds overlapped")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("effect", ["hold", "row"])
def test_2_rivals_at_once_have_one_effect(world: World, effect: str, count: int) -> None:
    delivery = world.delivery(effect, "-", dwell=DWELL, lease=60.0)
    with rivals(delivery, count) as found:
        rounds = overlapping(found, f"{effect}-{count}", ROUNDS)
    answers: Counter[str] = Counter()
    for name, turns in rounds.items():
        mine = world.delivery(effect, name)
        kinds = [turn.answers[-1] for turn in turns]
        assert sorted(kinds) == ["acted"] + ["repeat"] * (count - 1), (name, turns)
        assert len({turn.value for turn in turns}) == 1
        assert world.effects(mine) == 1, (name, turns)
        answers.update(kind for turn in turns for kind in turn.answers)
    assert set(answers) <= DEFINED
    if (
        effect == "hold" or world.dialect == "postgresql"
    ):  # the others wait a moment for a rival's transaction
        assert answers["InProgress"] + answers["Busy"] > 0
    spread = max(max(t.began for t in turns) - min(t.began for t in turns) for turns in rounds.values())
    strict = sum(max(t.began for t in ts) < min(t.answered for t in ts) for ts in rounds.values())
    print(f"{world.dialect}, {effect}, {count} at once: {len(rounds)} overlapping rounds, {strict} of them")
    print(f"before any first answer; began within {spread * 1000:.1f} ms; {dict(answers)}")


@pytest.mark.parametrize("count", [2, 8])
def test_2_without_the_guard_it_repeats(world: World, count: int) -> None:
    """The control: without it the rounds above would show nothing."""
    world.ask("CREATE TABLE IF NOT EXISTS seen (name varchar(200))")
    delivery = world.delivery("hold", "-", dwell=DWELL)
    with rivals(delivery, count, guarded=False) as found:
        rounds = overlapping(found, f"control-{count}", 10)
    repeated = [name for name in rounds if world.effects(world.delivery("hold", name)) > 1]
    print(f"{world.dialect}, {count} at once, unguarded: {len(repeated)} of {len(rounds)} rounds repeated")
    assert repeated, "vacuous: the unguarded control did not repeat"
