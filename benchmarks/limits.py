"""The physical limit: the least SQL of a job's life, by pgbench, over a table as a textbook has it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from benchmarks.cluster import program
from benchmarks.driving import Bench
from benchmarks.figures import Reading, Refused
from benchmarks.processes import Meter

SCRIPTS = Path(__file__).parent / "pgbench"
DATABASE = "pgbench"
BATCH = 100


def claim_in_batches(bench: Bench, jobs: int, clients: int) -> Reading:
    """Jobs a second, claimed and finished by the hundred."""
    a_client = jobs // BATCH // clients
    done = a_client * clients * BATCH
    _lay(bench, done + 2 * BATCH * clients)  # more than are claimed, so that no claim comes back short
    found = pgbench(bench, SCRIPTS / "claim_in_batches.sql", clients, a_client)
    finished = bench.cluster.ask("SELECT count(*) FROM jobs WHERE status = 'done'", DATABASE)
    if finished != done:
        raise Refused(f"pgbench finished {finished} jobs, not {done}")
    return Reading(found.value * BATCH, found.noise)


def insert_one(bench: Bench, jobs: int, clients: int = 1) -> Reading:
    """Rows a second, a commit each."""
    _lay(bench, 0)
    return pgbench(bench, SCRIPTS / "insert_one.sql", clients, jobs // clients)


def copy_in_batches(bench: Bench, jobs: int) -> Reading:
    """Rows a second, by COPY of a thousand each, from Python; as fast as Python can feed it."""
    _lay(bench, 0)
    meter = Meter()
    with bench.cluster.connect(DATABASE) as connection:
        began = time.monotonic()
        unmeasured = 0
        for first in range(0, jobs, 1_000):
            if first == 1_000:  # as of the queues' own bulk calls, the first one is not counted
                began, unmeasured = time.monotonic(), first
            with connection.cursor().copy("COPY jobs (kind, payload) FROM STDIN") as copy:
                for number in range(first, min(first + 1_000, jobs)):
                    copy.write_row(("nothing", f'{{"i": {number}, "to": "user{number}@example.com"}}'))
        elapsed = time.monotonic() - began
    return Reading((jobs - unmeasured) / elapsed, meter.read())


def pgbench(
    bench: Bench, script: Path, clients: int, times: int, database: str = DATABASE, **variables: int
) -> Reading:
    """Runs of a script a second, ``times`` by each client; prepared, with variables that begin so."""
    command = [program("pgbench"), "-n", "-M", "prepared", "-f", str(script)]
    command += [word for name, value in variables.items() for word in ("-D", f"{name}={value}")]
    command += ["-c", str(clients), "-j", str(min(2, clients)), "-t", str(times), bench.cluster.url(database)]
    meter = Meter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    noise = meter.read()
    rates = [line for line in done.stdout.splitlines() if line.startswith("tps")]
    if done.returncode or not rates or "aborted" in done.stderr:
        raise Refused(f"pgbench failed: {done.stderr.strip()[-400:]}")
    return Reading(float(rates[-1].split("=")[1].split()[0]), noise)


def _lay(bench: Bench, jobs: int) -> None:
    bench.cluster.fresh(DATABASE)
    with bench.cluster.connect(DATABASE) as connection:
        connection.execute((SCRIPTS / "schema.sql").read_bytes())
        if jobs:
            connection.execute((SCRIPTS / "lay.sql").read_bytes(), (jobs,))
    bench.cluster.settle_down(DATABASE)
