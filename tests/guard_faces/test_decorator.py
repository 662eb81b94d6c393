"""The decorator: keys, payloads, scopes, results, sync and async; one effect for one operation."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.guard.stored import Ago

from semel import (
    DONE,
    Abandoned,
    ConfigurationError,
    KeyRefused,
    Lookup,
    NotDone,
    Operation,
    PayloadMismatch,
    Secret,
)
from semel.errors import ClaimLost, Held, InProgress

pytestmark = pytest.mark.usefixtures("stored")


def test_a_repeat_is_answered_without_acting(once, provider, only):
    @once.operation("charge", key="order", acting="explicit")
    def charge(op: Operation, order: int) -> str:
        with op.acting():
            return provider.charge(order, reference=op.reference)

    assert [charge(7) for _ in range(3)] == ["receipt 1"] * 3
    assert provider.calls == [7]
    record = only()
    assert (record["state"], record["outcome"], record["claim"], record["label"]) == (
        "completed",
        "acted",
        1,
        "7",
    )
    assert charge(8) == "receipt 2"


def test_a_whole_declaration(once, provider):
    """Every option at its place: key by a lambda of some arguments, payload, leases, a look-up that gets the call's own."""

    def find_charge(reference: str, order_id: int, amount: Decimal):
        raise AssertionError("it is too early to ask")

    @once.operation(
        "charge-order",
        key=lambda order_id, **_: order_id,
        payload=("amount",),
        acting="explicit",
        lease="5 min",
        longest_run="2 min",
        effect=Lookup(find_charge, settle="30 s"),
    )
    def charge(op: Operation, order_id: int, amount: Decimal) -> str:
        assert (op.attempt, op.lease_left > timedelta(minutes=4)) == (1, True)
        with op.acting():
            receipt = provider.charge(amount, reference=op.reference)
            if amount > 100:
                raise TimeoutError("no answer")
        return op.done(receipt)

    with pytest.raises(TimeoutError):
        charge(7, Decimal(101))
    with pytest.raises(InProgress, match="too early to ask") as told:
        charge(7, Decimal(101))
    assert timedelta(0) < told.value.retry_after <= timedelta(seconds=30)
    with pytest.raises(PayloadMismatch):
        charge(7, Decimal(5))
    assert provider.calls == [Decimal(101)]


def test_the_look_up_gets_the_arguments_of_the_call(once, provider, stored, only):
    asked = []

    def find_charge(reference: str, order_id: int, amount: Decimal):
        asked.append((reference, order_id, amount))
        return DONE

    @once.operation(
        "charge-order", key="order_id", acting="explicit", effect=Lookup(find_charge, settle="30 s")
    )
    def charge(op: Operation, order_id: int, amount: Decimal) -> str:
        with op.acting():
            provider.charge(amount)
            raise TimeoutError("no answer")

    with pytest.raises(TimeoutError):
        charge(7, amount=Decimal(101))
    stored.change(only()["key"], lease_until=Ago(40), unsure_until=Ago(40))
    assert charge(7, Decimal(101)) is None
    assert asked == [(only()["reference"], 7, Decimal(101))]
    assert (only()["outcome"], provider.calls) == ("found", [Decimal(101)])


FINDS = {
    "the reference alone": lambda reference: ((), {}),
    "the rest by name": lambda reference, **rest: ((), rest),
    "one by name, the rest": lambda reference, amount, **rest: ((amount,), rest),
    "some by name": lambda reference, amount: ((amount,), {}),
    "in another order": lambda reference, amount, order_id: ((order_id, amount), {}),
    "by position": lambda reference, *rest: (rest, {}),
    "by other names": lambda reference, order, pence: ((order, pence), {}),
    "a name of its own": lambda order_id, amount, **rest: ((amount,), rest),
    "anything": lambda *rest, **named: (rest[1:], named),
}


@pytest.mark.parametrize("passed", ["by position", "by name"])
@pytest.mark.parametrize("takes", FINDS)
def test_the_look_up_gets_the_same_arguments_however_the_caller_passed_them(
    once, stored, only, takes, passed
):
    asked = []

    @functools.wraps(FINDS[takes])
    def find(*args, **kwargs):
        asked.append(FINDS[takes](*args, **kwargs))
        return DONE

    @once.operation("charge-order", key="order_id", acting="explicit", effect=Lookup(find, settle="30 s"))
    def charge(op: Operation, order_id: int, amount: int, note: str | None = None) -> str:
        with op.acting():
            raise TimeoutError("no answer")

    call = (
        functools.partial(charge, 7, 5)
        if passed == "by position"
        else functools.partial(charge, amount=5, order_id=7)
    )
    with pytest.raises(TimeoutError):
        call()
    stored.change(only()["key"], lease_until=Ago(40), unsure_until=Ago(40))
    assert call() is None
    whole = {"order_id": 7, "amount": 5, "note": None}
    assert asked == [
        {
            "the reference alone": ((), {}),
            "the rest by name": ((), whole),
            "one by name, the rest": ((5,), {"order_id": 7, "note": None}),
            "some by name": ((5,), {}),
            "in another order": ((7, 5), {}),
            "by position": ((7, 5), {}),
            "by other names": ((7, 5), {}),
            "a name of its own": ((5,), {"note": None}),
            "anything": ((7, 5), {}),
        }[takes]
    ]


def test_async_functions_are_guarded_alike(once, provider, only):
    @once.operation("charge", key="order", acting="explicit")
    async def charge(op, order: int) -> str:
        async with op.acting():
            await asyncio.sleep(0)
            receipt = provider.charge(order)
        await op.check()
        await op.extend()
        return await op.done(receipt)

    async def several():
        first = [await charge(7), await charge(order=7)]
        await once.aclose()
        return first

    assert asyncio.run(several()) == ["receipt 1", "receipt 1"]
    assert provider.calls == [7]
    assert only()["outcome"] == "acted"


def test_a_cancelled_task_is_uncertain_and_an_early_one_released(once, only):
    entered = []

    @once.operation("charge", key="order", acting="explicit")
    async def charge(op, order: int, *, late: bool) -> None:
        if late:
            async with op.acting():
                entered[-1].set()
                await asyncio.sleep(60)
        entered[-1].set()
        await asyncio.sleep(60)

    async def cancel(*, late):
        entered.append(asyncio.Event())
        task = asyncio.ensure_future(charge(1, late=late))
        async with asyncio.timeout(60):
            await entered[-1].wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await once.aclose()

    asyncio.run(cancel(late=False))
    assert only()["state"] == "released"
    asyncio.run(cancel(late=True))
    assert (only()["state"], only()["unsure"]) == ("claimed", 1)


def test_callers_see_the_signature_without_its_first_parameter(once):
    @once.operation("charge", key="order")
    def charge(op, order: int, *, note: str = "") -> None:
        """Charges."""

    assert str(inspect.signature(charge)) == "(order: 'int', *, note: 'str' = '') -> 'None'"
    assert (charge.__name__, charge.__doc__) == ("charge", "Charges.")
    with pytest.raises(TypeError):
        charge()


@pytest.mark.parametrize("key", ["order", ("order",), lambda order, **_: order, lambda order: order])
def test_ways_to_say_the_key(once, provider, key):
    @once.operation("charge", key=key)
    def charge(op, order: int, amount: int = 1):
        return provider.charge(order)

    assert [charge(1), charge(order=1), charge(1, amount=1)] == ["receipt 1"] * 3
    assert charge(2) == "receipt 2"


def test_a_function_that_takes_keywords(once, provider):
    @once.operation("charge", key="order", payload=("amount",))
    def charge(op, **options):
        return provider.charge(options["order"])

    assert [charge(order=1, amount=2), charge(amount=2, order=1)] == ["receipt 1"] * 2
    with pytest.raises(PayloadMismatch):
        charge(order=1, amount=3)
    with pytest.raises(KeyRefused, match="no argument 'order'"):
        charge(amount=3)


def test_by_default_the_arguments_that_differ_from_their_defaults_are_compared(once, provider):
    @once.operation("charge", key="order")
    def charge(op, order: int, amount: int, currency: str = "eur"):
        return provider.charge(order)

    assert [charge(1, 5), charge(1, amount=5), charge(1, 5, "eur")] == ["receipt 1"] * 3
    with pytest.raises(PayloadMismatch, match="another payload"):
        charge(1, 6)
    with pytest.raises(PayloadMismatch) as caught:
        charge(1, 5, "usd")
    assert "payload=" in caught.value.remedy
    assert provider.calls == [1]


def test_declared_fields_are_compared_and_no_others(once, provider):
    @once.operation("charge", key="order", payload=("amount",))
    def charge(op, order: int, amount: Decimal, trace: object = None):
        return provider.charge(order)

    assert charge(1, Decimal("5.0"), object()) == charge(1, Decimal("5.00"), object())
    with pytest.raises(PayloadMismatch):
        charge(1, Decimal("5.01"))


def test_without_a_payload_nothing_is_compared(once, provider):
    @once.operation("charge", key="order", payload=())
    def charge(op, order: int, amount: int):
        return provider.charge(order)

    assert charge(1, 5) == charge(1, 6)


def test_scopes_and_job_types_keep_equal_keys_apart(once, make_once, provider):
    def charge(tenant: str, order: int):
        return provider.charge((tenant, order))

    options = {"key": "order", "payload": (), "with_operation": False}
    by_tenant = once.operation("charge", scope=lambda tenant, **_: tenant, **options)(charge)
    fixed = make_once(scope="anna").operation("charge", **options)(charge)
    other = once.operation("refund", **options)(charge)
    assert by_tenant("anna", 1) == by_tenant("anna", 1) == fixed("zoe", 1) == "receipt 1"
    assert by_tenant("Anna", 1) == "receipt 2"
    assert by_tenant("bert", 1) == "receipt 3"
    assert other("anna", 1) == "receipt 4"
    with pytest.raises(KeyRefused, match="scope of charge is None"):
        by_tenant(None, 1)
    with pytest.raises(KeyRefused, match="255 characters"):
        by_tenant("x" * 300, 1)


def test_labels_can_be_off(make_once, only):
    @make_once(labels=False).operation("mail", key="to", with_operation=False)
    def mail(to: str) -> None: ...

    mail("anna@example.org")
    assert only()["label"] is None


def test_keys_with_a_secret_and_its_rotation(make_once, provider, stored, only):
    old, new = Secret(b"0123456789abcdef"), Secret(b"fedcba9876543210", version=2)

    def mail(to: str):
        return provider.charge(to)

    def guard(**options):
        return make_once(**options).operation("mail", key="to", with_operation=False)(mail)

    assert guard(secret=old)("anna") == "receipt 1"
    record = only()
    assert (record["label"], record["key_version"]) == (None, 1)
    assert guard(secret=new, older_secrets=[old])("anna") == "receipt 1"
    assert guard(secret=new, older_secrets=[old])("bert") == "receipt 2"
    assert guard(secret=new)("bert") == "receipt 2"
    assert guard(secret=new)("anna") == "receipt 3", "the older secret is what remembers"


def test_a_secret_that_is_new_can_remember_the_time_without_one(make_once, provider):
    def mail(to: str):
        return provider.charge(to)

    options = {"key": "to", "with_operation": False}
    plain = make_once().operation("mail", **options)(mail)
    keyed = make_once(secret=Secret(b"0123456789abcdef"), older_secrets=[None]).operation("mail", **options)(
        mail
    )
    assert plain("anna") == keyed("anna") == "receipt 1"


def test_without_the_operation_it_acts_from_its_start(once, only):
    @once.operation("charge", key="order", with_operation=False)
    def charge(order: int):
        raise ValueError("who knows")

    with pytest.raises(ValueError, match="who knows"):
        charge(1)
    assert (only()["state"], only()["unsure"]) == ("claimed", 1)
    with pytest.raises(Held, match="is held"):
        charge(1)


def test_what_exceptions_mean(once, provider, only, stored):
    @once.operation("charge", key="order", acting="explicit", not_done=[ConnectionRefusedError], payload=())
    def charge(op, order: int, plan: str):
        if plan == "early":
            raise ValueError(plan)
        with op.acting():
            if plan == "not done":
                raise NotDone("it certainly did not")
            if plan == "refused":
                raise ConnectionRefusedError
            receipt = provider.charge(order)
        op.done(receipt)
        raise ValueError("after it")

    for plan, error in [("early", ValueError), ("not done", NotDone), ("refused", ConnectionRefusedError)]:
        with pytest.raises(error):
            charge(1, plan)
        assert only()["state"] == "released"
    with pytest.raises(ValueError, match="after it"):
        charge(1, "late")
    assert only()["state"] == "completed"
    assert charge(1, "again") == "receipt 1"
    assert provider.calls == [1]


def test_acting_once_and_explicitly(once, only):
    @once.operation("charge", key="order", acting="explicit", payload=())
    def charge(op, order: int, times: int, again: bool = False):
        for _ in range(times):
            with op.acting(again=again):
                pass

    with pytest.raises(ConfigurationError, match=r"without op.acting"):
        charge(1, 0)
    assert only()["state"] == "released"
    with pytest.raises(ConfigurationError, match="second time"):
        charge(1, 2)
    assert only()["unsure"] == 1
    charge(2, 2, again=True)


def test_a_running_one_is_in_progress(once):
    inside, go_on = threading.Event(), threading.Event()

    @once.operation("charge", key="order", with_operation=False, lease="40 s")
    def charge(order: int):
        inside.set()
        assert go_on.wait(30)

    thread = threading.Thread(target=charge, args=(1,))
    thread.start()
    assert inside.wait(30)
    with pytest.raises(InProgress) as caught:
        charge(1)
    go_on.set()
    thread.join()
    assert timedelta(seconds=20) < caught.value.retry_after <= timedelta(seconds=40)


def test_one_that_was_taken_over_is_told_at_its_step(once, stored, only):
    @once.operation("charge", key="order", acting="explicit", payload=())
    def charge(op, order: int, sleeps: bool):
        if sleeps:
            stored.change(only()["key"], lease_until=Ago(5))
            charge(order, False)
            assert op.lease_left > timedelta(0)
        with op.acting():
            assert not sleeps

    with pytest.raises(ClaimLost, match="no longer holds its claim"):
        charge(1, True)
    record = only()
    assert (record["state"], record["claim"], record["takeovers"]) == ("completed", 2, 1)
    assert [row[0] for row in stored.events(record["key"])] == ["takeover", "evidence"]


def test_an_abandoned_one_says_so(once, stored, only):
    @once.operation("charge", key="order", with_operation=False)
    def charge(order: int) -> None: ...

    charge(1)
    stored.change(only()["key"], outcome="abandoned")
    with pytest.raises(Abandoned, match="abandoned by a person"):
        charge(1)


def test_extend_keeps_a_lease_that_is_shorter_than_the_run(once, only):
    """The lease is renewed in the table while the function runs: it waits until it has seen that."""

    @once.operation(
        "charge", key="order", extend=True, lease="0.6 s", longest_run="60 s", with_operation=False
    )
    def charge(order: int):
        first, seen = only()["revision"], 0
        for _ in range(200):
            seen = only()["revision"] - first
            if seen >= 3:
                break
            threading.Event().wait(0.05)
        return seen

    assert charge(1) >= 3
    assert only()["state"] == "completed"
