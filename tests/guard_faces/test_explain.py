"""What a guarded function says of itself: the source of the note that its authors sign."""

from __future__ import annotations

import pytest

from semel import (
    AcceptDuplicate,
    AcceptMiss,
    Hold,
    Lookup,
    Once,
    ProviderKey,
    Row,
    Secret,
    explain,
)
from semel.core.keys import compute_key


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    return Once(tmp_path_factory.mktemp("explain") / "semel.db")


def explained(once, effect, /, *args, acting="explicit", **options):
    @once.operation("charge", key="order", effect=effect, acting=acting, **options)
    def charge(op, order: int, amount: int = 0): ...

    return explain(charge, *args)


FIRST = "after the claim, before acting"
WHILE = "while acting"
CASES = [
    (Hold(), "1", "exactly 1", "held for a person"),
    (Lookup(print, settle="30 s"), "1", "exactly 1", "asked for by reference, 30 s after"),
    (ProviderKey(valid_for="24 h"), "1", "exactly 1", "sent again with the same reference within 1 day"),
    (AcceptDuplicate(), "2", "1 or more", "acts again, at most 1 more; then held (and so may a second"),
    (AcceptMiss(), "1", "0 or 1", "completed as missed, without acting"),
]


@pytest.mark.parametrize(("effect", "most", "means", "stale"), CASES)
def test_each_effect_says_what_each_crash_does(once, effect, most, means, stale):
    told = explained(once, effect, 7)
    assert (told.promise.never_more_than, told.promise.completed_means) == (most, means)
    assert "nothing can have happened" in told.crashes[FIRST]
    assert stale in told.crashes[WHILE]
    assert stale in told.crashes["after the effect, before the completion"]
    assert "repeat" in told.crashes["after the completion"]
    assert f"never more than {most}; completed means {means}" in str(told)
    assert "with op.acting():" in str(told)
    assert "paused past its lease" in told.limits


def test_from_its_start_even_the_first_crash_is_uncertain(once):
    told = explained(once, Hold(), acting="from_start")
    assert told.crashes[FIRST] == told.crashes[WHILE] == "after the lease: held for a person"
    assert told.acting == "the function's start"


def test_a_row_is_one_transaction(once):
    told = explained(once, Row(), acting="from_start")
    assert told.crashes == {
        "before the commit": "nothing is stored; the next delivery acts",
        "after the commit": "completed; the next delivery is a repeat",
    }
    assert "outside call" not in told.limits


def test_the_key_is_worked_out_for_a_call(once):
    told = explained(once, Hold(), 7, 100)
    assert told.key == f"order; for this call semel-key-1|1|i1:7, → {compute_key(7).digest}"
    assert explained(once, Hold()).key == "order"
    assert told.payload == "all arguments that differ from their defaults"
    assert explained(once, Hold(), payload=("amount",)).payload == "amount"
    assert explained(once, Hold(), payload=()).payload == "not compared"


def test_the_worked_key_is_the_stored_one(once, tmp_path):
    """The configured key is the one that is used (failure mode 53)."""
    from tests.guard.stored import Stored

    from semel.store.guard_tables import create_tables

    path = tmp_path / "semel.db"
    create_tables(path)

    @Once(path).operation("charge", key=lambda order, **_: ("order", order), with_operation=False)
    def charge(order: int, amount: int): ...

    charge(7, 100)
    stored = Stored.at("sqlite", path)
    ((key,),) = stored.ask("SELECT CAST(key AS TEXT) FROM semel_operations")
    stored.close()
    told = explain(charge, 7, 100)
    assert told.key.startswith("a function of the arguments; for this call semel-key-1|2|s5:order,i1:7, → ")
    assert told.key.endswith(key)


def test_a_secret_keeps_the_text_out(tmp_path):
    once = Once(tmp_path / "semel.db", secret=Secret(b"0123456789abcdef"))
    told = explained(once, Hold(), 7)
    assert "i1:7" not in told.key
    assert compute_key(7, secret=Secret(b"0123456789abcdef")).digest in told.key


def test_lease_and_limits(once):
    told = explained(
        once, Hold(), lease="1 min", longest_run="5 min", extend=True, max_unsure=2, max_takeovers=9
    )
    assert told.lease == "1 min, longest run 5 min, extended while it runs"
    assert "after 2 attempts" in told.limits
    assert "9 takeovers" in told.limits
