"""A guarded function that calls another: whose answer it is that comes out, and what the outer record says."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.guard.stored import Ago

import semel
from semel import Operation
from semel.core.keys import compute_key
from semel.errors import (
    Abandoned,
    Busy,
    ClaimLost,
    Held,
    InProgress,
    KeyRefused,
    PayloadMismatch,
    SemelError,
    TooOld,
)

pytestmark = pytest.mark.usefixtures("stored")
OUTER = compute_key(1).digest
INNER = compute_key("inner").digest


@pytest.fixture
def inner(once: semel.Once) -> Any:
    @once.operation("inner", key="name", payload=("amount",), acting="explicit")
    def inner(op: Operation, name: str, amount: int = 1) -> str:
        with op.acting():
            return op.done("inner's")

    return inner


def outer_of(once: semel.Once, call: Any, **options: Any) -> Any:
    """An operation whose function calls another one, before its own point of no return or behind it."""

    @once.operation("outer", key="order", payload=(), acting="explicit", **options)
    def outer(op: Operation, order: int, behind: bool = False) -> str:
        if not behind:
            call(op)
        with op.acting():
            if behind:
                call(op)
        return op.done("outer's")

    return outer


def hold(inner: Any, stored: Any) -> None:
    inner("inner")
    stored.change(INNER, state="held", outcome=None, completed_at=None, held_reason="a test")


def test_held_inside_is_an_exception_of_the_outer_function(once, stored, inner) -> None:
    hold(inner, stored)
    outer = outer_of(once, lambda _: inner("inner"))
    with pytest.raises(Held, match="inner inner is held") as told:
        outer(1)
    assert told.value.nested
    record = stored.record(OUTER)
    assert (record["state"], record["claim"]) == ("released", 1), "nothing of the outer one had happened"
    assert "Held: inner inner is held" in record["last_error"]
    with pytest.raises(Held):
        outer(1, behind=True)
    record = stored.record(OUTER)
    assert (record["state"], record["unsure"]) == ("claimed", 1), (
        "behind its point of no return nobody can tell"
    )
    with pytest.raises(Held, match="outer 1 is held") as told:
        outer(1)
    assert not told.value.nested, "its own, by its policy"


ANSWERS = [
    Held("x"),
    InProgress("x", retry_after=timedelta(seconds=1)),
    Busy("x", retry_after=timedelta(seconds=1)),
    Abandoned("x"),
    PayloadMismatch("x"),
    TooOld("x"),
    KeyRefused("x"),
    ClaimLost("x"),
]


@pytest.mark.parametrize("error", ANSWERS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("as_row", [False, True], ids=["outside", "row"])
def test_each_answer_from_inside_is_marked(once, error: SemelError, as_row: bool) -> None:
    def call(_: Any) -> None:
        raise error

    error.nested = False
    if as_row:

        @once.operation("row", key="order", effect=semel.Row())
        def row(op: Operation, order: int) -> None:
            call(op)

        outer: Any = row
    else:
        outer = outer_of(once, call)
    with pytest.raises(type(error)):
        outer(1)
    assert error.nested


def test_what_the_database_says_of_a_transaction_is_nobodys(once) -> None:
    error = semel.RetryTransaction("again")

    def call(_: Any) -> None:
        raise error

    with pytest.raises(semel.RetryTransaction):
        outer_of(once, call)(1)
    assert not error.nested


def test_a_lost_claim_is_told_by_whose_it_was(once, stored, inner) -> None:
    """Though it was the inner function that asked for the outer one's claim."""

    def lose(op: Operation) -> None:
        stored.change(OUTER, token="somebody else", claim=2)
        op.check()

    with pytest.raises(ClaimLost, match="attempt at outer") as told:
        outer_of(once, lose)(1)
    assert not told.value.nested
    stored.change(OUTER, lease_until=Ago(1000))

    def lose_inside(op: Operation) -> None:
        @once.operation("between", key="order", acting="explicit")
        def between(_: Operation, order: int) -> None:
            lose(op)

        between(2)

    with pytest.raises(ClaimLost, match="attempt at outer") as told:
        outer_of(once, lose_inside)(1)
    assert not told.value.nested, "the outermost says whose it is"


def test_in_an_async_function_and_a_block(once, stored, inner) -> None:
    hold(inner, stored)

    @once.operation("outer", key="order", acting="explicit")
    async def outer(op: semel.AsyncOperation, order: int) -> None:
        await asyncio.to_thread(inner, "inner")

    async def run() -> None:
        try:
            with pytest.raises(Held) as told:
                await outer(1)
            assert told.value.nested
        finally:
            await once.aclose()

    asyncio.run(run())
    assert stored.record(OUTER)["state"] == "released"
    with pytest.raises(Held) as told, once.claim("block", 3, acting="explicit"):
        inner("inner")
    assert told.value.nested
    with pytest.raises(Held) as told:
        inner("inner")
    assert not told.value.nested, "asked for by itself, it is an answer"
