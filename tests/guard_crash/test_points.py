"""Repeats, and SIGKILL at each point of an operation's life, for every declared effect."""

from __future__ import annotations

import pytest
from tests.guard_crash.actors import EFFECTS, OUTSIDE, deliver, deliver_to_end, killed
from tests.guard_crash.world import World

POINTS = ("claimed", "inside", "effect", "returned")

# What was expected, written before the first run: the effects that arrived, and how the operation ends after a process was
# killed at this point and the message came again and again.
NO_RETURN_IS_EXPLICIT = {
    "row": [(1, "completed acted")] * 4,
    "provider_key": [(1, "completed acted")] * 4,
    "lookup": [(1, "completed acted"), (1, "completed acted"), (1, "completed found"), (1, "completed acted")],
    "hold": [(1, "completed acted"), (0, "held"), (1, "held"), (1, "completed acted")],
    "accept_duplicate": [(1, "completed acted"), (1, "completed acted"), (2, "completed acted"), (1, "completed acted")],
    "accept_miss": [(1, "completed acted"), (0, "completed missed"), (1, "completed missed"), (1, "completed acted")],
}  # fmt: skip
NO_RETURN_IS_THE_START = {
    "provider_key": [(1, "completed acted")] * 4,
    "lookup": [(1, "completed acted"), (1, "completed acted"), (1, "completed found"), (1, "completed acted")],
    "hold": [(0, "held"), (0, "held"), (1, "held"), (1, "completed acted")],
    "accept_duplicate": [(1, "completed acted"), (1, "completed acted"), (2, "completed acted"), (1, "completed acted")],
    "accept_miss": [(0, "completed missed"), (0, "completed missed"), (1, "completed missed"), (1, "completed acted")],
}  # fmt: skip
NEVER_MORE_THAN = {effect: 2 if effect == "accept_duplicate" else 1 for effect in EFFECTS}
EXACTLY_ONE_ONCE_COMPLETED = ("row", "provider_key", "lookup", "hold")


@pytest.mark.parametrize("effect", EFFECTS)
def test_1_three_deliveries_in_a_row_have_one_effect(world: World, effect: str) -> None:
    delivery = world.delivery(effect)
    answers = [deliver(world.once, delivery) for _ in range(3)]
    assert [answer.kind for answer in answers] == ["acted", "repeat", "repeat"]
    assert len({answer.value for answer in answers}) == 1
    assert world.effects(delivery) == 1
    assert world.state(delivery) == "completed acted"
    record = world.record(delivery)
    assert (record["claim"], record["claims"], record["message"]) == (1, 1, None)


@pytest.mark.parametrize("acting", ["explicit", "from_start"])
def test_3_a_kill_at_each_point_does_what_the_table_says(world: World, acting: str) -> None:
    table = NO_RETURN_IS_EXPLICIT if acting == "explicit" else NO_RETURN_IS_THE_START
    cases = [(effect, point) for effect in table for point in range(len(POINTS))]

    def run(case: tuple[str, int]) -> tuple[int, str]:
        effect, point = case
        killed(world.delivery(effect, name(case), acting=acting, dies=POINTS[point]))
        delivery = world.delivery(effect, name(case), acting=acting)
        deliver_to_end(world.once, delivery)
        deliver_to_end(world.once, delivery)
        return world.effects(delivery), world.state(delivery)

    def name(case: tuple[str, int]) -> str:
        return f"{acting}-{case[0]}-{POINTS[case[1]]}"

    seen = dict(zip(cases, world.at_once(run, cases), strict=True))
    expected = {(effect, point): table[effect][point] for effect, point in cases}
    assert seen == expected
    for (effect, _), (effects, state) in seen.items():
        assert effects <= NEVER_MORE_THAN[effect]
        if state.startswith("completed") and effect in EXACTLY_ONE_ONCE_COMPLETED:
            assert effects == 1
    held = sum(state == "held" for _, state in seen.values())
    print(f"{world.dialect}, {acting}: {len(cases)} kills, {held} held")
    assert held == (2 if acting == "explicit" else 3)


def test_3_all_outside_effects_are_in_the_table() -> None:
    assert set(NO_RETURN_IS_EXPLICIT) == set(EFFECTS)
    assert set(NO_RETURN_IS_THE_START) == set(OUTSIDE)
