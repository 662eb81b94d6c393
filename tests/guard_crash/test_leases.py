"""Young and old claims, late finishers, frozen processes, clocks that are wrong."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from tests.guard_crash.actors import OUTSIDE, Actor, Delivery, deliver, deliver_to_end, killed
from tests.guard_crash.recorder import post
from tests.guard_crash.world import World

import semel

HOUR = 3600.0
LONG = 120.0
POLICY = {
    "provider_key": ("acted", "completed acted"),
    "lookup": ("acted", "completed acted"),
    "hold": ("Held", "held"),
    "accept_duplicate": ("acted", "completed acted"),
    "accept_miss": ("repeat", "completed missed"),
}
"""What an old claim, killed inside acting and before its effect, comes to."""


def tell(world: World, delivery: Delivery, answer: Any) -> None:
    record = world.record(delivery)
    print(
        f"{world.dialect}, {delivery.effect}: claim of {record['claimed_at']:.1f} s ago, lease {delivery.lease:.0f} s, "
        f"ends in {-record['lease_until']:.1f} s: {answer.kind}, {world.state(delivery)}"
    )


@pytest.mark.parametrize("effect", OUTSIDE)
def test_4_a_young_claim_is_left_and_an_old_one_is_handled(world: World, effect: str) -> None:
    delivery = world.delivery(effect, lease=LONG)
    killed(replace(delivery, dies="inside"))
    young = deliver(world.once, delivery)
    tell(world, delivery, young)
    assert young.kind == "InProgress"
    assert young.retry_after is not None
    assert 0 < young.retry_after <= LONG
    assert world.effects(delivery) == 0
    world.age(delivery)
    old = deliver(world.once, delivery)
    tell(world, delivery, old)
    assert (old.kind, world.state(delivery)) == POLICY[effect]


@pytest.mark.parametrize("clock", [HOUR, -HOUR])
@pytest.mark.parametrize("effect", ["provider_key", "hold", "lookup"])
def test_8_a_wrong_clock_of_the_application_changes_nothing(world: World, effect: str, clock: float) -> None:
    delivery = world.delivery(effect, lease=LONG)
    killed(replace(delivery, dies="inside", clock=-clock))
    wrong = replace(delivery, clock=clock)
    young = Actor(wrong).wait()
    assert young is not None
    assert young.kind == "InProgress"
    assert 0 < (young.retry_after or 0) <= LONG
    world.age(delivery)
    old = Actor(wrong).wait()
    assert old is not None
    assert (old.kind, world.state(delivery)) == POLICY[effect]


@pytest.mark.parametrize("effect", OUTSIDE)
def test_6_a_late_finisher_that_nobody_overtook_completes(world: World, effect: str) -> None:
    delivery = world.delivery(effect)
    answer = with_hook(world, delivery, lambda: world.age(delivery))
    assert answer == "done"
    assert world.state(delivery) == "completed acted"
    assert world.events(delivery) == ["late"]
    assert world.effects(delivery) == 1


def test_6_a_late_finisher_completes_out_of_held(world: World) -> None:
    delivery = world.delivery("hold")

    def overtake() -> None:
        world.age(delivery)
        assert deliver(world.once, delivery).kind == "Held"

    assert with_hook(world, delivery, overtake) == "done"
    assert world.state(delivery) == "completed acted"
    assert world.events(delivery)[-1] == "late_finish"
    assert deliver(world.once, delivery).kind == "repeat"
    assert world.effects(delivery) == 1


@pytest.mark.parametrize("effect", ["provider_key", "lookup", "accept_duplicate"])
def test_6_a_late_finisher_that_was_overtaken_leaves_evidence(world: World, effect: str) -> None:
    delivery = world.delivery(effect)

    def overtake() -> None:
        world.age(delivery)
        deliver(world.once, delivery)

    with pytest.raises(semel.ClaimLost):
        with_hook(world, delivery, overtake)
    assert world.events(delivery)[-1] == "evidence"
    assert world.state(delivery) == ("completed found" if effect == "lookup" else "completed acted")
    assert world.effects(delivery) == (2 if effect == "accept_duplicate" else 1)


def with_hook(world: World, delivery: Delivery, hook: Any) -> str:
    """One attempt that charges, then lets something happen, then returns."""
    from tests.guard_crash.actors import effect_of

    @world.once.operation("charge", key="name", effect=effect_of(delivery), acting="explicit", lease="60 s")
    def charge(op: semel.Operation, name: str) -> str:
        with op.acting():
            told = {"name": name, "reference": op.reference}
            post(world.port, "charge", **told, honours=delivery.effect == "provider_key")
            hook()
        return "done"

    return charge(delivery.name)


@pytest.mark.parametrize("effect", OUTSIDE)
def test_6_a_frozen_process_that_was_overtaken_does_not_act(world: World, effect: str) -> None:
    """SIGSTOP past the lease before acting; a rival takes over; the first wakes."""
    delivery = world.delivery(effect)
    actor = Actor(replace(delivery, stops="claimed"))
    actor.stopped()
    assert deliver_to_end(world.once, delivery).kind == "acted"
    actor.wake()
    answer = actor.wait()
    assert answer is not None
    assert answer.kind == "ClaimLost"
    assert world.effects(delivery) == 1
    assert world.events(delivery) == ["takeover", "evidence"]
    assert world.state(delivery) == "completed acted"


def test_6_a_frozen_process_is_fenced_while_its_rival_still_acts(world: World) -> None:
    delivery = world.delivery("hold")
    first = Actor(replace(delivery, stops="claimed"))
    first.stopped()
    world.age(delivery)
    second = Actor(replace(delivery, stops="inside", lease=LONG))
    second.stopped()
    first.wake()
    answer = first.wait()
    assert answer is not None
    assert answer.kind == "ClaimLost"
    second.wake()
    answer = second.wait()
    assert answer is not None
    assert answer.kind == "acted"
    assert world.effects(delivery) == 1


@pytest.mark.parametrize("acting", ["explicit", "from_start"])
def test_6_a_look_up_that_outlives_its_lease_does_not_act(world: World, acting: Any) -> None:
    delivery = world.delivery("lookup")
    killed(replace(delivery, dies="inside", lease=LONG))
    world.age(delivery)

    def find(reference: str, name: str) -> Any:
        world.age(delivery)
        assert deliver(world.once, delivery).kind == "acted"  # it asks, hears NOT_DONE, and acts
        return semel.NOT_DONE

    @world.once.operation("charge", key="name", effect=semel.Lookup(find=find, settle="0 s"), acting=acting)
    def charge(op: semel.Operation, name: str) -> str:
        with op.acting() if acting == "explicit" else nullcontext():
            post(world.port, "charge", name=name, reference=op.reference, honours=False)
        return "done"

    with pytest.raises(semel.ClaimLost):
        charge(delivery.name)
    assert world.effects(delivery) == 1
    assert deliver(world.once, delivery).kind == "repeat"


def test_a_worker_killed_each_time_is_held_after_max_takeovers(world: World) -> None:
    delivery = world.delivery("hold", lease=LONG, options=(("max_takeovers", 2),))
    for _ in range(3):
        killed(replace(delivery, dies="claimed"))
        world.age(delivery)
    assert deliver(world.once, delivery).kind == "Held"
    assert world.effects(delivery) == 0
    assert world.record(delivery)["takeovers"] == 2


def test_extending_keeps_a_lease_that_is_shorter_than_the_run(world: World) -> None:
    options = (("extend", True), ("longest_run", "30 s"))
    delivery = world.delivery("hold", lease=0.9, options=options)
    actor = Actor(replace(delivery, dwell=2.5))
    seen = []
    while actor.process.exitcode is None:
        if world.recorder.calls[delivery.name]:
            seen.append(deliver(world.once, delivery).kind)
        actor.process.join(0.1)
    answer = actor.wait()
    assert answer is not None
    assert answer.kind == "acted"
    assert set(seen) <= {"InProgress", "Busy", "repeat"}, seen
    assert world.record(delivery)["claim"] == 1
    assert world.effects(delivery) == 1


def test_a_frozen_beat_loses_the_lease(world: World) -> None:
    options = (("extend", True), ("longest_run", "30 s"))
    delivery = world.delivery("provider_key", options=options)
    actor = Actor(replace(delivery, stops="inside"))
    actor.stopped()
    assert deliver_to_end(world.once, delivery).kind == "acted"
    actor.wake()
    answer = actor.wait()
    assert answer is not None
    assert answer.kind == "ClaimLost"
    assert world.recorder.calls[delivery.name] == 2
    assert world.effects(delivery) == 1
    assert world.events(delivery)[-1] == "evidence"


def test_a_block_that_extends_keeps_its_lease(world: World) -> None:
    name = world.delivery("hold").name
    options: dict[str, Any] = {"acting": "explicit", "lease": "0.6 s", "longest_run": "30 s", "extend": True}
    delivery = world.delivery("hold", name)
    with world.once.claim("charge", name, **options) as op:
        revision = world.record(delivery)["revision"]
        from tests.support.waiting import until

        until(lambda: world.record(delivery)["revision"] >= revision + 4, "the lease was extended four times")
        with op.acting():
            pass
    assert world.state(delivery) == "completed acted"
