"""Who claims the same queues takes turns: so many claims at once, the others wait, and a frozen one closes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime

import pytest
from tests.support.rivals import LEASE, Rival
from tests.support.stored import ask
from tests.worker.helpers import until

from semel import App
from semel.core.settings import Settings
from semel.queue.worker.lanes import PATIENCE, Lanes
from semel.store.faults import LockBusy
from semel.store.jobs import Claims, claim
from semel.store.marks import Lane, Mark, claim_marked
from semel.store.sleep import Serves
from semel.store.statement import Operation
from semel.store.turns import TURNS

ALL = Serves()


def store(url: str, queue: str = "default") -> None:
    ask(url, "INSERT INTO semel.jobs (kind, queue) VALUES ('quick', %s)", queue)


def from_the_beginning(serves: Serves, waiting: bool = False) -> Operation[Claims]:
    return claim(
        worker=1,
        limit=1,
        lease=LEASE,
        max_crashes=3,
        queues=serves.queues,
        without=serves.without,
        turn=serves.turn,
        waiting=waiting,
    )


def from_a_mark(serves: Serves, waiting: bool = False) -> Operation[Claims]:
    marks = {
        Lane("default", 0): Mark(None, 0),
        Lane("an'other", 1): Mark(datetime(2020, 1, 1, tzinfo=UTC), 7),
    }
    return claim_marked(
        marks, worker=1, limit=1, lease=LEASE, max_crashes=3, turn=serves.turn, waiting=waiting
    )


FORMS = pytest.mark.parametrize("claiming", [from_the_beginning, from_a_mark])


@contextmanager
def turns_taken(url: str, serves: Serves = ALL, turns: int = TURNS) -> Iterator[None]:
    """Inside, so many claims, each in a turn of its own, have begun and do not end."""
    with ExitStack() as stack:
        for _ in range(turns):
            rival = Rival(url)
            stack.callback(rival.close)
            found = stack.enter_context(rival.holds(from_the_beginning(serves)))
            assert not found.busy
        yield


@FORMS
def test_without_a_turn_it_says_so_and_takes_nothing(
    database_url: str, winner: Rival, claiming: Callable[[Serves], Operation[Claims]]
) -> None:
    with turns_taken(database_url):
        store(database_url)
        found = winner.does(claiming(ALL))
        assert found.busy
        assert not found.taken
    found = winner.does(claiming(ALL))
    assert len(found.taken) == 1
    assert not found.busy


def test_who_claims_something_else_takes_no_turn_of_theirs(database_url: str, winner: Rival) -> None:
    with turns_taken(database_url):
        store(database_url)
        assert winner.does(from_the_beginning(Serves(("default",)))).taken


def test_a_claim_that_asks_for_no_turn_needs_none(database_url: str, winner: Rival) -> None:
    with turns_taken(database_url):
        store(database_url)
        assert winner.claims()


@FORMS
def test_waiting_ends_where_a_claim_ends_and_what_was_stored_meanwhile_is_seen(
    database_url: str, winner: Rival, claiming: Callable[[Serves, bool], Operation[Claims]]
) -> None:
    with turns_taken(database_url):
        waiting = winner.waits_for(claiming(ALL, True))
        ask(
            database_url,
            "INSERT INTO semel.jobs (kind, queue, run_at) VALUES ('quick', 'default', now() - interval '1 hour')",
        )
    assert len(waiting.result(10).taken) == 1
    with turns_taken(database_url):
        pass  # it has left no lock behind


@FORMS
def test_waiting_is_given_up_and_nothing_is_taken(
    database_url: str, winner: Rival, claiming: Callable[[Serves, bool], Operation[Claims]]
) -> None:
    with turns_taken(database_url):
        store(database_url)
        with pytest.raises(LockBusy):
            winner.does(claiming(ALL, True))
    assert len(winner.does(claiming(ALL, False)).taken) == 1


@pytest.mark.parametrize("attempt", range(3))
def test_who_has_waited_holds_one_turn(database_url: str, winner: Rival, attempt: int) -> None:
    with winner.holds(from_the_beginning(ALL, True)), turns_taken(database_url, turns=TURNS - 1):
        with closing(Rival(database_url)) as rival:
            assert rival.does(from_the_beginning(ALL)).busy


def test_after_a_few_answers_of_that_kind_a_child_claims_without_a_turn(
    database_url: str, winner: Rival
) -> None:
    lanes, settings = Lanes(ALL), Settings()
    with turns_taken(database_url):
        store(database_url)
        found = [winner.does(lanes.take(1, 1, settings)) for _ in range(PATIENCE + 1)]
        assert [answer.busy for answer in found] == [True] * PATIENCE + [False]
        assert len(found[-1].taken) == 1
        assert winner.does(lanes.take(1, 1, settings)).busy, "it asks for a turn again"


def test_claims_that_are_frozen_in_their_turns_hold_up_no_worker(database_url: str) -> None:
    ran = asyncio.Event()
    app = App(database_url)

    @app.job
    async def quick() -> None:
        ran.set()

    async def work() -> None:
        async with app.worker(poll="50 ms"):
            store(database_url)
            await until(ran.is_set, "it runs")

    with turns_taken(database_url):
        asyncio.run(work())
