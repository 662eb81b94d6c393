"""Functions that are not what they seem, interrupts at the wrong moment, and results that no longer fit their type."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pytest

from semel import Held, Hold, InProgress, ProviderKey, Row
from semel.errors import ConfigurationError, DatabaseUnreachable
from semel.guard import delivery
from semel.guard.places import MOST_ROWS
from semel.guard.results import decode_result
from semel.store import own_connections
from semel.store.guard_begin import begin_new
from semel.store.own_connections import MOST_CONNECTIONS

pytestmark = pytest.mark.usefixtures("stored")


def test_generator_functions_are_refused_where_they_are_declared(once):
    def generator(op):
        yield 1

    async def async_generator(op):
        yield 1

    for function in (generator, async_generator):
        with pytest.raises(ConfigurationError, match="generator function"):
            once.operation("mail", key=lambda: 1, effect=Hold())(function)


async def work():
    raise AssertionError("it is never run")


def generate():
    yield 1


async def generate_async():
    yield 1


@pytest.mark.parametrize("make", [work, generate, generate_async])
@pytest.mark.parametrize("acting", ["from_start", "explicit"])
def test_what_is_still_to_be_run_is_no_result(once, only, make, acting):
    @once.operation("mail", key=lambda: 1, effect=Hold(), acting=acting)
    def mail(op):
        return make()

    with pytest.raises(ConfigurationError, match="still to be run"):
        mail()
    if acting == "from_start":  # it may have acted before it returned
        assert (only()["state"], only()["unsure"]) == ("claimed", 1)
        with pytest.raises(Held):
            mail()
        return
    assert (only()["state"], only()["outcome"], only()["claim"]) == ("released", None, 1)
    with pytest.raises(ConfigurationError, match="still to be run"):
        mail()
    assert (only()["state"], only()["claim"]) == ("released", 2)


def test_after_the_point_of_no_return_it_is_uncertain(once, only):
    @once.operation("mail", key=lambda: 1, effect=Hold(), acting="explicit")
    def mail(op):
        with op.acting():
            return work()

    with pytest.raises(ConfigurationError, match="still to be run"):
        mail()
    assert (only()["state"], only()["unsure"]) == ("claimed", 1)


def test_a_future_may_have_begun(once, only):
    made = []

    @once.operation("mail", key=lambda: 1, effect=Hold())
    def mail(op):
        made.append(asyncio.get_running_loop().create_future())
        return made[0]

    async def call():
        mail()

    with pytest.raises(ConfigurationError, match="still to be run"):
        asyncio.run(call())
    assert made[0].cancelled()
    assert (only()["state"], only()["unsure"]) == ("claimed", 1)


@dataclass
class Receipt:
    number: int

    def __post_init__(self):
        raise RuntimeError("no such receipt")


def test_a_stored_result_that_its_type_refuses_is_answered_as_it_is(caplog):
    assert decode_result({"number": 1}, Receipt) == {"number": 1}
    assert [each.levelname for each in caplog.records] == ["WARNING"]


def interrupted_after(operation, error):
    """The operation, interrupted once its writing is committed."""

    def make(*args, **options):
        made = operation(*args, **options)

        def steps():
            begun = yield from made.steps()
            if begun is not None:
                raise error
            return begun

        return replace(made, steps=steps)

    return make


class SoftLimit(Exception):
    """As Celery's: an ordinary exception that a signal raises, anywhere."""


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SoftLimit])
@pytest.mark.parametrize("acting", ["from_start", "explicit"])
def test_an_interrupted_begin_gives_its_claim_back(once, provider, only, monkeypatch, acting, interrupt):
    @once.operation("mail", key=lambda: 1, effect=Hold(), acting=acting)
    def mail(op):
        if acting == "explicit":
            with op.acting():
                return provider.charge()
        return provider.charge()

    with monkeypatch.context() as patch, pytest.raises(interrupt):
        patch.setattr(delivery, "begin_new", interrupted_after(begin_new, interrupt()))
        mail()
    assert (only()["state"], provider.calls) == ("released", [])
    mail()
    assert (only()["state"], len(provider.calls)) == ("completed", 1)


def test_an_interrupted_takeover_keeps_the_doubt(once, provider, only, monkeypatch):
    once_more = []

    @once.operation("mail", key=lambda: 1, effect=ProviderKey(valid_for="1 day"))
    def mail(op):
        provider.charge(op.reference)
        if not once_more:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        mail()

    ask = once.place.ask

    def interrupted(operation):
        answer = ask(operation)
        if operation.name == "guard_begin_known":
            raise KeyboardInterrupt
        return answer

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(once.place, "ask", interrupted)
        mail()
    assert (only()["state"], only()["unsure"], only()["claim"]) == ("claimed", 2, 2)
    assert only()["acting_at"] is not None
    once_more.append(1)
    mail()
    assert only()["state"] == "completed"
    assert len(set(provider.calls)) == 1, "each with the reference of the first"


def test_a_task_cancelled_while_it_begins_holds_nothing(once, provider):
    @once.operation("mail", key="order", effect=Hold())
    async def mail(op, order):
        provider.charge(order)

    async def deliver_all():
        await mail(-1)
        for order in range(20):
            task = asyncio.ensure_future(mail(order))
            await asyncio.sleep(random.uniform(0, 0.004))
            for _ in range(order % 3 + 1):
                task.cancel()
                await asyncio.sleep(0)
            await asyncio.wait([task])
            await mail(order)
        await once.aclose()

    asyncio.run(deliver_all())
    assert sorted(provider.calls) == list(range(-1, 20))


def test_open_rows_do_not_end_the_lease_of_an_outside_call(make_once, where, only, monkeypatch):
    """Each `Row()` of its own transaction holds a connection, for as long as its function runs."""
    if where[0] != "postgresql":
        pytest.skip("rows that wait for each other's locks are another matter")
    monkeypatch.setattr(own_connections, "WAIT", 0.5)
    once, rival = make_once(), make_once()
    ends, opened = threading.Event(), threading.Barrier(MOST_CONNECTIONS + 1)

    @once.operation("row", key="number", effect=Row())
    def row(op, number):
        opened.wait(10)
        ends.wait(30)

    def call(op):
        rows = [threading.Thread(target=row, args=(number,)) for number in range(MOST_CONNECTIONS)]
        for each in rows:
            each.start()
        try:
            opened.wait(10)
            for _ in range(8):
                time.sleep(0.5)
                with pytest.raises(InProgress):
                    charge_elsewhere()
        finally:
            ends.set()
            for each in rows:
                each.join()

    options = {"key": lambda: 1, "effect": ProviderKey(valid_for="1 day"), "lease": "1 s", "extend": True}
    options["longest_run"] = "1 min"
    charge = once.operation("charge", **options)(call)
    charge_elsewhere = rival.operation("charge", **options)(lambda op: pytest.fail("it acts twice"))
    charge()


def test_an_outside_call_does_not_wait_for_rows(make_once, where, monkeypatch):
    if where[0] == "sqlite":
        pytest.skip("one writer: an open Row() has the file")
    once = make_once()
    mail = once.operation("mail", key=lambda: 1, effect=Hold())(lambda op: 1)
    monkeypatch.setattr(own_connections, "WAIT", 0.1)
    with ExitStack() as stack:
        for _ in range(MOST_ROWS):
            stack.enter_context(once.place.transaction(None))
        assert mail() == 1
        with pytest.raises(DatabaseUnreachable, match=r"Row\(\) operations"), once.place.transaction(None):
            pass
