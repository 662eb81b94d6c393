"""What each promise of the queue costs: scripts/measure_promises.py --help.

On one embedded server, in turns: jobs are stored, claimed and settled by the statements of a worker over one connection; then
the same with one promise taken out of the statements or the tables. What differs is that promise's price, in the server
process's CPU and in its bytes of the write-ahead log. The price of a time limit, which a worker's child pays, is measured by
a drain. Reads /proc: Linux only; PostgreSQL 18 for the bytes.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from measure_worker import app as drained
from measure_worker import drain

from semel.cli.benched import SCHEMA
from semel.embedded import EmbeddedServer
from semel.queue.app import App
from semel.sql import Catalogue, Text
from semel.store.jobs import Detail, Fence, claim, settle
from semel.store.migrate import migrate_database
from semel.store.statement import Operation, Statement

HERE = Path(__file__).resolve()
BATCH = 200
LEASE = timedelta(minutes=1)
TRACEBACK = "\n".join(f'  File "shop/jobs.py", line {line}, in charge_order' for line in range(40))

app = App()


@app.job
async def nothing(number: int, address: str) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Way:
    """The queue, with something taken out."""

    name: str
    cuts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the statement's name: patterns of what is left out of it."""
    ddl: str = ""
    failures: int = 0
    """How often each attempt fails first, with a traceback."""


@dataclass
class Cost:
    """Of one job: µs of the server process, bytes of its log."""

    cpu: list[float] = field(default_factory=list)
    log: list[float] = field(default_factory=list)


HISTORY = {"queue/settle": (r"\), stored AS \(.*?(?=\), kept AS \()",)}
FENCE = {
    "queue/settle": (r" AND owned\.claim = ending\.claim AND owned\.worker = ending\.worker",),
    "queue/claim": (r"claim = nextval\([^)]*\),", r"worker = CAST\(:worker AS bigint\),"),
}
CHECKS = """
DO $$DECLARE found record; BEGIN
    FOR found IN SELECT conname, conrelid::regclass AS place FROM pg_constraint
                  WHERE contype = 'c' AND conparentid = 0 AND conislocal
                    AND conrelid IN ('semel.jobs'::regclass, 'semel.jobs_done'::regclass) LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.place, found.conname);
    END LOOP;
END$$"""

WAYS = (
    Way("as it is"),
    Way("without the history", HISTORY),
    Way("without the fence", FENCE),
    Way(
        "without waking workers, without looking at a status given by hand",
        ddl="ALTER TABLE semel.jobs DISABLE TRIGGER USER",
    ),
    Way("each job fails once before, its traceback kept", failures=1),
    Way("without the checks of a row", ddl=CHECKS),
)


class Server:
    """One connection, the way of a worker; and what its server process has used."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.prepare_threshold = 2
        self._catalogue = Catalogue()

    def used(self) -> tuple[float, float]:
        pid = self.connection.info.backend_pid
        self.connection.execute("SELECT pg_stat_force_next_flush()")
        row = self.connection.execute(
            "SELECT wal_bytes FROM pg_stat_get_backend_wal(pg_backend_pid())"
        ).fetchone()
        assert row is not None
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e3, float(row[0])

    def run(self, operation: Operation[Any], way: Way) -> list[tuple[Any, ...]]:
        statement = next(operation.steps())
        assert isinstance(statement, Statement)
        text = self._catalogue.text(statement.name, **statement.literals)
        raw = text.raw
        for pattern in way.cuts.get(statement.name, ()):
            raw, found = re.subn(pattern, "", raw, flags=re.DOTALL)
            assert found == 1, (way.name, pattern)
        return self.connection.execute(Text(text.name, raw).named.encode(), statement.parameters).fetchall()


def one_turn(running: EmbeddedServer, database: str, way: Way, count: int) -> tuple[float, float]:
    """µs and bytes a job, from its storing to its end, in a database of its own."""
    with psycopg.connect(running.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}".encode())
        migrate_database(running.url(database))
        server = Server(running.url(database))
        if way.ddl:
            server.connection.execute(way.ddl.encode())
        drain_by_hand(server, way, count // 10)
        server.connection.execute("CHECKPOINT")
        cpu, log = server.used()
        drain_by_hand(server, way, count)
        now_cpu, now_log = server.used()
        server.connection.close()
        connection.execute(f"DROP DATABASE {database}".encode())
    return (now_cpu - cpu) / count, (now_log - log) / count


def drain_by_hand(server: Server, way: Way, count: int) -> None:
    """Store jobs, claim and settle them."""
    nothing.using(tx=server.connection).enqueue_many(
        [(number, f"user{number}@example.com") for number in range(count)]
    )
    for round_ in range(way.failures + 1):
        settled = 0
        while held := claimed(server, way):
            details = [failure(fence) for fence in held] if round_ < way.failures else []
            settled += len(server.run(settle(held, details, remember=LEASE), way))
            if settled == count:
                break
        assert settled == count, (way.name, settled)


def claimed(server: Server, way: Way) -> list[Fence]:
    operation = claim(worker=1, limit=BATCH, lease=LEASE, max_crashes=3, queues=None)
    return [Fence(row[0], row[1], 1) for row in server.run(operation, way)]


def failure(fence: Fence) -> Detail:
    error = {"attempt": 1, "type": "OSError", "message": "timed out", "traceback": TRACEBACK}
    return Detail(
        fence.job_id,
        fence.claim,
        status="pending",
        delay=0.0,
        error=msgspec.Raw(msgspec.json.encode(error)),
        summary="OSError: timed out",
    )


def show(costs: Mapping[str, Cost]) -> None:
    """Medians, and the median of what each turn differs from the queue as it is in the same turn."""
    whole = costs[WAYS[0].name]
    for name, cost in costs.items():
        cpu = statistics.median(one / other for one, other in zip(cost.cpu, whole.cpu, strict=True))
        log = statistics.median(one / other for one, other in zip(cost.log, whole.log, strict=True))
        print(
            f"{name}: {statistics.median(cost.cpu):.1f} µs ({cpu:.2f}), "
            f"{statistics.median(cost.log):.0f} bytes ({log:.2f})"
        )


def limits(url: str, count: int, repeat: int) -> None:
    """A child's CPU with a time limit on each job, and with none."""
    migrate_database(url, schema=SCHEMA)
    drained.point_to(url)
    found: dict[str, list[float]] = {"nothing": [], "unlimited": []}
    for _ in range(repeat):
        for kind, costs in found.items():
            costs.append(drain(url, kind, count, HERE.parent.parent / "src")["cpu"])
    for kind, costs in found.items():
        print(
            f"a child's CPU, {kind}: {statistics.median(costs):.1f} µs ({min(costs):.1f} - {max(costs):.1f})"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    costs = {way.name: Cost() for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="semel-measure-") as directory:
        with EmbeddedServer(
            Path(directory) / "postgres", settings={"full_page_writes": "off", "autovacuum": "off"}
        ) as running:
            print(platform.python_version(), running.status().version, f"{os.cpu_count()} cores", flush=True)
            for turn in range(given.repeat):
                for place, way in enumerate(WAYS if turn % 2 else WAYS[::-1]):
                    cpu, log = one_turn(running, f"turn_{turn}_{place}", way, given.jobs)
                    costs[way.name].cpu.append(cpu)
                    costs[way.name].log.append(log)
            show(costs)
            limits(running.url(), 2 * given.jobs, given.repeat)


if __name__ == "__main__":
    main()
