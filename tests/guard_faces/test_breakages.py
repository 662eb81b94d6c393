"""Functions that are not what they seem, interrupts at the wrong moment, and results that no longer fit their type."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from semel import Hold
from semel.errors import ConfigurationError
from semel.guard.results import decode_result

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

    for claims in (1, 2):
        with pytest.raises(ConfigurationError, match="still to be run"):
            mail()
        assert (only()["state"], only()["outcome"], only()["claim"]) == ("released", None, claims)


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
