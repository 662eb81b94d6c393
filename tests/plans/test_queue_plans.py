"""The plans of the statements that every job passes, over 200,000 rows, and the HOT updates that the claim rests on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.servers import SharedServer
from tests.support.plans import JIT_ABOVE, explain, explain_statement
from tests.support.rivals import LEASE, OVER, Rival, claiming
from tests.support.stored import ask
from tests.support.waiting import until

from semel.store.jobs import (
    CLAIM_SIZES,
    Fence,
    claim_in_order,
    expire,
    extend,
    find_lag,
    find_settled,
    give_back,
    settle,
    time_out,
)
from semel.store.marks import Lane, Mark, claim_marked, sweep
from semel.store.sleep import Serves, look_ahead
from semel.store.statement import Operation, Statement

FUTURE = 100_000
DUE = 100_000

FILL = f"""
    INSERT INTO semel.jobs (kind, priority, run_at)
    SELECT 'later', 10, now() + interval '1 day' + make_interval(secs => number) FROM generate_series(1, {FUTURE}) AS number;
    INSERT INTO semel.jobs (kind, priority, run_at)
    SELECT 'now', number % 2, now() - make_interval(secs => number) FROM generate_series(1, {DUE}) AS number
"""


@pytest.fixture(scope="module")
def full_url(shared_server: SharedServer) -> Iterator[str]:
    """A database with as many future jobs, of a higher priority, as due ones."""
    url = shared_server.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(FILL)
        connection.execute("VACUUM ANALYZE semel.jobs")
    yield url
    shared_server.drop_database(url)


HELD = [Fence(FUTURE + number, 1, 1) for number in range(1, 201)]
OPERATIONS: dict[str, Operation[Any]] = {
    **{f"claim {size}": claiming(limit=size) for size in CLAIM_SIZES},
    "settle": settle(HELD, [], remember=LEASE),
    "extend": extend(HELD, lease=LEASE),
    "give_back": give_back(HELD),
    "expire": expire(HELD),
    "time_out": time_out(HELD[0], delay=LEASE, summary=""),
    "find_settled": find_settled(HELD),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_statement_of_a_job_reads_the_whole_table_or_is_compiled(full_url: str, name: str) -> None:
    plan = explain(full_url, OPERATIONS[name])
    assert "Seq Scan on jobs" not in plan.text, plan.text
    assert "JIT" not in plan.text, plan.text
    assert plan.cost < JIT_ABOVE, plan.text


def test_the_second_look_of_an_extension_goes_by_the_key(full_url: str) -> None:
    first = next(extend(HELD, lease=LEASE).steps())
    assert isinstance(first, Statement)
    parameters = {name: first.parameters[name] for name in ("ids", "claims", "workers")}
    plan = explain_statement(full_url, Statement("queue/find_held", parameters))
    assert "Seq Scan on jobs" not in plan.text, plan.text


def test_future_jobs_of_a_higher_priority_cost_a_claim_nothing(full_url: str) -> None:
    """About 25 pages a claimed row at most, and a few to find the lanes."""
    plan = explain(full_url, claiming(limit=20))
    assert plan.buffers < 700, plan.text


def test_claims_are_hot_updates(database_url: str) -> None:
    """At least 95 in 100: they write no index."""
    ask(
        database_url,
        "INSERT INTO semel.jobs (kind, payload) SELECT 'j', jsonb_build_object('id', n) FROM generate_series(1, 5000) AS n",
    )
    rival = Rival(database_url)
    while rival.claims(limit=200):
        pass
    rival.close()
    counters = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'semel.jobs'::regclass"
    until(lambda: ask(database_url, counters)[0][0] >= 5000, "the server has counted")
    ((updates, hot),) = ask(database_url, counters)
    assert hot >= 0.95 * updates


def test_no_index_names_a_column_that_a_claim_writes(database_url: str) -> None:
    """Neither in its key nor in its predicate; what a claim and a rescue write is seen from a row before and after."""
    ask(database_url, "INSERT INTO semel.jobs (kind) VALUES ('j')")
    look = "SELECT key, value FROM semel.jobs, jsonb_each_text(to_jsonb(jobs)) WHERE id = 1 ORDER BY key"
    before = dict(ask(database_url, look))
    rival = Rival(database_url)
    rival.claims(lease=OVER)
    claimed = dict(ask(database_url, look))
    rival.claims()
    rescued = dict(ask(database_url, look))
    rival.close()
    written = {name for name in before if len({before[name], claimed[name], rescued[name]}) > 1} | {"meta"}
    assert written >= {"status", "attempts", "crashes", "locked_until", "claim", "worker"}

    named = ask(
        database_url,
        "SELECT DISTINCT attname FROM pg_index JOIN pg_depend ON objid = indexrelid AND refobjid = indrelid"
        "  JOIN pg_attribute ON attrelid = indrelid AND attnum = refobjsubid"
        " WHERE indrelid = 'semel.jobs'::regclass",
    )
    assert {"queue", "run_at", "live"} <= {name for (name,) in named}
    assert {name for (name,) in named} & written == set()


def test_every_statement_of_a_job_has_a_plan_here() -> None:
    """One that is about claims and is not listed above would not be watched."""
    folder = Path(__file__).parents[2] / "src/semel/sql/queue"
    fenced = {path.stem for path in folder.glob("*.sql") if "pair (id, claim" in path.read_text("utf-8")}
    assert fenced <= {name.split()[0] for name in OPERATIONS}


KEYED = """
    INSERT INTO semel.jobs (kind, queue, ordering_key)
    SELECT 'keyed', 'relayed', 'key-' || lpad((number % 1000)::text, 4, '0') FROM generate_series(1, 100000) AS number
"""
CLOSED = """
    UPDATE semel.jobs SET run_at = now() + interval '1 hour' WHERE id IN (
        SELECT min(id) FROM semel.jobs WHERE queue = 'relayed' AND ordering_key < 'key-0100' GROUP BY ordering_key)
"""


def in_order(limit: int, *, start: str = "") -> Operation[Any]:
    return claim_in_order(worker=1, limit=limit, lease=LEASE, max_crashes=32767, queue="relayed", start=start)


def test_a_claim_in_order_reads_no_backlog(full_url: str) -> None:
    """100,000 jobs in 1,000 keys, of which 100 are closed: about as many pages as the jobs it takes need."""
    with psycopg.connect(full_url, autocommit=True) as connection:
        connection.execute(KEYED)
        connection.execute(CLOSED)
        connection.execute("VACUUM ANALYZE semel.jobs")
    try:
        for size in CLAIM_SIZES:
            plan = explain(full_url, in_order(size))
            assert "Seq Scan on jobs" not in plan.text, plan.text
            assert "JIT" not in plan.text, plan.text
            assert plan.cost < JIT_ABOVE, plan.text
        plan = explain(full_url, in_order(200))
        assert plan.buffers < 100 * 12 + 200 * 60, plan.text
        lag = explain(full_url, find_lag("relayed"))
        assert lag.buffers < 60, lag.text
    finally:
        with psycopg.connect(full_url, autocommit=True) as connection:
            connection.execute("DELETE FROM semel.jobs WHERE queue = 'relayed'")
            connection.execute("VACUUM ANALYZE semel.jobs")


HOT: dict[str, Operation[Any]] = {
    "claim": claiming(limit=100),
    "claim from marks": claim_marked(
        {Lane("default", 0): Mark(None, 0)}, worker=1, limit=100, lease=LEASE, max_crashes=3
    ),
    "sweep": sweep(Serves()),
    "look ahead": look_ahead(Serves(), reach=LEASE, missed=LEASE),
    "settle one": settle(HELD[:1], [], remember=LEASE),
    "settle many": settle(HELD, [], remember=LEASE),
}


@pytest.mark.parametrize("name", HOT)
def test_what_is_asked_all_the_time_is_not_planned_each_time(name: str, full_url: str) -> None:
    """The server plans the first five for their parameters, and keeps to one plan where that is as cheap."""
    with closing(Rival(full_url)) as rival, rival.session.connection.transaction(force_rollback=True):
        for _ in range(20):
            rival.does(HOT[name])
        plans = rival.session.connection.execute(
            "SELECT custom_plans, generic_plans FROM pg_prepared_statements ORDER BY generic_plans DESC LIMIT 1"
        ).fetchone()
    assert plans is not None
    assert plans[0] <= 5 < plans[1], plans
