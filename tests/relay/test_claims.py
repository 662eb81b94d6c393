"""Claims in order per key: two sessions at one key, whatever happens between their snapshots and their locks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from tests.relay.forwarded import make_app
from tests.support.rivals import LEASE, OVER, Rival, fences, settling
from tests.support.stored import ask

from semel.operate import cancel
from semel.store.jobs import Claims, Detail, claim, claim_in_order, extend, give_back
from semel.store.statement import Operation

GATE = 4712
HOLD_UP = f"""
    CREATE SCHEMA held_up;
    CREATE FUNCTION held_up.statement_timestamp() RETURNS timestamptz VOLATILE LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock_shared({GATE});
        RETURN pg_catalog.statement_timestamp();
    END $$
"""
"""Holds a claim up after its snapshot, before its first lock."""


@pytest.fixture
def one(database_url: str) -> Iterator[Rival]:
    with closing(Rival(database_url)) as rival:
        yield rival


@pytest.fixture
def two(database_url: str) -> Iterator[Rival]:
    with closing(Rival(database_url)) as rival:
        yield rival


def in_order(
    worker: int = 1, *, limit: int = 100, lease: timedelta = LEASE, start: str = ""
) -> Operation[Claims]:
    return claim_in_order(
        worker=worker, limit=limit, lease=lease, max_crashes=32_767, queue="out", start=start
    )


def store(url: str, keys: str) -> None:
    """One job a letter, which is its key; a dot is a job without one."""
    app = make_app(url)
    note = app.jobs["note"]
    app.enqueue_many(
        [note.using(ordering_key=None if key == "." else key).new(n) for n, key in enumerate(keys, 1)]
    )
    app.close()


def ids(found: Claims) -> list[int]:
    return [job.id for job in found.taken]


def test_a_key_is_taken_in_order_and_by_one(database_url: str, one: Rival, two: Rival) -> None:
    store(database_url, "aabab.")
    with one.holds(in_order(limit=2)) as first:
        assert ids(first) == [1, 3], "the first of each key comes before the second of any"
        assert ids(two.does(in_order(2))) == [], "not committed: the keys are locked"
    assert ids(two.does(in_order(2))) == [], "committed: the keys are closed"
    one.does(settling(fences(first)[:1]))
    assert ids(two.does(in_order(2))) == [2, 4], "a is open again, b is not"
    assert ids(two.does(in_order(2))) == []
    assert ids(
        one.does(claim(worker=1, limit=10, lease=LEASE, max_crashes=3, queues=["out"], keyless=True))
    ) == [6]


def test_what_waits_closes_its_key(database_url: str, one: Rival) -> None:
    store(database_url, "aaabbb")
    claimed = fences(one.does(in_order()))
    later = Detail(1, claimed[0].claim, status="pending", delay=60.0)
    one.does(settling([fence for fence in claimed if fence.job_id == 1], later))
    one.does(give_back([fence for fence in claimed if fence.job_id != 1]))
    assert ids(one.does(in_order())) == [4, 5, 6], "job 1 waits to be tried again"
    ask(database_url, "UPDATE semel.jobs SET run_at = now() WHERE id = 1")
    ask(database_url, "UPDATE semel.jobs SET run_at = now() + interval '1 h' WHERE id = 3")
    assert ids(one.does(in_order())) == [1, 2], "job 3 is delayed"


@pytest.mark.parametrize("status", ["failed", "held", "cancelled", "done"])
def test_what_ended_opens_its_key(database_url: str, one: Rival, status: str) -> None:
    store(database_url, "aa")
    claimed = fences(one.does(in_order(limit=1)))
    one.does(settling(claimed, Detail(1, claimed[0].claim, status=status)))
    assert ids(one.does(in_order())) == [2]


def test_a_lease_that_is_over_is_rescued_in_order(database_url: str, one: Rival, two: Rival) -> None:
    store(database_url, "aaab")
    late = fences(one.does(in_order(lease=OVER)))
    one.does(extend([fence for fence in late if fence.job_id == 2], lease=LEASE))
    assert ids(two.does(in_order(2))) == [1, 4], "job 2 is still held: what follows it is not taken"


def test_a_row_that_somebody_has_locked_ends_the_run(database_url: str, one: Rival, two: Rival) -> None:
    store(database_url, "aaaab")
    with one.holds(cancel(3, who="a person")):
        assert ids(two.does(in_order(2))) == [1, 2, 5]


@pytest.fixture
def slow(database_url: str, one: Rival, two: Rival) -> Rival:
    """A rival whose claims stop at the gate, which the other holds shut."""
    store(database_url, "aaaab")
    ask(database_url, HOLD_UP)
    two.session.connection.execute("SET search_path = held_up, pg_catalog")
    one.session.connection.execute(f"SELECT pg_advisory_lock({GATE})")
    return two


def after_the_snapshot(slow: Rival, winner: Rival, *acts: Any) -> list[int]:
    """What the slow one takes, where this was done between its snapshot and its locks."""
    answer = slow.waits_for(in_order(2))
    for act in acts:
        winner.does(act)
    winner.session.connection.execute("SELECT pg_advisory_unlock_all()")
    return ids(answer.result(10))


def test_a_key_taken_after_the_snapshot_is_passed_over(slow: Rival, one: Rival) -> None:
    assert after_the_snapshot(slow, one, in_order()) == []


def test_a_key_of_which_only_the_first_was_taken_is_passed_over(slow: Rival, one: Rival) -> None:
    assert after_the_snapshot(slow, one, in_order(limit=1)) == [5]


def test_a_key_whose_first_was_taken_and_done_is_passed_over_once(slow: Rival, one: Rival) -> None:
    answer = slow.waits_for(in_order(2))
    one.does(settling(fences(one.does(in_order(limit=1)))))
    one.session.connection.execute("SELECT pg_advisory_unlock_all()")
    assert ids(answer.result(10)) == [5]
    assert ids(one.does(in_order())) == [2, 3, 4]


def test_a_key_that_was_taken_and_given_back_can_be_taken(slow: Rival, one: Rival) -> None:
    answer = slow.waits_for(in_order(2))
    one.does(give_back(fences(one.does(in_order()))))
    one.session.connection.execute("SELECT pg_advisory_unlock_all()")
    taken = ids(answer.result(10))
    assert taken in ([1, 2, 3, 4, 5], [5], [])


def test_many_keys_take_turns(database_url: str, one: Rival) -> None:
    store(database_url, "abcdef" * 3)
    assert ids(one.does(in_order(limit=2))) == [1, 2]
    assert ids(one.does(in_order(limit=2, start="b"))) == [3, 4]
    assert ids(one.does(in_order(limit=5, start="d"))) == [5, 6, 11, 12, 17]


def test_an_extension_leaves_no_lock_between_its_statements(
    database_url: str, one: Rival, two: Rival
) -> None:
    """A process that is frozen just there must not keep its jobs from being rescued."""
    store(database_url, "ab")
    held = fences(one.does(in_order()))
    one.does(settling(held[1:]))
    free = []

    def watch(moment: str, name: str) -> None:
        if (moment, name) == ("before", "queue/find_held"):
            statement = "SELECT id FROM semel.jobs FOR NO KEY UPDATE SKIP LOCKED"
            free.extend(row[0] for row in two.session.connection.execute(statement).fetchall())

    one.session.watch = watch
    assert one.does(extend(held, lease=LEASE)) == {(2, held[1].claim)}
    assert free == [1]
