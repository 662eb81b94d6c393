"""What a repeat is answered with; completion never depends on it. And declarations that cannot be right."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from semel import ConfigurationError, Hold, KeyRefused

pytestmark = pytest.mark.usefixtures("stored")


class Shade(enum.Enum):
    RED = "red"


@dataclass
class Receipt:
    id: UUID
    amount: Decimal
    shade: Shade


def test_a_repeat_has_the_return_type(once):
    receipt = Receipt(UUID(int=5), Decimal("1.00"), Shade.RED)
    values = {
        "a": receipt,
        "b": {1: "x"},
        "c": "5",
        "d": (1, "y"),
        "e": b"ab",
        "f": None,
        "g": timedelta(minutes=1),
    }

    def guard(name, returns):
        def function(which: str):
            return values[which]

        function.__annotations__["return"] = returns
        return once.operation(name, key="which", with_operation=False)(function)

    types = {"a": Receipt, "b": dict[int, str], "c": int | str, "d": tuple[int, str], "e": bytes, "f": None}
    for which, returns in (types | {"g": timedelta}).items():
        function = guard(f"of {which}", returns)
        assert function(which) == function(which) == values[which]
        assert type(function(which)) is type(values[which])


@pytest.mark.parametrize(
    ("result", "dropped"),
    [(object(), True), ("x" * 70_000, True), ("a\0b", True), ("x" * 60_000, False), (float("nan"), False)],
)
def test_completion_does_not_depend_on_the_result(once, provider, only, result, dropped):
    @once.operation("charge", key="order", with_operation=False)
    def charge(order: int):
        provider.charge(order)
        return result

    assert charge(1) is result
    assert (only()["state"], bool(only()["result_dropped"])) == ("completed", dropped)
    assert charge(1) == (None if dropped or result != result else result)
    assert provider.calls == [1]


def test_a_result_can_be_kept_out(once, provider, only):
    @once.operation("charge", key="order", store_result=False, with_operation=False)
    def charge(order: int):
        return provider.charge(order)

    assert charge(1) == "receipt 1"
    assert charge(1) is None
    assert only()["result"] is None
    assert not only()["result_dropped"]


@pytest.mark.parametrize("effect", [Hold()])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"key": "ordr"}, "'ordr'"),
        ({"key": ()}, "empty key"),
        ({"key": "order", "payload": ("amuont",)}, "'amuont'"),
        ({"key": "order", "lease": "10 s", "longest_run": "11 s"}, "shorter than its longest run"),
        ({"key": "order", "acting": "sometimes"}, "from_start"),
        ({"key": "order", "acting": "explicit", "with_operation": False}, "could never call"),
        ({"key": "order", "lease": "soon"}, "not a duration"),
        ({"key": "order", "effect": "hold"}, "no effect"),
    ],
)
def test_what_cannot_be_right_is_refused_where_it_is_declared(once, effect, options, says):
    def charge(order: int, amount: int = 0): ...

    given = {"with_operation": False, "effect": effect} | options
    with pytest.raises(ConfigurationError, match=says):
        once.operation("charge", **given)(charge)


def test_a_function_without_the_parameter_is_refused(once):
    with pytest.raises(ConfigurationError, match="takes no operation"):

        @once.operation("charge", key=lambda: 1)
        def charge(): ...


@pytest.mark.parametrize("order", ["", None, 1.5, ()])
def test_a_key_that_is_none_is_refused_before_anything(once, provider, stored, order):
    @once.operation("charge", key=lambda order: order, with_operation=False, payload=())
    def charge(order):
        provider.charge(order)

    with pytest.raises(KeyRefused) as caught:
        charge(order)
    assert caught.value.remedy
    assert (provider.calls, stored.count()) == ([], 0)


def test_a_key_of_an_argument_that_is_not_there(once):
    @once.operation("charge", key=lambda ordr: ordr, with_operation=False)
    def charge(order: int): ...

    with pytest.raises(KeyRefused, match="no argument 'ordr' for the key of charge"):
        charge(1)
