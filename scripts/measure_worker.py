"""What a job costs a worker's child in CPU, and what one costs to build: scripts/measure_worker.py --help.

One child of a real worker drains no-op jobs from an embedded server; the first and the last of them read what their own
process has used of the processor. SRC is the ``src`` of another checkout, measured in turn with this one.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from semel.cli.benched import SCHEMA, app
from semel.embedded import EmbeddedServer
from semel.sql import Catalogue
from semel.store.bench import about, drop, settle_down
from semel.store.connect import connect
from semel.store.migrate import migrate_database
from semel.store.run import run

HERE = Path(__file__).resolve()
PROFILE = "SEMEL_MEASURE_PROFILE"
RUN = (
    "import sys; from semel.queue.worker.options import WorkerOptions as Options; "
    "from semel.queue.worker.supervisor import run_supervisor as run; sys.exit(run(Options(**{options!r})))"
)
profile = cProfile.Profile()


@app.job
def nothing_sync(number: int, address: str) -> None:
    """Do nothing, on a thread."""


@app.job(run_in="process")
def nothing_in_process(number: int, address: str) -> None:
    """Do nothing, in a process of its own."""


@app.job(timeout=None)
async def unlimited(number: int, address: str) -> None:
    """Do nothing, for as long as it likes."""


@app.job
async def begin() -> None:
    """Note what the child has used so far."""
    note("begin")
    if PROFILE in os.environ:
        profile.enable()


@app.job
async def end() -> None:
    if PROFILE in os.environ:
        profile.disable()
        profile.dump_stats(os.environ[PROFILE])
    note("end")


def note(word: str) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    figures = (used.ru_utime + used.ru_stime, used.ru_utime, time.monotonic(), used.ru_maxrss / 1024)
    Path(os.environ["SEMEL_MEASURE_NOTES"], word).write_text(json.dumps(figures))


def drain(url: str, kind: str, count: int, source: Path) -> dict[str, float]:
    """Microseconds of CPU a job in the child, of them in user mode; jobs a second; its peak in MB."""
    session = connect(url, Catalogue(SCHEMA), name="measure")
    with tempfile.TemporaryDirectory() as directory:
        begin.using(priority=100).enqueue()
        app.jobs[kind].enqueue_many([(number, f"user{number}@example.com") for number in range(count)])
        end.using(priority=-100).enqueue()
        run(settle_down(), session)
        options = {"app": "measure_worker:app", "database": url, "drain": True, "log_level": "WARNING"}
        environment = os.environ | {
            "PYTHONPATH": f"{source}:{HERE.parent}",
            "SEMEL_MEASURE_NOTES": directory,
        }
        subprocess.run([sys.executable, "-c", RUN.format(options=options)], env=environment, check=True)
        first, last = (json.loads(Path(directory, word).read_text()) for word in ("begin", "end"))
    session.connection.close()
    return {
        "cpu": (last[0] - first[0]) / count * 1e6,
        "user": (last[1] - first[1]) / count * 1e6,
        "per_second": count / (last[2] - first[2]),
        "megabytes": last[3],
    }


BUILD = """
import time, json
from semel.queue.app import App
from semel.store.enqueue import enqueue
app = App("postgresql://nowhere/none")
@app.job
async def nothing(number: int, address: str) -> None: ...
def once(count=50_000):
    began = time.process_time()
    for number in range(count):
        nothing.new(number, "user17@example.com")
    return (time.process_time() - began) / count * 1e6
def keyed(count=50_000):
    bound = nothing.using(queue="other")
    began = time.process_time()
    for number in range(count):
        enqueue(bound.new(number, "user17@example.com"))
    return (time.process_time() - began) / count * 1e6
once(1000)
print(json.dumps({"new": once(), "bound_and_operation": keyed()}))
"""


def build(source: Path) -> dict[str, float]:
    """Microseconds of CPU to build a job, without the database."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD],
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        check=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--kind", default="nothing")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--database")
    parser.add_argument("--build", action="store_true")
    given = parser.parse_args()
    own = HERE.parent.parent / "src"
    sources = [own] if given.against is None else [given.against, own]
    figures: dict[str, list[dict[str, float]]] = {str(source): [] for source in sources}
    with tempfile.TemporaryDirectory(prefix="semel-measure-") as directory:
        server = None
        if not given.build:
            server = EmbeddedServer(Path(directory) / "postgres") if given.database is None else None
            url = given.database or server.start()
            app.point_to(url)
            session = connect(url, Catalogue(SCHEMA), name="measure")
            run(drop(), session)
            migrate_database(url, schema=SCHEMA)
            print(platform.python_version(), run(about(), session), f"{os.cpu_count()} cores")
        try:
            for _ in range(given.repeat):
                for source in sources:
                    found = build(source) if given.build else drain(url, given.kind, given.jobs, source)
                    figures[str(source)].append(found)
                    print(source, {name: round(value, 1) for name, value in found.items()}, flush=True)
        finally:
            app.close()
            if server is not None:
                server.destroy()
    for source, found in figures.items():
        print(
            source,
            "median",
            {name: round(statistics.median(each[name] for each in found), 2) for name in found[0]},
        )


if __name__ == "__main__":
    main()
