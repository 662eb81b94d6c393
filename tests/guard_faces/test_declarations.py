"""What would fail at each call is refused where it is declared, in words that name the mistake."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, NewType, Optional, Protocol

import pytest

import semel
from semel import AsyncOperation, Operation
from semel.errors import ConfigurationError
from semel.store.guard_tables import create_tables

Amount = NewType("Amount", float)


@pytest.fixture
def once(tmp_path: Any) -> Iterator[semel.Once]:
    """Nothing is asked of its database."""
    made = semel.Once(tmp_path / "guard.db")
    yield made
    made.close()


def of_float(op: Operation, part: float) -> None: ...
def of_an_optional_float(op: Operation, part: Optional[float] = None) -> None: ...  # noqa: UP045
def of_a_float_or_int(op: Operation, part: int | float) -> None: ...
def of_an_annotated_float(op: Operation, part: Annotated[float, "euros"]) -> None: ...
def of_a_named_float(op: Operation, part: Amount) -> None: ...
def of_a_list(op: Operation, part: list[int]) -> None: ...
def of_a_tuple(op: Operation, part: tuple[int, int]) -> None: ...
def of_bytes(op: Operation, part: bytes) -> None: ...


@pytest.mark.parametrize(
    "function",
    [
        of_float,
        of_an_optional_float,
        of_a_float_or_int,
        of_an_annotated_float,
        of_a_named_float,
        of_a_list,
        of_a_tuple,
        of_bytes,
    ],
)
@pytest.mark.parametrize("way", ["function", "job"])
def test_a_key_annotated_as_what_makes_none(once: semel.Once, function: Any, way: str) -> None:
    guarding: Any = once.operation("charge", key=("part",), with_operation=True)
    with pytest.raises(ConfigurationError, match=r"'part' in its key annotated as \w+, which makes no key"):
        guarding(function) if way == "function" else semel.App("postgresql://nowhere").job(once=guarding)(
            function
        )


def test_a_key_function_that_says_that_it_returns_a_float(once: semel.Once) -> None:
    def rounded(part: Any) -> float:
        return float(part)

    def paired(part: Any) -> tuple[str, float]:
        return "", part

    for source in (rounded, paired):
        with pytest.raises(ConfigurationError, match="what its key function returns annotated as float"):
            once.operation("charge", key=source)(lambda op, part: None)


def test_other_annotations_pass(once: semel.Once) -> None:
    def named(op: Operation, part: Optional[int], other: Decimal, amount: float) -> None: ...  # noqa: UP045
    def unknown(op: Nowhere, part: Elsewhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    def paired(part: int, other: Decimal) -> tuple[int, Decimal]:
        return part, other

    once.operation("charge", key=("part", "other"))(named)
    once.operation("charge", key=paired)(named)
    once.operation("charge", key="part")(unknown)
    once.operation("charge", key="part")(lambda op, part: None)


class Handed(Protocol):
    """What a function needs of its operation."""

    reference: str


def test_a_missing_operation_is_called_by_its_name(once: semel.Once) -> None:
    def named(order: int) -> None: ...
    def first(order: int, amount: int) -> None: ...
    def plain(order, amount): ...  # type: ignore[no-untyped-def]
    def nothing() -> None: ...

    cases: list[tuple[Any, dict[str, Any]]] = [
        (named, {"key": "order"}),
        (first, {"key": "amount"}),  # annotated as an int
        (plain, {"key": ("order", "amount")}),
        (plain, {"key": lambda order: order}),
        (plain, {"key": "amount", "payload": ("order",)}),
        (plain, {"key": "amount", "scope": lambda order: str(order)}),
        (nothing, {"key": lambda: 1}),
    ]
    for function, options in cases:
        with pytest.raises(ConfigurationError, match="takes no operation as its first parameter") as caught:
            once.operation("charge", **options)(function)
        assert "with_operation=False" in str(caught.value.remedy)
        once.operation("charge", with_operation=False, **options)(function)


def test_a_job_without_an_operation(once: semel.Once) -> None:
    def charge(order: int) -> None: ...
    def swapped(ctx: semel.JobContext, op: Operation, order: int) -> None: ...

    app = semel.App("postgresql://nowhere")
    for function, context in ((charge, False), (charge, True), (swapped, True)):
        with pytest.raises(ConfigurationError, match="takes no operation as its first parameter"):
            app.job(context=context, once=once.operation("charge", key="order"))(function)


def test_an_operation_by_any_annotation_is_one(once: semel.Once) -> None:
    def concrete(op: Operation, order: int) -> None: ...
    def protocol(op: Handed, order: int) -> None: ...
    def any_(op: Any, order: int) -> None: ...
    def either(op: Operation | AsyncOperation, order: int) -> None: ...
    def object_(op: object, order: int) -> None: ...

    for function in (concrete, protocol, any_, either, object_):
        once.operation("charge", key="order")(function)


@pytest.mark.parametrize("died", [False, True])
def test_why_it_is_held_names_the_error(tmp_path: Any, died: bool) -> None:
    from semel.core.effects import Hold
    from semel.core.operations import Limits, Record, State, begin

    record = Record(
        state=State.CLAIMED,
        revision=3,
        claim=1,
        mine=False,
        same_payload=True,
        lease_left=-1.0,
        acting=True,
        reference="r",
        reference_age=10.0,
        unsure=0 if died else 1,
        unsure_for=None if died else 1.0,
        last_error=None if died else "TimeoutError: no answer\nin 30 s",
    )
    from datetime import timedelta

    decided = begin(record, Hold(), longest_run=timedelta(seconds=1), limits=Limits())
    ended = "its worker ended after the point of no return"
    raised = "its handler raised after the point of no return: TimeoutError: no answer"
    assert decided.reason == (ended if died else raised)


def test_without_a_database_it_is_the_one_that_the_environment_says(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_tables(tmp_path / "told.db")
    monkeypatch.setenv("SEMEL_DATABASE_URL", f"sqlite:///{tmp_path / 'told.db'}")
    once = semel.Once()

    @once.operation("charge", key="order")
    def charge(op: Operation, order: int) -> str:
        return "done"

    assert [charge(1), charge(1)] == ["done", "done"]
    once.close()
    for unset in (None, "", " "):
        if unset is None:
            monkeypatch.delenv("SEMEL_DATABASE_URL")
        else:
            monkeypatch.setenv("SEMEL_DATABASE_URL", unset)
        with pytest.raises(ConfigurationError, match="SEMEL_DATABASE_URL is not set"):
            semel.Once()
