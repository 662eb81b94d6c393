"""What a type checker sees of guarded functions: callers' signatures lose exactly the operation.

Each ignored error must be one: mypy warns of an ignore that is not needed.
"""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import timedelta
from decimal import Decimal
from typing import Any, assert_type

from semel import DONE, AsyncOperation, Found, Guarded, Hold, Lookup, Once, Operation, Row

once = Once("postgresql://x/y", scope="shop", labels=False)
Once("x.db", scop="shop")  # type: ignore[call-arg]


def find(reference: str, order: int, amount: Decimal) -> Found:
    return Found(reference)


@once.operation(
    "charge", key="order", payload=["amount"], acting="explicit", effect=Lookup(find, settle="30 s")
)
def charge(op: Operation, order: int, amount: Decimal = Decimal(1), *, note: str = "") -> str:
    assert_type(op.reference, str)
    assert_type(op.attempt, int)
    assert_type(op.lease_left, timedelta)
    with op.acting():
        receipt = "x"
    op.extend()
    op.check()
    return assert_type(op.done(receipt), str)


@once.operation(
    "charge", key=lambda order, **_: ("order", order), effect=Hold(), lease=60, longest_run="30 s"
)
async def charge_async(op: AsyncOperation, order: int) -> Decimal:
    async with op.acting():
        ...
    await op.extend()
    return assert_type(await op.done(Decimal(1)), Decimal)


@once.operation("plain", key="order", with_operation=False)
def plain(order: int) -> bytes:
    return b""


@once.operation("row", key="order", effect=Row())
def row(op: Operation, order: int) -> None: ...


@once.operation("wrong")  # type: ignore[call-overload,untyped-decorator]
def without_key(op: Operation, order: int) -> None: ...


@once.operation("wrong", key="order", acting="sometimes")  # type: ignore[call-overload,untyped-decorator]
def wrong_acting(op: Operation, order: int) -> None: ...


def callers() -> None:
    assert_type(charge(1), str)
    assert_type(charge(1, Decimal(2), note="x"), str)
    charge("1")  # type: ignore[arg-type]
    charge()  # type: ignore[call-arg]
    charge(1, Decimal(2), "x")  # type: ignore[call-arg]
    charge(None, 1)  # type: ignore[arg-type]
    assert_type(plain(1), bytes)
    plain(1, 2)  # type: ignore[call-arg]
    assert_type(row.on(object())(1), None)
    row.on(object())("1")  # type: ignore[arg-type]
    call = assert_type(charge_async(1), Coroutine[Any, Any, Decimal])
    call.close()


def blocks() -> None:
    with once.claim("charge", 1, effect=Hold()) as op:
        assert_type(op, Operation)
        assert_type(op.is_repeat, bool)


async def async_blocks() -> None:
    assert_type(await charge_async(1), Decimal)
    async with once.aclaim("charge", 1, effect=Hold()) as op:
        assert_type(op, AsyncOperation)


def takes(one: Guarded[[int], bytes], any_one: Guarded[..., Any]) -> object:
    takes(plain, charge)
    takes(row, charge)  # type: ignore[arg-type]
    return DONE
