"""The fence is (id, claim, worker): whoever does not hold it changes nothing, in whatever order they come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.rivals import LEASE, OVER, Rival, claiming, fences, pairs, settling
from tests.support.stored import ask, statuses, stored_jobs

from semel import App
from semel.operate import cancel
from semel.store.jobs import Detail, Fence, expire, extend, give_back, store_progress, time_out
from semel.store.statement import Operation


def test_a_late_completion_waits_for_the_rescue_and_changes_nothing(
    app: App, winner: Rival, loser: Rival, database_url: str
) -> None:
    app.jobs["quick"].enqueue()
    late = loser.claims(worker=1, lease=OVER)
    with winner.holds(claiming(worker=2)) as rescued:
        answer = loser.waits_for(settling(late))
    assert answer.result(10) == frozenset()
    assert winner.does(settling(fences(rescued))) == pairs(fences(rescued))
    (job,) = stored_jobs(database_url)
    assert (job.claim, job.crashes) == (rescued.taken[0].claim, 1)


def test_a_rescue_passes_over_a_completion_under_way(app: App, winner: Rival, loser: Rival) -> None:
    app.jobs["quick"].enqueue()
    late = winner.claims(lease=OVER)
    with winner.holds(settling(late)) as settled:
        assert settled == pairs(late)
        assert loser.claims(worker=2) == []
    assert loser.claims(worker=2) == []


def test_an_extension_passes_over_a_rescue_under_way_and_finds_it_lost_afterwards(
    app: App, winner: Rival, loser: Rival, database_url: str
) -> None:
    app.jobs["quick"].enqueue()
    late = loser.claims(worker=1, lease=OVER)
    with winner.holds(claiming(worker=2)):
        assert loser.does(extend(late, lease=LEASE)) == frozenset(), "not lost before the rescue commits"
    before = ask(database_url, "SELECT locked_until FROM semel.jobs")
    assert loser.does(extend(late, lease=LEASE * 9)) == pairs(late)
    assert ask(database_url, "SELECT locked_until FROM semel.jobs") == before


def test_a_rescue_passes_over_an_extension_under_way(app: App, winner: Rival, loser: Rival) -> None:
    app.jobs["quick"].enqueue()
    late = winner.claims(lease=OVER)
    with winner.holds(extend(late, lease=LEASE)):
        assert loser.claims(worker=2) == []
    assert loser.claims(worker=2) == []
    assert winner.does(settling(late)) == pairs(late)


def test_a_cancel_waits_for_the_claim_and_takes_it_away(
    app: App, winner: Rival, loser: Rival, database_url: str
) -> None:
    job = app.jobs["quick"].enqueue()
    with winner.holds(claiming()) as claimed:
        answer = loser.waits_for(cancel(job.id, who="a person"))
    assert answer.result(10).before == "running"
    assert winner.does(settling(fences(claimed))) == frozenset()
    assert statuses(database_url) == {"cancelled": 1}


def test_a_claim_passes_over_a_cancel_under_way(app: App, winner: Rival, loser: Rival) -> None:
    job = app.jobs["quick"].enqueue()
    with winner.holds(cancel(job.id, who="a person")):
        assert loser.claims() == []
    assert loser.claims() == []


WRITES: dict[str, Callable[[Fence], Operation[Any]]] = {
    "settle": lambda held: settling([held]),
    "settle with details": lambda held: settling(
        [held], Detail(held.job_id, held.claim, status="pending", delay=0)
    ),
    "extend": lambda held: extend([held], lease=LEASE * 9),
    "give_back": lambda held: give_back([held]),
    "expire": lambda held: expire([held]),
    "time_out": lambda held: time_out(held, delay=LEASE, summary="late"),
    "store_progress": lambda held: store_progress([(held, 0.5, "half")]),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("wrong", ["job_id", "claim", "worker"])
def test_a_write_that_is_wrong_in_any_part_of_the_fence_changes_nothing(
    app: App, winner: Rival, database_url: str, write: str, wrong: str
) -> None:
    """Also in the worker alone: after a crash of the database a claim came back with its number."""
    app.jobs["quick"].enqueue_many([(), ()])
    held = winner.claims(limit=2)[0]
    stale = replace(held, **{wrong: getattr(held, wrong) + 1})
    look = "SELECT * FROM semel.all_jobs LEFT JOIN semel.job_progress ON job_id = id ORDER BY id"
    before = ask(database_url, look)
    winner.does(WRITES[write](stale))
    assert ask(database_url, look) == before
    winner.does(WRITES[write](held))
    assert ask(database_url, look) != before, "the right fence does change it"


@pytest.mark.parametrize("write", WRITES)
def test_a_number_that_two_rows_share_does_not_let_one_write_the_other(
    app: App, winner: Rival, database_url: str, write: str
) -> None:
    """The pair test: two rows with equal numbers, and a fence made of one row's id and the other's claim."""
    app.jobs["quick"].enqueue_many([(), (), ()])
    first, second, _ = winner.claims(limit=2) + winner.claims()
    ask(database_url, "UPDATE semel.jobs SET claim = %s WHERE id <> %s", second.claim, first.job_id)
    before = ask(database_url, "SELECT * FROM semel.all_jobs WHERE id = %s", first.job_id)
    winner.does(WRITES[write](replace(first, claim=second.claim)))
    assert ask(database_url, "SELECT * FROM semel.all_jobs WHERE id = %s", first.job_id) == before


def test_a_batch_settles_exactly_its_pairs(app: App, winner: Rival, database_url: str) -> None:
    """(A, claim of B) and (B, claim of A): the lists of ids and of claims hold what is right, the pairs do not."""
    app.jobs["quick"].enqueue_many([(), (), ()])
    first, second, third = winner.claims(limit=2) + winner.claims(limit=2)
    crossed = [replace(first, claim=second.claim), replace(second, claim=first.claim), third]
    assert winner.does(extend(crossed, lease=LEASE)) == pairs(crossed[:2])
    assert winner.does(settling(crossed)) == pairs([third])
    assert winner.does(give_back(crossed)) == 0
    assert statuses(database_url) == {"running": 2, "done": 1}


@pytest.mark.parametrize("worker_of_first", ["running", "given back", "crashed"])
def test_a_foreign_claim_takes_the_fence(
    app: App, winner: Rival, loser: Rival, database_url: str, worker_of_first: str
) -> None:
    """A program that claims with SKIP LOCKED and knows only the public columns."""
    app.jobs["quick"].enqueue()
    late = loser.claims(lease=OVER)
    if worker_of_first == "given back":
        loser.does(give_back(late))
    elif worker_of_first == "crashed":
        loser.does(expire(late))
    (taken,) = ask(
        database_url,
        "UPDATE semel.jobs SET status = 'running', attempts = attempts + 1, locked_until = now() + interval '1 min'"
        " WHERE id = (SELECT id FROM semel.jobs WHERE status = 'pending' OR locked_until < now()"
        "             ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING claim, worker",
    )
    assert taken[0] > late[0].claim
    assert taken[1] is None
    before = ask(database_url, "SELECT * FROM semel.all_jobs")
    assert loser.does(settling(late)) == frozenset()
    assert loser.does(extend(late, lease=LEASE)) == pairs(late)
    assert loser.does(give_back(late)) == 0
    assert winner.claims(worker=2) == [], "its lease holds"
    assert ask(database_url, "SELECT * FROM semel.all_jobs") == before


def test_giving_back_keeps_both_numbers_of_a_job_with_crashes(
    app: App, winner: Rival, loser: Rival, database_url: str
) -> None:
    app.jobs["quick"].enqueue()
    loser.claims(worker=1, lease=OVER)
    rescued = winner.claims(worker=2)
    assert (stored_jobs(database_url)[0].attempts, stored_jobs(database_url)[0].crashes) == (1, 1)
    assert winner.does(give_back(rescued)) == 1
    assert winner.does(settling(rescued)) == frozenset()
    (again,) = loser.does(claiming(worker=3)).taken
    assert (again.attempt, again.crashes) == (1, 1)


def test_giving_back_one_that_never_crashed_charges_nothing(
    app: App, winner: Rival, database_url: str
) -> None:
    app.jobs["quick"].enqueue()
    assert winner.does(give_back(winner.claims())) == 1
    (job,) = stored_jobs(database_url)
    assert (job.status, job.attempts, job.crashes) == ("pending", 0, 0)
