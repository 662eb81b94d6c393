"""The same key with another payload: what is told of the two."""

from __future__ import annotations

import pytest

from semel import Operation, PayloadMismatch
from semel.guard.declaration import Arguments, to_message

pytestmark = pytest.mark.usefixtures("stored")


@pytest.mark.parametrize(
    ("name", "number"),
    [("id", "3f-77"), ("jid", "b4a577"), ("job_id", 815)],
    ids=["celery", "sidekiq", "semel"],
)
def test_another_payload_is_told_which_message_brought_the_first(
    once, only, name: str, number: object
) -> None:
    @once.operation("charge", key="order", payload=("amount",), acting="explicit")
    def charge(op: Operation, order: int, amount: int) -> None:
        with op.acting():
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        charge.run((1, 100), {}, message=to_message("somewhere", **{name: number}))
    with pytest.raises(PayloadMismatch) as told:
        charge(1, 200)
    first, mine = (
        only()["fingerprint"],
        charge.declaration.requests(
            Arguments(charge.signature, (1, 200), {}), message=None, dialect="postgresql"
        )[0].fingerprint,
    )
    assert f"fingerprint is {mine[:16]}…, the first one's {first[:16]}…" in str(told.value)
    assert f"came as message {number} (somewhere)" in str(told.value)


def test_another_payload_of_a_completed_operation_has_no_message_to_name(once, only, stored) -> None:
    @once.operation("charge", key="order", payload=("amount",))
    def charge(op: Operation, order: int, amount: int) -> None: ...

    charge.run((1, 100), {}, message=to_message("somewhere", id="erased"))
    with pytest.raises(PayloadMismatch) as told:
        charge(1, 200)
    assert "erased" not in str(told.value)
    assert f"the first one's {only()['fingerprint'][:16]}…" in str(told.value)
    assert stored.events(only()["key"])[-1][2] in str(told.value), "its history has the same"
