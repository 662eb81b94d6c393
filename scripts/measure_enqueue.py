"""What enqueuing costs beside the least that PostgreSQL can do: scripts/measure_enqueue.py --help.

On one embedded server, in short turns: pgbench's plain INSERT and a COPY of 1,000 rows a commit fed by Python, into a
table of the least columns; `enqueue` and `enqueue_many`; and sixteen connections while a worker is busy, with the trigger
that wakes workers and without. The median of the ratios within a turn is what counts. SRC is the ``src`` of another
checkout, measured in turn with this one. Reads /proc: Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from semel.embedded import EmbeddedServer, find_binaries
from semel.queue.app import App

HERE = Path(__file__).resolve()
OWN = HERE.parent.parent / "src"
PLAIN_TABLE = """
CREATE TABLE plain_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, payload jsonb NOT NULL,
    status text NOT NULL DEFAULT 'pending', attempts int NOT NULL DEFAULT 0, max_attempts int NOT NULL DEFAULT 20,
    run_at timestamptz NOT NULL DEFAULT now(), locked_until timestamptz, last_error text, unique_key text,
    created_at timestamptz NOT NULL DEFAULT now());
CREATE INDEX plain_jobs_due ON plain_jobs (run_at) WHERE status = 'pending'
"""
PLAIN = (
    """INSERT INTO plain_jobs (kind, payload) VALUES ('noop', '{"i": 1234, "to": "user1234@example.com"}');"""
)
CROWD = """INSERT INTO now.jobs (kind, payload) VALUES ('nothing', '{"number": 7, "address": "a@example.com"}');"""

CHILD = r"""
import json, sys, time
from pathlib import Path
import psycopg
from semel.queue.app import App
from semel.store.migrate import migrate_database

url, schema = sys.argv[1:]
migrate_database(url, schema=schema)
app = App(url, schema=schema)
caller = psycopg.connect(url, autocommit=True, application_name="caller")

@app.job
async def nothing(number: int, address: str) -> None: ...

bound = nothing.using(tx=caller)

def keyed(number):
    stamp = time.perf_counter_ns()
    nothing.enqueue_many([nothing.using(unique_key=f"{stamp}-{each}").new(each, f"user{each}@example.com")
                          for each in range(1000)])

CALLS = {
    "build": (lambda number: nothing.new(number, "user17@example.com"), 1),
    "one": (lambda number: nothing.enqueue(number, "user17@example.com"), 1),
    "tx": (lambda number: bound.enqueue(number, "user17@example.com"), 1),
    "bulk": (lambda number: nothing.enqueue_many([(each, f"user{each}@example.com") for each in range(1000)]), 1000),
    "keyed": (keyed, 1000),
}

def servers():
    found = caller.execute("SELECT pid FROM pg_stat_activity WHERE application_name IN ('semel', 'caller')")
    return [row[0] for row in found]

def used(processes):
    return sum(int(Path(f"/proc/{each}/schedstat").read_text().split()[0]) for each in processes)

print("ready", flush=True)
for line in sys.stdin:
    task, count = line.split()
    call, rows = CALLS[task]
    for number in range(20 if rows == 1 else 1):
        call(number)
    processes = servers()
    before, cpu, began = used(processes), time.process_time(), time.perf_counter()
    for number in range(int(count) // rows):
        call(number)
    total = int(count) // rows * rows
    print(json.dumps({
        "per_second": total / (time.perf_counter() - began),
        "client": (time.process_time() - cpu) / total * 1e6,
        "server": (used(processes) - before) / total / 1e3,
    }), flush=True)
app.close()
caller.close()
"""

WORKER = """
import sys
from semel.queue.worker.options import WorkerOptions
from semel.queue.worker.supervisor import run_supervisor
sys.exit(run_supervisor(WorkerOptions(app="measure_enqueue:app", database=sys.argv[1], log_level="WARNING")))
"""


app = App(schema="now", concurrency=100)
"""The application of the busy worker."""


@app.job
async def nothing(number: int, address: str) -> None:
    """Do nothing."""


class Child:
    """Enqueues with one checkout, in a schema of its own, as it is told."""

    def __init__(self, url: str, name: str, source: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD, url, name],
            env=os.environ | {"PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def measure(self, task: str, count: int) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{task} {count}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def pgbench(url: str, text: str, clients: int, count: int) -> dict[str, float]:
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(text)
        script.flush()
        command = [find_binaries().program("pgbench"), "-n", "-M", "prepared", "-f", script.name, "-j", "1"]
        command += ["-c", str(clients), "-t", str(count // clients), url]
        done = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    line = next(line for line in done.splitlines() if line.startswith("tps"))
    return {"per_second": float(line.split("=")[1].split()[0])}


def copy(url: str, count: int) -> dict[str, float]:
    """1,000 rows a commit, written by Python one at a time."""
    with psycopg.connect(url, autocommit=True) as connection:
        server = Path(f"/proc/{connection.info.backend_pid}/schedstat")
        before, cpu, began = int(server.read_text().split()[0]), time.process_time(), time.perf_counter()
        for _ in range(count // 1000):
            with connection.cursor().copy("COPY plain_jobs (kind, payload) FROM STDIN") as stream:
                for i in range(1000):
                    stream.write_row(("noop", '{"i": %d, "to": "user%d@example.com"}' % (i, i)))  # noqa: UP031
        return {
            "per_second": count / (time.perf_counter() - began),
            "client": (time.process_time() - cpu) / count * 1e6,
            "server": (int(server.read_text().split()[0]) - before) / count / 1e3,
        }


@contextmanager
def busy_worker(url: str) -> Iterator[None]:
    """A worker with enough to do that it never sleeps."""
    environment = os.environ | {"PYTHONPATH": f"{OWN}:{HERE.parent}"}
    worker = subprocess.Popen([sys.executable, "-c", WORKER, url], env=environment)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO now.jobs (kind, payload) SELECT 'nothing', "
                """'{"number": 7, "address": "a@example.com"}' FROM generate_series(1, 200000)"""
            )
            while not connection.execute("SELECT count(*) > 5000 FROM now.jobs_done").fetchone()[0]:
                if worker.poll() is not None:
                    raise SystemExit("the worker ended")
                time.sleep(0.05)
        yield
    finally:
        worker.terminate()
        worker.wait()


def crowd(url: str, count: int, *, notify: bool) -> dict[str, float]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER TABLE now.jobs {'ENABLE' if notify else 'DISABLE'} TRIGGER jobs_stored")
    return pgbench(url, CROWD, 16, count)


def turns(
    url: str, children: dict[str, Child], given: argparse.Namespace
) -> Iterator[tuple[str, dict[str, float]]]:
    """The name and figures of each measurement, in turn."""
    wanted = given.only.split(",")
    for name, child in children.items():
        if "build" in wanted:
            yield f"build {name}", child.measure("build", 50_000)
    if "one" in wanted or "tx" in wanted:
        yield "pgbench insert", pgbench(url, PLAIN, 1, given.size)
    for task in ("one", "tx"):
        for name, child in children.items():
            if task in wanted:
                yield f"{task} {name}", child.measure(task, given.size)
    if "bulk" in wanted or "keyed" in wanted:
        yield "copy1000", copy(url, given.bulk)
    for task in ("bulk", "keyed"):
        for name, child in children.items():
            if task in wanted:
                yield f"{task} {name}", child.measure(task, given.bulk)


def measure(
    url: str, sources: dict[str, Path], given: argparse.Namespace
) -> dict[str, list[dict[str, float]]]:
    figures: dict[str, list[dict[str, float]]] = {}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(PLAIN_TABLE)
        version = connection.execute("SELECT current_setting('server_version')").fetchone()[0]
    print(f"Python {platform.python_version()}, PostgreSQL {version}, {os.cpu_count()} cores", flush=True)
    with ExitStack() as stack:
        children = {}
        for name, source in sources.items():
            children[name] = Child(url, name, source)
            stack.callback(children[name].close)
        for _ in range(given.repeat):
            for name, found in turns(url, children, given):
                figures.setdefault(name, []).append(found)
                print(name, {key: round(value, 1) for key, value in found.items()}, flush=True)
        if "crowd" in given.only.split(","):
            stack.enter_context(busy_worker(url))
            for turn in range(2 * given.repeat):
                name = f"crowd, notify {'off' if turn % 2 else 'on'}"
                found = crowd(url, 4 * given.size, notify=not turn % 2)
                figures.setdefault(name, []).append(found)
                print(name, {key: round(value, 1) for key, value in found.items()}, flush=True)
    return figures


def report(figures: dict[str, list[dict[str, float]]]) -> None:
    """Medians, and the medians of the ratios within each turn."""
    bases = {"one": "pgbench insert", "tx": "pgbench insert", "bulk": "copy1000", "keyed": "copy1000"}
    for name, found in figures.items():
        medians = {key: round(statistics.median(each[key] for each in found), 1) for key in found[0]}
        print("median", name, medians)
    for name in figures:
        base = "crowd, notify off" if name.endswith("notify on") else bases.get(name.split()[0])
        if base is None:
            continue
        pairs = zip(figures[name], figures[base], strict=True)
        ratios = sorted(ours["per_second"] / theirs["per_second"] for ours, theirs in pairs)
        print(f"{name} / {base}: {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=300, help="jobs stored one a commit, each turn")
    parser.add_argument("--bulk", type=int, default=10_000, help="jobs stored 1,000 a commit, each turn")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", default="build,one,tx,bulk,keyed,crowd")
    parser.add_argument("--asynchronous", action="store_true", help="with synchronous_commit off")
    given = parser.parse_args()
    sources = {"now": OWN} if given.against is None else {"before": given.against, "now": OWN}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="semel-measure-") as directory:
        server = EmbeddedServer(Path(directory) / "postgres", port=port)
        server.start()
        try:
            if given.asynchronous:
                with psycopg.connect(server.tcp_url(), autocommit=True) as connection:
                    connection.execute("ALTER SYSTEM SET synchronous_commit = off")
                    connection.execute("SELECT pg_reload_conf()")
            report(measure(server.tcp_url(), sources, given))
        finally:
            server.destroy()


if __name__ == "__main__":
    main()
