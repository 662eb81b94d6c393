"""`Row()`: claim, effect and completion in the caller's one transaction, on every kind of connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.guard.conftest import make_request
from tests.guard.places import Caller, Place
from tests.guard.stored import Ago, Stored

from semel.core.effects import Hold, Row
from semel.core.operations import Reply
from semel.errors import RetryTransaction
from semel.store.faults import LockBusy
from semel.store.guard_begin import begin_known, begin_new, begin_row
from semel.store.guard_end import complete_late, complete_row
from semel.store.guard_request import Again, Lost, Request

STRICT = ("repeatable read", "serializable")


@pytest.fixture
def request_(place: Place) -> Request:
    return make_request(place.dialect, effect=Row())


@pytest.fixture(autouse=True)
def effects(place: Place, stored: Stored) -> Iterator[None]:
    """A table of the application's own."""
    stored.ask("CREATE TABLE IF NOT EXISTS shop (id integer PRIMARY KEY)")
    yield
    stored.ask("DELETE FROM shop")


def rival_of(request: Request) -> Request:
    return replace(request, token="r" * 32, reference="r" * 16)


def begin(caller: Caller, request: Request) -> Any:
    """As the guard does: where a savepoint is asked for, in one."""
    begun = caller.ask(begin_row(request))
    return caller.ask(begin_row(request, in_savepoint=True)) if isinstance(begun, Again) else begun


def finish(caller: Caller, request: Request) -> bool:
    return bool(caller.ask(complete_row(request, result='{"id": 1}', result_dropped=False)))


@contextmanager
def cleaned(caller: Caller) -> Iterator[None]:
    try:
        yield
    except BaseException:
        caller.rollback()
        raise


@pytest.mark.parametrize("isolation", [None, "read committed", *STRICT])
def test_all_is_one_commit(place: Place, stored: Stored, request_: Request, isolation: str | None) -> None:
    with place.caller(isolation=isolation if place.dialect != "sqlite" else None) as caller:
        assert begin(caller, request_).reply is Reply.ACT
        caller.execute("INSERT INTO shop VALUES (1)")
        assert finish(caller, request_)
        assert stored.record(request_.key) is None
        caller.commit()
    record = stored.record(request_.key)
    assert record is not None
    assert (record["state"], record["outcome"], record["transaction_id"]) == ("completed", "acted", None)
    assert stored.ask("SELECT count(*) FROM shop") == [(1,)]
    repeated = place.ask(begin_known(rival_of(request_)))
    assert repeated.reply is Reply.REPEAT
    assert repeated.record.result == {"id": 1}


def test_a_rollback_leaves_nothing(place: Place, stored: Stored, request_: Request) -> None:
    with place.caller() as caller:
        begin(caller, request_)
        caller.execute("INSERT INTO shop VALUES (1)")
        finish(caller, request_)
        caller.rollback()
    assert stored.record(request_.key) is None
    assert stored.ask("SELECT count(*) FROM shop") == [(0,)]
    with place.caller() as caller:
        assert begin(caller, rival_of(request_)).reply is Reply.ACT
        caller.rollback()


def test_a_commit_midway_is_never_completed_and_ends_held(
    place: Place, stored: Stored, request_: Request
) -> None:
    with place.caller() as caller:
        assert begin(caller, request_).reply is Reply.ACT
        caller.execute("INSERT INTO shop VALUES (1)")
        caller.commit()
        assert not finish(caller, request_)
    record = stored.record(request_.key)
    assert record is not None
    assert record["state"] == "claimed"
    assert record["transaction_id"] is not None
    for effect in (Row(), Hold()):
        busy = place.ask(begin_known(replace(rival_of(request_), effect=effect)))
        assert busy.reply is Reply.IN_PROGRESS
    late = place.ask(complete_late(request_, result=None, result_dropped=False))
    assert isinstance(late, Lost)
    stored.change(request_.key, lease_until=Ago(1), acting_at=None)
    with place.caller() as caller:
        rival = rival_of(request_)
        begun = begin(caller, rival)
        assert (begun.reply, begun.reason) == (Reply.HELD, "its handler committed midway")
        if begun.unwritten:  # the guard writes it apart: the caller's refusal rolls this transaction back
            begun = place.ask(begin_known(rival))
            assert (begun.reply, begun.reason) == (Reply.HELD, "its handler committed midway")
        caller.commit()
    record = stored.record(request_.key)
    assert record is not None
    assert (record["state"], record["token"]) == ("held", request_.token)
    late = place.ask(complete_late(request_, result=None, result_dropped=False))
    assert isinstance(late, Lost)


def test_a_rollback_midway_is_not_completed_either(place: Place, stored: Stored, request_: Request) -> None:
    with place.caller() as caller:
        begin(caller, request_)
        caller.rollback()
        assert not finish(caller, request_)
    assert stored.record(request_.key) is None


def test_others_hear_busy_and_wait_for_no_handler(place: Place, stored: Stored, request_: Request) -> None:
    """The winner's transaction is open: a rival's `Row()` gets None, an outside effect LockBusy; both soon."""
    with place.caller() as winner, place.caller() as loser:
        assert begin(winner, request_).reply is Reply.ACT
        with cleaned(loser):
            assert begin(loser, rival_of(request_)) is None
        with pytest.raises(LockBusy):
            place.ask(begin_new(replace(rival_of(request_), token="o" * 32)))
        assert finish(winner, request_)
        winner.commit()
        loser.rollback()
    with place.caller() as later:
        assert begin(later, rival_of(request_)).reply is Reply.REPEAT
        later.rollback()


def test_a_released_operation_is_claimed_by_one(place: Place, stored: Stored, request_: Request) -> None:
    place.ask(begin_new(request_))
    stored.change(request_.key, state="released", token=None, acting_at=None)
    second, third = rival_of(request_), replace(request_, token="3" * 32)
    with place.caller() as winner, place.caller() as loser:
        begun = begin(winner, second)
        assert (begun.reply, begun.claim) == (Reply.ACT, 2)
        assert begin(loser, third) is None
        loser.rollback()
        assert finish(winner, second)
        winner.commit()
    record = stored.record(request_.key)
    assert record is not None
    assert (record["state"], record["claim"], record["claims"]) == ("completed", 2, 2)


def test_a_stale_claim_of_an_outside_effect_is_taken_over_and_completed(
    place: Place, stored: Stored, request_: Request
) -> None:
    """The declaration changed to `Row()`: the take-over is this transaction's, so that it can complete."""
    place.ask(begin_new(replace(request_, effect=Hold())))
    stored.change(request_.key, lease_until=Ago(5), acting_at=None)
    second = rival_of(request_)
    with place.caller() as caller:
        assert begin(caller, second).reply is Reply.ACT
        assert finish(caller, second)
        caller.commit()
    record = stored.record(request_.key)
    assert record is not None
    assert (record["state"], record["takeovers"]) == ("completed", 1)


def test_the_callers_rows_survive_every_answer(place: Place, stored: Stored, request_: Request) -> None:
    completed = make_request(place.dialect)
    place.ask(begin_new(completed))
    stored.change(completed.key, state="completed", outcome="acted", completed_at=Ago(1))
    running = make_request(place.dialect)
    place.ask(begin_new(running))
    with place.caller() as caller:
        caller.execute("INSERT INTO shop VALUES (1)")
        for known, reply in ((completed, Reply.REPEAT), (running, Reply.IN_PROGRESS)):
            assert begin(caller, replace(rival_of(known), effect=Row())).reply is reply
        other = replace(rival_of(completed), fingerprint="0" * 64)
        assert begin(caller, other).reply is Reply.MISMATCH
        caller.execute("INSERT INTO shop VALUES (2)")
        caller.commit()
    assert stored.ask("SELECT count(*) FROM shop") == [(2,)]
    assert [event for event, *_ in stored.events(completed.key)] == ["refused"]


@pytest.mark.parametrize("isolation", STRICT)
def test_a_conflict_under_a_stricter_isolation_says_run_it_again(
    place: Place, stored: Stored, request_: Request, isolation: str
) -> None:
    """PostgreSQL: in a savepoint, so that the caller's rows survive. MySQL reads what was committed last."""
    if place.dialect == "sqlite":
        pytest.skip("SQLite has one isolation, and one writer")
    with place.caller(isolation=isolation) as caller:
        caller.execute("INSERT INTO shop VALUES (1)")
        caller.execute("SELECT count(*) FROM shop")
        place.ask(begin_new(request_))
        stored.change(request_.key, state="completed", outcome="acted", completed_at=Ago(0))
        if place.dialect == "postgresql":
            assert isinstance(caller.ask(begin_row(rival_of(request_))), Again)
            with pytest.raises(RetryTransaction):
                caller.ask(begin_row(rival_of(request_), in_savepoint=True))
        else:
            assert begin(caller, rival_of(request_)).reply is Reply.REPEAT
        caller.execute("INSERT INTO shop VALUES (2)")
        caller.commit()
    assert stored.ask("SELECT count(*) FROM shop") == [(2,)]


@pytest.mark.parametrize("isolation", STRICT)
def test_a_released_record_that_changed_under_a_stricter_isolation(
    place: Place, stored: Stored, request_: Request, isolation: str
) -> None:
    if place.dialect != "postgresql":
        pytest.skip("of PostgreSQL's snapshots")
    place.ask(begin_new(request_))
    stored.change(request_.key, state="released", token=None, acting_at=None)
    with place.caller(isolation=isolation) as caller:
        caller.execute("INSERT INTO shop VALUES (1)")
        caller.execute("SELECT count(*) FROM semel.operations")
        stored.change(request_.key, revision=9)
        assert isinstance(caller.ask(begin_row(rival_of(request_))), Again)
        with pytest.raises(RetryTransaction):
            caller.ask(begin_row(rival_of(request_), in_savepoint=True))
        caller.commit()
    assert stored.ask("SELECT count(*) FROM shop") == [(1,)]


def test_two_operations_in_one_transaction(place: Place, stored: Stored, request_: Request) -> None:
    other = make_request(place.dialect, effect=Row())
    with place.caller() as caller:
        assert begin(caller, request_).reply is Reply.ACT
        assert begin(caller, other).reply is Reply.ACT
        assert finish(caller, other)
        assert finish(caller, request_)
        caller.commit()
    assert {stored.record(each.key)["state"] for each in (request_, other)} == {"completed"}
