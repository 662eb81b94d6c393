"""A search over all interleavings of three deliveries: begin, look, act, complete, crash, lease end, exception, person.

For each declared effect the world never has more effects than the table of the design says, and a completed record means
what it says. The same search finds each of the faults that others made, so that it can fail.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest
from tests.guard_model.row_world import RowRules
from tests.guard_model.world import SETTLE, VALID_FOR, Rules, Worker, World

from semel.core.effects import (
    AcceptDuplicate,
    AcceptMiss,
    Effect,
    Hold,
    Lookup,
    ProviderKey,
    Row,
    promise,
)
from semel.core.operations import Outcome, State

LOOKUP = Lookup(find=print, settle=SETTLE, looks=2)
EFFECTS: dict[str, Effect] = {
    "row": Row(),
    "hold": Hold(),
    "lookup": LOOKUP,
    "provider key, then hold": ProviderKey(valid_for=VALID_FOR),
    "provider key, then look-up": ProviderKey(valid_for=VALID_FOR, then=LOOKUP),
    "accept one duplicate": AcceptDuplicate(),
    "accept two duplicates": AcceptDuplicate(extra=2),
    "accept a miss": AcceptMiss(),
}
MOST = {
    name: effect.extra + 1 if isinstance(effect, AcceptDuplicate) else 1 for name, effect in EFFECTS.items()
}
"""The table of the design, written before the search."""


@dataclass
class Found:
    """What a search saw."""

    worlds: int = 0
    most: int = 0
    ends: set[tuple[Outcome | None, int]] = field(default_factory=set)
    """(outcome, effects) of completed records."""
    held: set[int] = field(default_factory=set)
    wrong: list[str] | None = None
    """The steps to the first world that breaks the promise."""


def search(rules: Rules, most: int, *, deliveries: int = 3, stop: bool = True) -> Found:
    """Walk through every world that can come about."""
    start = World(None, (Worker(),) * deliveries)
    before: dict[World, tuple[World, str] | None] = {start: None}
    waiting = deque([start])
    seen = Found()
    while waiting:
        world = waiting.popleft()
        seen.worlds += 1
        _note(seen, world)
        if _breaks(world, rules.effect, most):
            seen.wrong = seen.wrong or _path(before, world)
            if stop:
                return seen
        for name, after in rules.steps(world):
            if after not in before:
                before[after] = (world, name)
                waiting.append(after)
    return seen


def _note(seen: Found, world: World) -> None:
    seen.most = max(seen.most, len(world.effects))
    if world.row is not None and world.row.state is State.COMPLETED:
        seen.ends.add((world.row.outcome, len(world.effects)))
    if world.row is not None and world.row.state is State.HELD:
        seen.held.add(len(world.effects))


def _breaks(world: World, effect: Effect, most: int) -> bool:
    count = len(world.effects)
    if count > most:
        return True
    if world.row is None or world.row.state is not State.COMPLETED:
        return False
    sure = world.row.outcome in (Outcome.ACTED, Outcome.FOUND, Outcome.BY_PERSON)
    return sure and count < 1


def _path(before: dict[World, tuple[World, str] | None], world: World) -> list[str]:
    steps: list[str] = []
    link = before[world]
    while link is not None:
        steps.append(link[1])
        link = before[link[0]]
    return steps[::-1]


def rules(name: str, **options: bool | str) -> Rules:
    kind = RowRules if name == "row" else Rules
    return kind(EFFECTS[name], **options)  # type: ignore[arg-type]


CASES = [
    (name, explicit) for name in EFFECTS for explicit in (True, False) if not (name == "row" and explicit)
]
"""A `Row()` has no point of no return: its transaction is one."""


@pytest.mark.parametrize(("name", "explicit"), CASES)
def test_no_order_breaks_the_table(name, explicit):
    """Never more effects than it says, and completed means what it says."""
    most = MOST[name]
    seen = search(rules(name, explicit=explicit), most)
    assert seen.wrong is None, seen.wrong
    assert seen.worlds > (100 if name == "row" else 500)
    assert seen.most == most, "a search that never comes to the bound shows nothing"
    assert promise(EFFECTS[name]).never_more_than == str(most)
    ended = {outcome: {count for told, count in seen.ends if told is outcome} for outcome, _ in seen.ends}
    sure = set(range(1, most + 1))
    assert ended[Outcome.ACTED] == sure
    assert ended.get(Outcome.FOUND, sure) <= sure
    assert ended.get(Outcome.BY_PERSON, sure) <= sure
    assert (Outcome.MISSED in ended) == (name == "accept a miss")
    assert ended.get(Outcome.MISSED, {0, 1}) == {0, 1}
    assert (Outcome.FOUND in ended) == ("look" in name)


@pytest.mark.parametrize("name", ["row", "hold", "lookup", "provider key, then hold", "accept one duplicate"])
def test_held_ones_are_uncertain_indeed(name):
    """Both happen: a held operation whose effect happened, and one whose effect did not."""
    seen = search(rules(name, explicit=name != "row", people=False), MOST[name])
    assert {0, 1} <= seen.held


BROKEN = [
    ("an open transaction is not seen", "row", False),
    ("a commit midway is taken over", "row", False),
    ("its completion is a commit of its own", "row", False),
    ("no fence after a look-up", "lookup", True),
    ("no fence after a look-up", "lookup", False),
    ("a look-up's DONE ignored", "lookup", True),
    ("a look-up's DONE ignored", "provider key, then look-up", False),
    ("a takeover without its fence", "accept one duplicate", False),
    ("a takeover without its fence", "lookup", False),
    ("no fence at acting", "hold", True),
    ("no fence at acting", "lookup", True),
    ("no fence at acting", "accept a miss", True),
    ("acting forgotten at takeover", "lookup", True),
    ("acting forgotten at takeover", "lookup", False),
    ("no settle time", "lookup", True),
    ("a new reference at takeover", "provider key, then hold", True),
    ("the provider's window ignored", "provider key, then hold", True),
    ("the window not looked at again", "provider key, then hold", True),
    ("a lost answer of a takeover to look", "lookup", False),
    ("an earlier attempt's doubt forgotten", "provider key, then hold", True),
    ("every exception releases", "hold", True),
    ("every exception releases", "accept a miss", True),
    ("a person's decision without a fence", "lookup", True),
]


@pytest.mark.parametrize(("broken", "name", "explicit"), BROKEN)
def test_the_search_finds_what_others_got_wrong(broken, name, explicit):
    people = "person" in broken
    seen = search(rules(name, explicit=explicit, broken=broken, people=people), MOST[name])
    assert seen.wrong is not None
