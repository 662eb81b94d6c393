"""What a claim reads over a million rows: a small constant for each row it takes and each lane, whatever else is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import psycopg
import pytest
from tests.servers import SharedServer
from tests.support.plans import JIT_ABOVE, Plan, explain
from tests.support.rivals import LEASE, Rival, claiming

from semel.store.jobs import Fence, settle
from semel.store.marks import Lane, Mark, claim_marked, sweep
from semel.store.sleep import Serves

MILLION = """
    INSERT INTO semel.jobs (kind, priority, run_at)
    SELECT 'later', 10, now() + interval '1 day' + make_interval(secs => number) FROM generate_series(1, 1000000) AS number
"""
DUE = "INSERT INTO semel.jobs (kind, run_at) SELECT 'now', now() - interval '1 min' FROM generate_series(1, {count})"
LANES = """
    INSERT INTO semel.jobs (kind, queue, priority, run_at)
    SELECT 'now', {queue}, {priority}, now() - interval '1 min' FROM generate_series(1, 3000) AS number
"""
FINISHED = """
    INSERT INTO semel.jobs (kind, status, run_at, finished_at)
    SELECT 'gone', 'failed', now() - interval '1 day', now() FROM generate_series(1, 200000)
"""
RUNNING = """
    INSERT INTO semel.jobs (kind, status, attempts, claim, worker, locked_until, run_at)
    SELECT 'long', 'running', 1, number, 1, now() + interval '1 hour', now() - interval '1 hour'
      FROM generate_series(1, 10000) AS number
"""

A_ROW = 25
"""Pages for each row that is taken: most of them for the update itself."""

A_LANE = 12
FIXED = 60
GONE = 30_000

Fill = Callable[..., None]


@pytest.fixture(scope="module")
def million_url(shared_server: SharedServer) -> Iterator[str]:
    """A database with a million future jobs of a higher priority than all others."""
    url = shared_server.create_database()
    execute(url, MILLION, "VACUUM ANALYZE semel.jobs")
    yield url
    shared_server.drop_database(url)


@pytest.fixture
def million(million_url: str) -> Iterator[Fill]:
    """Puts rows beside the million, for one test."""
    yield lambda *statements: execute(million_url, *statements, "VACUUM ANALYZE semel.jobs")
    execute(million_url, "DELETE FROM semel.jobs WHERE kind <> 'later'", "VACUUM semel.jobs")


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def check(plan: Plan, *, rows: int, lanes: int) -> None:
    assert "Seq Scan on jobs" not in plan.text, plan.text
    assert "JIT" not in plan.text, plan.text
    assert plan.cost < JIT_ABOVE, plan.text
    assert plan.buffers < rows * A_ROW + lanes * A_LANE + FIXED, plan.text


STATES = {
    "nothing due": ([], 0, 1),
    "due jobs": ([DUE.format(count=3000)], 20, 2),
    "and finished ones": ([FINISHED, DUE.format(count=3000)], 20, 2),
    "many priorities": ([LANES.format(queue="'default'", priority="number % 30 - 15")], 20, 31),
    "many queues": ([LANES.format(queue="'queue ' || number % 30", priority="0")], 20, 31),
}


@pytest.mark.parametrize("state", STATES)
def test_a_claim_reads_a_constant_for_each_row_and_lane(million_url: str, million: Fill, state: str) -> None:
    statements, rows, lanes = STATES[state]
    million(*statements)
    check(explain(million_url, claiming(limit=20)), rows=rows, lanes=lanes)
    check(explain(million_url, claiming(limit=200)), rows=10 * rows, lanes=lanes)
    check(explain(million_url, sweep(Serves())), rows=0, lanes=lanes)


def test_a_claim_of_an_empty_table_reads_next_to_nothing(database_url: str) -> None:
    assert explain(database_url, claiming(limit=200)).buffers < FIXED
    assert explain(database_url, sweep(Serves())).buffers < FIXED


def check_from_marks(url: str, marks: Mapping[Lane, Mark]) -> None:
    """And that a claim from the beginning reads more, so that there is something to be spared."""
    plans = {
        size: explain(url, claim_marked(marks, worker=1, limit=size, lease=LEASE, max_crashes=3))
        for size in (20, 200)
    }
    for size, plan in plans.items():
        check(plan, rows=size, lanes=len(marks))
    assert explain(url, claiming(limit=20)).buffers > plans[20].buffers + FIXED


def test_a_claim_from_a_mark_reads_nothing_of_what_runs_for_long(million_url: str, million: Fill) -> None:
    million(RUNNING, DUE.format(count=3000))
    with closing(Rival(million_url)) as rival:
        check_from_marks(million_url, rival.does(sweep(Serves())).due)


def test_a_claim_from_a_mark_reads_nothing_that_a_held_snapshot_keeps(
    million_url: str, million: Fill
) -> None:
    million(DUE.format(count=GONE + 3000))
    with closing(psycopg.connect(million_url)) as holder, closing(Rival(million_url)) as rival:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT 1")
        gone, marks = 0, rival.does(sweep(Serves())).due
        while gone < GONE:
            found = rival.does(claim_marked(marks, worker=1, limit=500, lease=LEASE, max_crashes=3)).taken
            gone += len(found)
            marks = {Lane("default", 0): Mark(found[-1].run_at, found[-1].id)}
            rival.does(settle([Fence(job.id, job.claim, 1) for job in found], [], remember=LEASE))
        check_from_marks(million_url, marks)
