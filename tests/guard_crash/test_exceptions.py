"""An exception is not a crash: what it means before, inside and after acting, for every effect; cancellations too."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.guard_crash.actors import EFFECTS, OUTSIDE, Boom, deliver, effect_of
from tests.guard_crash.recorder import post
from tests.guard_crash.world import World

import semel

# Written beforehand: the state after the exception; the next answer, and all effects behind it.
EXPECTED = {
    ("claimed", "row"): ("none", "acted", 1),
    ("inside", "row"): ("none", "acted", 1),
    ("effect", "row"): ("none", "acted", 1),
    **{("claimed", effect): ("released", "acted", 1) for effect in OUTSIDE},
    ("inside", "provider_key"): ("claimed", "acted", 1),
    ("effect", "provider_key"): ("claimed", "acted", 1),
    ("inside", "lookup"): ("claimed", "acted", 1),
    ("effect", "lookup"): ("claimed", "repeat", 1),
    ("inside", "hold"): ("claimed", "Held", 0),
    ("effect", "hold"): ("claimed", "Held", 1),
    ("inside", "accept_duplicate"): ("claimed", "acted", 1),
    ("effect", "accept_duplicate"): ("claimed", "acted", 2),
    ("inside", "accept_miss"): ("claimed", "repeat", 0),
    ("effect", "accept_miss"): ("claimed", "repeat", 1),
}


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("point", ["claimed", "inside", "effect"])
def test_an_exception_at_each_point(world: World, point: str, effect: str) -> None:
    delivery = world.delivery(effect, lease=60.0)
    assert deliver(world.once, replace(delivery, raises=point)).kind == "Boom"
    state = "none" if effect == "row" else world.state(delivery)
    answer = deliver(world.once, delivery)
    assert (state, answer.kind, world.effects(delivery)) == EXPECTED[point, effect]


def attempt(world: World, name: str, handler: Any, **options: Any) -> Any:
    given: dict[str, Any] = {"key": "name", "acting": "explicit", "effect": semel.Hold()} | options
    return world.once.operation("charge", **given)(handler)(name)


@pytest.mark.parametrize("how", ["raise NotDone", "not_done=", "done, then an exception", "uncertain"])
def test_what_an_exception_after_acting_means(world: World, how: str) -> None:
    delivery = world.delivery("hold")

    def charge(op: semel.Operation, name: str) -> str:
        with op.acting():
            if how == "done, then an exception":
                op.done("receipt")
            raise semel.NotDone("declined") if how == "raise NotDone" else Boom

    options = {"not_done": (Boom,)} if how == "not_done=" else {}
    with pytest.raises((Boom, semel.NotDone)):
        attempt(world, delivery.name, charge, **options)
    wanted = {"done, then an exception": "completed acted", "uncertain": "claimed"}.get(how, "released")
    assert world.state(delivery) == wanted
    answer = deliver(world.once, delivery)
    assert answer.kind == {"completed acted": "repeat", "claimed": "Held", "released": "acted"}[wanted]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
@pytest.mark.parametrize("passed", [False, True])
def test_an_exit_is_written_down_too(world: World, error: type[BaseException], passed: bool) -> None:
    delivery = world.delivery("hold")

    def charge(op: semel.Operation, name: str) -> str:
        if passed:
            with op.acting():
                raise error
        raise error

    with pytest.raises(error):
        attempt(world, delivery.name, charge)
    assert world.state(delivery) == ("claimed" if passed else "released")
    assert deliver(world.once, delivery).kind == ("Held" if passed else "acted")


@pytest.mark.parametrize("passed", [False, True])
def test_a_cancellation_waits_until_it_is_written_down(world: World, passed: bool) -> None:
    """A task that is cancelled, and once more while its end is written."""
    delivery = world.delivery("hold")

    async def main() -> None:
        reached = asyncio.Event()

        @world.once.operation("charge", key="name", acting="explicit")
        async def charge(op: semel.AsyncOperation, name: str) -> None:
            if passed:
                async with op.acting():
                    reached.set()
                    await asyncio.sleep(60)
            reached.set()
            await asyncio.sleep(60)

        task = asyncio.ensure_future(charge(delivery.name))
        await reached.wait()
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await world.once.aclose()

    asyncio.run(main())
    assert world.state(delivery) == ("claimed" if passed else "released")
    assert deliver(world.once, delivery).kind == ("Held" if passed else "acted")


def test_a_cancellation_while_the_point_of_no_return_is_written(world: World) -> None:
    """The step is written, and the call not made: nobody knows that afterwards, so nothing may act again by itself."""
    delivery = world.delivery("hold")

    async def main() -> None:
        @world.once.operation("charge", key="name", acting="explicit")
        async def charge(op: semel.AsyncOperation, name: str) -> None:
            asyncio.get_running_loop().call_soon(task.cancel)
            async with op.acting():
                post(world.port, "charge", name=name, reference=op.reference, honours=False)

        task = asyncio.ensure_future(charge(delivery.name))
        with pytest.raises(asyncio.CancelledError):
            await task
        await world.once.aclose()

    asyncio.run(main())
    assert world.effects(delivery) == 0
    assert world.state(delivery) in ("released", "claimed")
    assert deliver(world.once, delivery).kind in ("acted", "Held")
    assert world.effects(delivery) <= 1


def test_a_not_done_after_a_takeover_does_not_clear_the_doubt(world: World) -> None:
    """It speaks of its own call: the earlier attempt's charge may be there, and the provider may forget its key."""
    delivery = world.delivery("provider_key")
    assert deliver(world.once, replace(delivery, raises="effect")).kind == "Boom"

    def charge(op: semel.Operation, name: str) -> str:
        with op.acting():
            raise semel.NotDone("connection refused")

    with pytest.raises(semel.NotDone):
        attempt(world, delivery.name, charge, effect=effect_of(delivery))
    assert world.state(delivery) == "claimed"
    assert world.record(delivery)["acting_at"] is not None
    assert deliver(world.once, delivery).kind == "acted"
    assert world.effects(delivery) == 1
