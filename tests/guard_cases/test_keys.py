"""Which deliveries are one operation, and which are not."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from tests.guard_cases.conftest import Case

import semel
from semel import InProgress, KeyRefused, PayloadMismatch, Secret


def test_c07_a_schedules_slot_is_one_operation_whoever_sends_it(case: Case) -> None:
    @case.once.operation(case.job, key=("schedule", "slot"), payload=(), acting="explicit")
    def nightly(op: semel.Operation, schedule: str, slot: str, task_id: str) -> str:
        with op.acting():
            case.effect(slot)
        return op.done(slot)

    nightly("report", "2030-05-01T02:00Z", "id-1")
    nightly("report", "2030-05-01T02:00Z", "id-2")
    nightly("report", "2030-05-02T02:00Z", "id-3")
    assert case.effects == ["2030-05-01T02:00Z", "2030-05-02T02:00Z"]
    assert "2030-05-01" in semel.explain(nightly, "report", "2030-05-01T02:00Z", "id-1").key


def test_c20_the_key_is_made_of_named_fields_not_of_text(case: Case) -> None:
    charge = case.charge()
    for body in ('{"order": 1, "amount": 5}', '{ "amount": 5,\n  "order": 1 }'):
        charge(**json.loads(body))
    assert len(case.effects) == 1


LOOK_ALIKES: list[tuple[Any, Any]] = [
    ((12, 3), (1, 23)),
    (("12", "3"), ("1", "23")),
    ("A", "a"),
    ("a", "a "),
    ("caf\u00e9", "cafe\u0301"),
    (1, "1"),
    (True, 1),
]


@pytest.mark.parametrize(("one", "other"), LOOK_ALIKES, ids=repr)
def test_c26_operations_that_look_alike_are_two(case: Case, one: Any, other: Any) -> None:
    charge = case.charge(key=lambda order, **_: order)
    charge(one)
    charge(other)
    assert len(case.effects) == 2
    assert charge(one) == f"charge of {one}"
    assert len(case.effects) == 2


def test_c26_one_amount_is_one_key_however_it_is_written(case: Case) -> None:
    charge = case.charge(key=lambda order, **_: order)
    charge(Decimal("10"))
    charge(Decimal("10.00"))
    assert len(case.effects) == 1


@pytest.mark.parametrize("key", [None, "", (), 1.5, ("a", None)], ids=repr)
def test_f58_a_key_that_is_missing_or_unstable_is_refused(case: Case, key: Any) -> None:
    charge = case.charge(key=lambda order, **_: order)
    with pytest.raises(KeyRefused):
        charge(key)
    assert (case.records(), case.effects) == (0, [])


def test_f53_the_key_that_is_used_is_shown_with_a_worked_example(case: Case) -> None:
    charge = case.charge(key=("order", "amount"))
    explained = semel.explain(charge, 7, amount=3)
    digest = charge.declaration.compute_key(_arguments(charge, 7, amount=3)).digest
    assert explained.key.startswith("order, amount; for this call ")
    assert digest in str(explained)


def _arguments(guarded: Any, *args: Any, **kwargs: Any) -> Any:
    from semel.guard.declaration import Arguments

    return Arguments(guarded.signature, args, kwargs)


def test_f54_a_key_is_stored_at_a_fixed_length(case: Case) -> None:
    case.charge()("x" * 10_000)
    assert len(case.column("key")) in (32, 64)
    assert len(case.column("label")) == 200


def test_f55_a_secret_makes_keys_that_nobody_can_guess_and_stores_no_label(case: Case) -> None:
    plain = case.charge()
    plain("ann@example.com")
    key = bytes(case.column("key"))
    other = Case(case.target, case.effects_file)
    other.once = semel.Once(case.target, secret=Secret(b"0123456789abcdef0123456789abcdef"))
    secret = other.charge()
    secret("ann@example.com")
    assert bytes(other.column("key")) != key
    assert (other.column("label"), other.column("key_version")) == (None, 1)
    assert secret("ann@example.com") == "charge of ann@example.com"
    assert len(case.effects) == 2
    other.close()


def test_f55_after_a_rotation_the_older_key_still_counts(case: Case) -> None:
    old, new = Secret(b"0" * 16, version=1), Secret(b"1" * 16, version=2)
    before, after = Case(case.target, case.effects_file), Case(case.target, case.effects_file, case.job)
    before.job = after.job = case.job
    before.once = semel.Once(case.target, secret=old)
    after.once = semel.Once(case.target, secret=new, older_secrets=[old])
    before.charge()(1)
    assert after.charge()(1) == "charge of 1"
    after.charge()(2)
    assert after.charge()(2) == "charge of 2"
    assert len(case.effects) == 2
    before.close()
    after.close()


def test_f55_between_two_deploys_each_finds_what_the_other_wrote(case: Case) -> None:
    old, new = Secret(b"0" * 16, version=1), Secret(b"1" * 16, version=2)
    first, second = Case(case.target, case.effects_file), Case(case.target, case.effects_file)
    first.job = second.job = case.job
    first.once = semel.Once(case.target, secret=old, older_secrets=[new])
    second.once = semel.Once(case.target, secret=new, older_secrets=[old])
    for writes, reads, key in ((first, second, 1), (second, first, 2)):
        writes.charge()(key)
        assert reads.charge()(key) == f"charge of {key}"
    assert len(case.effects) == 2
    first.close()
    second.close()


def test_f56_two_tenants_with_one_key_are_two(case: Case) -> None:
    charges = [case.charge(scope=scope) for scope in ("tenant-1", "tenant-2", "")]
    for charge in charges * 2:
        charge(1)
    assert len(case.effects) == 3


def test_c52_another_payload_is_refused_while_the_first_runs_and_afterwards(case: Case) -> None:
    charge = case.charge(payload=("amount",))

    def other() -> None:
        with pytest.raises(PayloadMismatch):  # and not InProgress: it never succeeds by being sent again
            charge(1, amount=20)
        with pytest.raises(InProgress):
            charge(1, amount=10)

    case.hooks["acting"] = other
    charge(1, amount=10)
    with pytest.raises(PayloadMismatch, match="another payload"):
        charge(1, amount=20)
    assert charge(1, amount=10) == "charge of 1"
    assert len(case.effects) == 1


def test_c51_two_paths_to_one_operation_share_its_record(case: Case) -> None:
    @case.once.operation(case.job, key="order", payload=(), acting="explicit")
    def from_webhook(op: semel.Operation, order: int, event: str) -> str:
        with op.acting():
            case.effect(order)
        return op.done("by the webhook")

    direct = case.charge(payload=())
    from_webhook(1, "evt_1")
    assert direct(1) == "by the webhook"
    assert case.effects == ["1"]


def test_f59_the_key_does_not_change_with_the_functions_name(case: Case) -> None:
    case.charge()(1)

    @case.once.operation(case.job, key="renamed")
    def moved_and_renamed(op: semel.Operation, renamed: int) -> str:
        case.effect("again")
        return "again"

    with pytest.raises(PayloadMismatch):  # by default the arguments' names count
        moved_and_renamed(1)
    assert len(case.effects) == 1


def test_c15_equal_contents_of_two_operations_are_two(case: Case) -> None:
    charge = case.charge()
    for order in ("order-1", "order-1", "order-2"):
        charge(order, amount=10)
    assert len(case.effects) == 2


def test_f52_a_delivery_id_in_the_key_is_no_protection(case: Case) -> None:
    """Nothing can tell it from a business key; the worked example of `explain` shows it to who reads it."""
    charge = case.charge(key=("order", "amount"))
    charge(1, amount="delivery-1")
    charge(1, amount="delivery-2")
    assert len(case.effects) == 2
