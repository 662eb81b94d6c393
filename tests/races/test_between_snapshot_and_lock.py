"""What happens to a row after a claim's snapshot and before its lock: the claim looks again, and leaves it alone.

The claim orders its lanes by ``random()``: a function of that name, first on the search path, holds it up just there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.support.rivals import LEASE, OVER, Rival, claiming, fences, settling
from tests.support.stored import ask, stored_jobs

from semel import App
from semel.operate import cancel
from semel.store.jobs import Fence, extend, give_back

GATE = 4711
HOLD_UP = f"""
    CREATE SCHEMA held_up;
    CREATE FUNCTION held_up.random() RETURNS double precision VOLATILE LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock_shared({GATE});
        RETURN 0;
    END $$
"""


@pytest.fixture
def slow(loser: Rival, winner: Rival, database_url: str) -> Iterator[Rival]:
    """A rival whose claims stop at the gate, which the winner holds shut."""
    ask(database_url, HOLD_UP)
    loser.session.connection.execute("SET search_path = held_up, pg_catalog")
    winner.session.connection.execute(f"SELECT pg_advisory_lock({GATE})")
    yield loser
    open_gate(winner)


def open_gate(winner: Rival) -> None:
    winner.session.connection.execute("SELECT pg_advisory_unlock_all()")


CHANGES: dict[str, Callable[[Rival, list[Fence]], object]] = {
    "extended": lambda rival, late: rival.does(extend(late, lease=LEASE)),
    "done": lambda rival, late: rival.does(settling(late)),
    "rescued": lambda rival, late: rival.claims(worker=7),
    "cancelled": lambda rival, late: rival.does(cancel(late[0].job_id, who="a person")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_job_whose_lease_was_over_at_the_snapshot_is_not_rescued(
    app: App, winner: Rival, slow: Rival, database_url: str, change: str
) -> None:
    app.jobs["quick"].enqueue()
    late = winner.claims(lease=OVER)
    claim = slow.waits_for(claiming(worker=2))
    CHANGES[change](winner, late)
    (before,) = stored_jobs(database_url)
    open_gate(winner)
    assert claim.result(10).taken == ()
    assert stored_jobs(database_url) == [before]


def test_a_job_that_another_claimed_meanwhile_is_claimed_once(
    app: App, winner: Rival, slow: Rival, database_url: str
) -> None:
    app.jobs["quick"].enqueue_many([()] * 2)
    claim = slow.waits_for(claiming(worker=2, limit=2))
    first = winner.claims()
    open_gate(winner)
    (other,) = fences(claim.result(10))
    assert other.job_id != first[0].job_id
    assert {job.attempts for job in stored_jobs(database_url)} == {1}


def test_a_job_given_back_meanwhile_may_be_claimed_again(
    app: App, winner: Rival, slow: Rival, database_url: str
) -> None:
    app.jobs["quick"].enqueue()
    late = winner.claims(lease=OVER)
    claim = slow.waits_for(claiming(worker=2))
    winner.does(give_back(late))
    open_gate(winner)
    claimed = claim.result(10).taken
    (job,) = stored_jobs(database_url)
    assert (job.status, job.crashes) == (("running", 0) if claimed else ("pending", 0))
