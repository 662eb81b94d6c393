"""What is measured counts only if every job ran exactly once, and the database agrees."""

from __future__ import annotations

import pytest

from benchmarks import limits
from benchmarks.cluster import sql
from benchmarks.driving import Bench
from benchmarks.figures import Refused
from benchmarks.peers import SEMEL, Peer

JOBS = 300


def enqueue(bench: Bench) -> None:
    bench.prepare(SEMEL)
    bench.call(SEMEL, "many", JOBS)


def change(bench: Bench, statement: str) -> None:
    with bench.cluster.connect(SEMEL.name) as connection:
        assert connection.execute(sql(statement)).rowcount == 1


def test_a_job_that_is_lost_and_one_that_runs_twice_refuse_the_drain(bench: Bench) -> None:
    enqueue(bench)
    change(
        bench, "UPDATE semel.jobs SET payload = jsonb_set(payload, '{i}', '8') WHERE payload ->> 'i' = '7'"
    )
    with pytest.raises(Refused, match="of 300 jobs 1 never ran and 1 ran more than once"):
        bench.burn(SEMEL, JOBS)


def test_a_job_that_ran_and_is_not_finished_refuses_the_drain(bench: Bench) -> None:
    enqueue(bench)
    with bench.cluster.connect(SEMEL.name) as connection:
        connection.execute(
            "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
            "CREATE TRIGGER lose BEFORE INSERT ON semel.jobs_done FOR EACH ROW"
            " WHEN (new.payload ->> 'i' = '7') EXECUTE FUNCTION lose()"
        )
    with pytest.raises(Refused, match="of 300 jobs 299 are finished in the database"):
        bench.burn(SEMEL, JOBS)


class Losing(Bench):
    """One of the jobs that are enqueued is gone at once."""

    def prepare(self, peer: Peer) -> None:
        super().prepare(peer)
        with self.cluster.connect(peer.name) as connection:
            connection.execute(
                "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS"
                " 'BEGIN DELETE FROM semel.jobs WHERE id = new.id; RETURN NULL; END';"
                "CREATE TRIGGER lose AFTER INSERT ON semel.jobs FOR EACH ROW"
                " WHEN (new.payload ->> 'i' = '7') EXECUTE FUNCTION lose()"
            )


def test_an_enqueued_job_that_is_not_there_refuses_the_enqueuing(bench: Bench) -> None:
    losing = Losing(bench.cluster, bench.redis, bench.environments, bench.scale, bench.left_out)
    with pytest.raises(Refused, match="50 jobs were enqueued, 49 are there"):
        losing.enqueue(SEMEL, "many", 50)


def test_a_worker_that_ends_refuses_the_drain(bench: Bench) -> None:
    bench.cluster.fresh(SEMEL.name)  # and no tables in it
    with pytest.raises(Refused, match=r"a worker ended: .*semel"), bench.working(SEMEL, JOBS) as (run, seen):
        run.until_all_ran(seen, lambda: JOBS)


def test_the_limit_is_counted_in_the_database(bench: Bench) -> None:
    assert limits.claim_in_batches(bench, 1_600, clients=8).value > 0
    assert limits.insert_one(bench, 100).value > 0
    assert limits.copy_in_batches(bench, 2_000).value > 0


def test_pgbench_that_fails_is_refused(bench: Bench) -> None:
    bench.cluster.fresh(limits.DATABASE)
    with pytest.raises(Refused, match='relation "jobs" does not exist'):
        limits.pgbench(bench, limits.SCRIPTS / "insert_one.sql", 1, 1)
