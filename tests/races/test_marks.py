"""Claims that go from marks: what they read, how the sweep moves the marks, and when a child turns to them and back."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.rivals import LEASE, OVER, Rival
from tests.support.stored import ask
from tests.support.waiting import until

from semel.core.settings import Settings
from semel.queue.worker.lanes import SLOW, Lanes
from semel.store.jobs import Claims, Fence, give_back
from semel.store.marks import Lane, Mark, Swept, claim_marked, sweep
from semel.store.sleep import Serves
from semel.store.statement import Operation

DEFAULT = Lane("default", 0)
NOW = datetime(2026, 1, 2, tzinfo=UTC)
ALL = Serves()


def from_marks(marks: dict[Lane, Mark], *, limit: int = 10, lease: timedelta = LEASE) -> Operation[Claims]:
    return claim_marked(marks, worker=1, limit=limit, lease=lease, max_crashes=3)


def store(url: str, *ages: float, queue: str = "default", priority: int = 0) -> list[int]:
    """One job for each age, in seconds since it was due."""
    statement = (
        "INSERT INTO semel.jobs (kind, queue, priority, run_at)"
        " SELECT 'quick', %s, %s, now() - make_interval(secs => age) FROM unnest(%s::float[]) WITH ORDINALITY AS a(age, n)"
        " ORDER BY n RETURNING id"
    )
    return [row[0] for row in ask(url, statement, queue, priority, list(ages))]


def mark_at(url: str, job: int) -> Mark:
    return Mark(*ask(url, "SELECT run_at, id FROM semel.jobs WHERE id = %s", job)[0])


def taken(found: Claims) -> list[int]:
    return [job.id for job in found.taken]


def test_a_claim_from_a_mark_takes_what_lies_behind_it(database_url: str, winner: Rival) -> None:
    _, at, behind = store(database_url, 90, 60, 30)
    marks = {DEFAULT: mark_at(database_url, at)}
    assert taken(winner.does(from_marks(marks))) == [at, behind]


def test_and_what_became_visible_late_within_a_second(database_url: str, winner: Rival) -> None:
    def late_is_taken() -> bool:
        _, late, last = store(database_url, 5.0, 0.3, 0.1)
        return late in taken(winner.does(from_marks({DEFAULT: mark_at(database_url, last)})))

    until(late_is_taken, "the machine asks within the second")


def test_lanes_are_served_in_the_order_given(database_url: str, winner: Rival) -> None:
    (low,), (high,) = store(database_url, 9), store(database_url, 3, priority=7)
    other = store(database_url, 9, queue="other")
    beginning = Mark(None, 0)
    marks = {Lane("default", 7): beginning, DEFAULT: beginning}
    assert taken(winner.does(from_marks(marks, limit=1))) == [high]
    assert taken(winner.does(from_marks(marks))) == [low]
    assert taken(winner.does(from_marks({Lane("other", 0): beginning}))) == other


def test_a_mark_without_a_time_stands_beside_one_with_a_time(database_url: str, winner: Rival) -> None:
    (first,), (second,) = store(database_url, 30), store(database_url, 60, queue="other")
    marks = {DEFAULT: Mark(None, 0), Lane("other", 0): mark_at(database_url, second)}
    assert taken(winner.does(from_marks(marks))) == [second, first]


def test_a_claim_from_marks_rescues_as_every_claim_does(database_url: str, winner: Rival) -> None:
    jobs = store(database_url, 30)
    marks = {DEFAULT: Mark(None, 0)}
    assert taken(winner.does(from_marks(marks, lease=OVER))) == jobs
    (again,) = winner.does(from_marks(marks)).taken
    assert (again.id, again.crashes) == (jobs[0], 1)


def test_a_sweep_tells_the_first_job_of_each_lane_that_might_be_claimed(
    database_url: str, winner: Rival
) -> None:
    first, _ = store(database_url, 60, 30)
    ran, _ = store(database_url, 60, 30, queue="other", priority=3)
    store(database_url, -60, queue="later")
    store(database_url, 60, queue="not mine")
    winner.does(from_marks({Lane("other", 3): Mark(None, 0)}, limit=1))
    found = winner.does(sweep(Serves(None, frozenset({"not mine"}))))
    assert found.due == {
        DEFAULT: mark_at(database_url, first),
        Lane("other", 3): mark_at(database_url, ran + 1),
    }
    assert found.waiting == (Lane("later", 0),)
    assert winner.does(sweep(Serves(("default",)))).due.keys() == {DEFAULT}


def test_a_sweep_of_nothing_tells_the_time(winner: Rival) -> None:
    found = winner.does(sweep(ALL))
    assert (found.due, found.waiting) == ({}, ())
    assert found.asked.run_at is not None
    assert 0 <= found.seconds < 5


@pytest.mark.parametrize("run_at", ["-infinity", "0001-01-01 00:00:00+00"])
def test_a_job_that_no_driver_can_read_the_time_of_is_claimed(
    database_url: str, winner: Rival, run_at: str
) -> None:
    ((job,),) = ask(
        database_url, "INSERT INTO semel.jobs (kind, run_at) VALUES ('quick', %s) RETURNING id", run_at
    )
    found = winner.does(sweep(ALL))
    assert found.due == {DEFAULT: Mark(None, job)}
    assert taken(winner.does(from_marks(dict(found.due)))) == [job]


class Child:
    """What a child does with its lanes, statement by statement."""

    def __init__(self, rival: Rival, slow: float = 0.0) -> None:
        self.rival = rival
        self.lanes = Lanes(ALL, slow)

    def sweeps(self) -> Swept:
        found = self.rival.does(sweep(ALL))
        self.lanes.learn(found)
        return found

    def claims(self, limit: int = 10) -> list[int]:
        return taken(self.rival.does(self.lanes.take(1, limit, Settings())))


@pytest.fixture
def child(winner: Rival) -> Child:
    made = Child(winner)
    made.sweeps()
    made.sweeps()
    assert made.lanes.marked
    return made


def test_marks_follow_what_was_taken(database_url: str, child: Child) -> None:
    jobs = store(database_url, 50, 40, 30)
    child.sweeps()
    assert child.claims(2) == jobs[:2]
    store(database_url, 45)
    assert child.claims() == jobs[2:], "the late one lies before the mark"


def test_a_sweep_moves_a_mark_back_to_what_lies_before_it(database_url: str, child: Child) -> None:
    """A late commit, a job that is given back, a lease that ended."""
    jobs = store(database_url, 50, 40, 30)
    child.sweeps()
    assert child.claims() == jobs
    assert child.claims() == []
    (late,) = store(database_url, 45)
    held = ask(database_url, "SELECT id, claim, worker FROM semel.jobs WHERE id = %s", jobs[0])
    child.rival.does(give_back([Fence(*row) for row in held]))
    ask(database_url, "UPDATE semel.jobs SET locked_until = now() - interval '1 s' WHERE id = %s", jobs[1])
    assert child.claims() == []
    child.sweeps()
    assert sorted(child.claims()) == sorted([jobs[0], late, jobs[1]])


def test_a_sweep_finds_new_lanes_and_keeps_those_that_wait(database_url: str, child: Child) -> None:
    (soon,) = store(database_url, -0.5, queue="soon")
    child.sweeps()
    (new,) = store(database_url, 5, queue="new")
    assert child.claims() == []
    child.sweeps()
    assert child.claims() == [new]
    until(lambda: child.claims() == [soon], "it is due, and its lane is known")


def test_a_sweep_moves_a_mark_on_where_others_took_what_lay_before(
    database_url: str, child: Child, loser: Rival
) -> None:
    jobs = store(database_url, 50, 40, 30)
    child.sweeps()
    assert [fence.job_id for fence in loser.claims(limit=2)] == jobs[:2]
    swept = child.sweeps()
    assert swept.due == {DEFAULT: mark_at(database_url, jobs[2])}
    (late,) = store(database_url, 45)
    assert child.claims() == jobs[2:]
    child.sweeps()
    assert child.claims() == [late]


def swept(seconds: float, due: dict[Lane, Mark] | None = None, waiting: tuple[Lane, ...] = ()) -> Swept:
    return Swept(due or {}, waiting, Mark(NOW, 0), seconds)


def told(lanes: Lanes, *seconds: float) -> bool:
    """Whether claims go from marks, after sweeps that took so long."""
    for each in seconds:
        lanes.learn(swept(each))
    return lanes.marked


def test_two_slow_sweeps_turn_to_marks_and_two_fast_ones_back() -> None:
    lanes, slow, fast = Lanes(ALL), 2 * SLOW, SLOW / 4
    assert not told(lanes, slow, fast, slow)
    assert lanes.undecided
    assert told(lanes, slow)
    assert not lanes.undecided
    assert told(lanes, fast, slow, fast, SLOW * 0.9)
    assert not told(lanes, fast, fast)


def test_of_many_lanes_those_that_had_nothing_for_long_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lanes = Lanes(ALL, slow=0.0)
    many = [Lane(f"queue {number}", 0) for number in range(300)]
    for _ in range(2):
        lanes.learn(swept(0.1, dict.fromkeys(many, Mark(NOW, 1))))
    lanes.learn(swept(0.1, dict.fromkeys(many[200:], Mark(NOW, 1))))
    assert known(lanes) == set(many), "until a while ago something was due in each"
    later = time.monotonic() + 60
    monkeypatch.setattr("semel.queue.worker.lanes.time.monotonic", lambda: later)
    lanes.learn(swept(0.1, dict.fromkeys(many[200:], Mark(NOW, 1))))
    assert known(lanes) == set(many[200:])


def known(lanes: Lanes) -> set[Lane]:
    statement: Any = next(lanes.take(1, 10, Settings()).steps())
    return set(map(Lane, statement.parameters["lanes"], statement.parameters["priorities"]))
