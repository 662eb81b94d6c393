"""What every adapter is held to, on its real broker, without the guard (it must repeat there) and with it.

A test module of an adapter has a fixture ``rig`` (a `Rig` with nothing started) and imports these tests by
``from tests.adapters.contract import *``. How many rounds: ``rig.rounds``.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.adapters.rig import UNGUARDED, Rig, Victim

from semel.operate import held
from semel.store.guard_views import list_operations

__all__ = [
    "test_a_graceful_stop_lets_the_job_end",
    "test_a_person_abandons",
    "test_a_person_has_it_done_again",
    "test_a_young_claim_is_not_taken_over",
    "test_an_exception_before_acting_releases",
    "test_an_exception_that_is_certain_releases",
    "test_an_exception_that_is_uncertain_is_held",
    "test_an_old_claim_gets_the_policy",
    "test_another_payload_is_refused",
    "test_killed",
    "test_killed_without_the_guard",
    "test_look_alikes",
    "test_three_deliveries",
    "test_three_deliveries_without_the_guard",
    "test_two_workers_at_once",
    "test_two_workers_at_once_without_the_guard",
]

SHORT = 3.0
"""A lease that a test can wait for."""
_numbers = itertools.count(1)


def new_name(what: str) -> str:
    """The name of an operation of the test's own."""
    return f"{what}-{next(_numbers)}"


def test_three_deliveries_without_the_guard(rig: Rig) -> None:
    name = new_name("thrice")
    rig.start()
    message = rig.send(name, how=UNGUARDED)
    for again in (1, 2):
        rig.stage.wait_for(name, "effect", again)
        rig.send_again(message)
    rig.stage.wait_for(name, "effect", 3)
    rig.wait_idle()
    assert rig.stage.effects[name] == 3


def test_three_deliveries(rig: Rig) -> None:
    name = new_name("thrice")
    rig.start()
    message = rig.send(name)
    rig.wait_state(name, "completed acted")
    rig.wait_idle()
    first = rig.result(message) if rig.stores_results else None
    rig.send_again(message)
    rig.send_again(message)
    rig.wait_answered(name, "repeat", 2)
    rig.wait_idle()
    assert rig.stage.effects[name] == 1
    assert rig.state(name) == "completed acted"
    if rig.stores_results:
        assert first == f"charge-{name}-1"
        assert rig.result(message) == first


def test_two_workers_at_once_without_the_guard(rig: Rig) -> None:
    """The two truly overlap: each waits at its first point until the other is there."""
    rig.start()
    rig.start()
    for _ in range(max(3, rig.rounds // 10)):
        name = new_name("both")
        rig.stage.meet(name, 2)
        message = rig.send(name, how=UNGUARDED)
        rig.send_again(message)
        rig.stage.wait_for(name, "effect", 2)
        assert rig.stage.effects[name] == 2
        assert len({each.pid for each in rig.stage.arrived(name, "claimed")}) == 2


def test_two_workers_at_once(rig: Rig) -> None:
    """The one that acts is held past its point of no return until the other was answered: every round overlaps."""
    rig.start(lease=SHORT)
    rig.start(lease=SHORT)
    names = [new_name("both") for _ in range(rig.rounds)]
    for name in names:
        rig.stage.hold(name, "inside")
        message = rig.send(name)
        rig.send_again(message)
        rig.stage.wait_for(name, "inside")
        rig.wait_answered(name, "in_progress")
        rig.stage.release(name, "inside")
        rig.wait_state(name, "completed acted")
    rig.wait_idle(90)
    assert [rig.stage.effects[name] for name in names] == [1] * len(names)
    assert all(rig.answered(name, "repeat") >= 1 for name in names)


@pytest.mark.parametrize("victim", ["child", "parent", "group"])
def test_killed_without_the_guard(rig: Rig, victim: Victim) -> None:
    """Killed after the effect: the message comes again, or is lost where the broker had let go of it."""
    _skip_unless_it_has(rig, victim)
    name = new_name("killed")
    worker = rig.start()
    rig.stage.hold(name, "effect")
    message = rig.send(name, how=UNGUARDED)
    reached = rig.stage.wait_for(name, "effect")
    worker.kill(victim, reached.pid)
    if victim != "child":
        rig.start()
    if not rig.redelivers(victim):
        rig.wait_idle()
        assert rig.stage.effects[name] == 1
        rig.send_again(message)
    rig.stage.wait_for(name, "effect", 2)
    rig.stage.release(name, "effect")
    rig.wait_idle()
    assert rig.stage.effects[name] == 2


AFTER: dict[tuple[str, str], tuple[str, int]] = {
    ("claimed", "hold"): ("completed acted", 1),
    ("claimed", "lookup"): ("completed acted", 1),
    ("claimed", "duplicate"): ("completed acted", 1),
    ("claimed", "miss"): ("completed acted", 1),
    ("effect", "hold"): ("held", 1),
    ("effect", "lookup"): ("completed found", 1),
    ("effect", "duplicate"): ("completed acted", 2),
    ("effect", "miss"): ("completed missed", 1),
}
"""Point of the kill and declared effect → what the record comes to, and how many effects there are."""


@pytest.mark.parametrize("victim", ["child", "parent", "group"])
@pytest.mark.parametrize("point", ["claimed", "effect"])
def test_killed(rig: Rig, victim: Victim, point: str) -> None:
    _skip_unless_it_has(rig, victim)
    ways = [how for at, how in AFTER if at == point]
    names = {how: new_name(f"killed-{how}") for how in ways}
    worker = rig.start(concurrency=len(ways), lease=SHORT)
    messages = {}
    for how, name in names.items():
        rig.stage.hold(name, point)
        messages[how] = rig.send(name, how=how)
    reached = [rig.stage.wait_for(name, point) for name in names.values()]
    for pid in {each.pid for each in reached} if victim == "child" else {reached[0].pid}:
        worker.kill(victim, pid)
    if victim != "child":
        rig.start(concurrency=len(ways), lease=SHORT)
    if not rig.redelivers(victim):
        rig.wait_idle()
        for message in messages.values():
            rig.send_again(message)
    for how, name in names.items():
        state, effects = AFTER[point, how]
        assert rig.wait_state(name, state) == state
        rig.stage.release(name, point)
        assert rig.stage.effects[name] == effects, how
    if victim == "parent":
        _a_survivor_changes_nothing(rig, point, names)


def _a_survivor_changes_nothing(rig: Rig, point: str, names: dict[str, str]) -> None:
    """A child that outlived its parent wakes when others have decided: it is fenced, and acts no more."""
    rig.wait_idle()
    for how, name in names.items():
        _, effects = AFTER[point, how]
        assert rig.stage.effects[name] == effects, how


def test_a_young_claim_is_not_taken_over(rig: Rig) -> None:
    name = new_name("young")
    rig.start(lease=10 * SHORT)
    rig.start(lease=10 * SHORT)
    rig.stage.hold(name, "inside")
    message = rig.send(name)
    rig.stage.wait_for(name, "inside")
    rig.send_again(message)
    rig.wait_answered(name, "in_progress")
    record = rig.record(name)
    assert record is not None
    assert (record["state"], record["claim"], rig.stage.effects[name]) == ("claimed", 1, 0)
    rig.stage.release(name, "inside")
    rig.wait_state(name, "completed acted")
    assert rig.stage.effects[name] == 1
    assert rig.pending() > 0 or rig.answered(name, "repeat") > 0, "an answer of in progress is no success"


def test_an_old_claim_gets_the_policy(rig: Rig) -> None:
    """And the one that was thought dead completes late, out of held: nobody took over."""
    name = new_name("old")
    rig.start(lease=60)
    rig.start(lease=60)
    rig.stage.hold(name, "inside")
    message = rig.send(name)
    rig.stage.wait_for(name, "inside")
    rig.age(name)
    rig.send_again(message)
    rig.wait_answered(name, "held")
    assert rig.state(name) == "held"
    rig.stage.release(name, "inside")
    assert rig.wait_state(name, "completed acted") == "completed acted"
    assert rig.stage.effects[name] == 1


def test_look_alikes(rig: Rig) -> None:
    pairs = ["invoice 12 line 3", "invoice 1 line 23", "upper A", "upper a", "caf\u00e9", "cafe\u0301"]
    rig.start(concurrency=2)
    for name in pairs:
        rig.send(name)
    for name in pairs:
        rig.wait_state(name, "completed acted")
    assert [rig.stage.effects[name] for name in pairs] == [1] * len(pairs)


def test_an_exception_before_acting_releases(rig: Rig) -> None:
    _released_then_acts(rig, "claimed", "raise")


def test_an_exception_that_is_certain_releases(rig: Rig) -> None:
    _released_then_acts(rig, "inside", "not_done")


def _released_then_acts(rig: Rig, point: str, do: str) -> None:
    name = new_name("released")
    rig.start()
    rig.stage.answer(name, point, do)
    message = rig.send(name)
    rig.stage.wait_for(name, point)
    if not rig.retries:
        rig.wait_state(name, "released")
        rig.wait_idle()
        rig.send_again(message)
    rig.wait_state(name, "completed acted")
    assert rig.stage.effects[name] == 1
    assert len(rig.stage.arrived(name, "claimed")) == 2


def test_an_exception_that_is_uncertain_is_held(rig: Rig) -> None:
    name = new_name("uncertain")
    _hold(rig, name)
    assert rig.state(name) == "held"
    assert rig.stage.effects[name] == 1


def test_a_person_has_it_done_again(rig: Rig) -> None:
    """The redo reaches the broker: the message comes again from there."""
    name = new_name("redo")
    _hold(rig, name)
    resolved = _decide(rig, name, "redo")
    assert resolved.sent is True, resolved.note
    assert rig.wait_state(name, "completed acted") == "completed acted"
    assert rig.stage.effects[name] == 2, "the person said that the first did not happen"


def test_a_person_abandons(rig: Rig) -> None:
    name = new_name("abandoned")
    message = _hold(rig, name)
    _decide(rig, name, "abandon")
    rig.send_again(message)
    rig.wait_answered(name, "abandoned")
    assert rig.state(name) == "completed abandoned"
    assert rig.stage.effects[name] == 1


def test_another_payload_is_refused(rig: Rig) -> None:
    name = new_name("payload")
    rig.start()
    rig.send(name)
    rig.wait_state(name, "completed acted")
    rig.send(name, amount=999)
    rig.wait_answered(name, "mismatch")
    rig.wait_idle()
    assert rig.answered(name, "mismatch") == 1, "it never succeeds by being tried again"
    assert rig.stage.effects[name] == 1


def test_a_graceful_stop_lets_the_job_end(rig: Rig) -> None:
    name = new_name("stop")
    worker = rig.start()
    rig.stage.hold(name, "inside")
    rig.send(name)
    rig.stage.wait_for(name, "inside")
    worker.process.terminate()
    rig.wait_stopping(worker)
    rig.stage.release(name, "inside")
    worker.process.wait(60)
    assert rig.state(name) == "completed acted"
    assert rig.stage.effects[name] == 1
    assert rig.pending() == 0


def _hold(rig: Rig, name: str) -> Any:
    rig.start()
    rig.stage.answer(name, "effect", "raise")
    message = rig.send(name)
    rig.stage.wait_for(name, "effect")
    if not rig.retries:
        rig.wait_answered(name, "uncertain")
        rig.wait_idle()
        rig.send_again(message)
    rig.wait_state(name, "held")
    rig.wait_settled(name)
    return message


def _decide(rig: Rig, name: str, act: str) -> Any:
    from semel.store.run import run

    with rig.session() as session:
        page = run(list_operations(rig.filter(name), limit=2, before_id=None), session)
        (shown,) = page.operations
        resender = rig.resender()
        more: dict[str, Any] = {"resenders": [resender]} if act == "redo" and resender is not None else {}
        return getattr(held, act)(
            session, shown.id, shown.claim, "ada", "the provider's page says so", **more
        )


def _skip_unless_it_has(rig: Rig, victim: Victim) -> None:
    if victim not in rig.victims:
        pytest.skip(f"{rig.name} has no {victim} of its own")
