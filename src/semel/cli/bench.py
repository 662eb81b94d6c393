"""`semel bench`: how many jobs a second this machine and this database do."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from semel.cli.bench_guard import measure_guard, median
from semel.cli.benched import SCHEMA, app, note_start, nothing
from semel.embedded import EmbeddedServer
from semel.errors import SemelError
from semel.sql import Catalogue
from semel.store.bench import about, drop, rate, results, settle_down
from semel.store.connect import connect
from semel.store.migrate import migrate_database
from semel.store.run import Session, run
from semel.version import __version__

_RUN = (
    "import sys; from semel.queue.worker.options import WorkerOptions as Options; "
    "from semel.queue.worker.supervisor import run_supervisor as run; sys.exit(run(Options(**{options!r})))"
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many jobs each measurement takes, and how often it is repeated."""

    drain: int
    one_by_one: int
    bulk: int
    pick_up: int
    repeat: int


def main(arguments: list[str]) -> int:
    """Parse and run; answers the exit code."""
    command = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    command.command("bench")(bench)
    try:
        return int(command(arguments, prog_name="semel bench", standalone_mode=False) or 0)
    except SemelError as error:
        typer.echo(str(error), err=True)
        return 3


def bench(
    database: Annotated[
        str | None,
        typer.Option(help="Where to measure, in a schema of its own; else a temporary embedded server."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Jobs in each drain.")] = 50_000,
    repeat: Annotated[int, typer.Option(help="Times each measurement; the median counts.")] = 3,
    guard: Annotated[
        bool, typer.Option("--guard", help="What the guard costs, instead: on PostgreSQL and on SQLite.")
    ] = False,
    operations: Annotated[int, typer.Option(help="Operations in each measurement of the guard.")] = 500,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> int:
    """Measure no-op async jobs drained by one child and by two, enqueuing, and the time until a lone job starts.

    With --guard: a plain call against guarded ones. Creates the schema semel_bench and drops it afterwards.

    Example: semel bench --json
    """
    sizes = Sizes(drain=jobs, one_by_one=2_000, bulk=jobs, pick_up=11, repeat=repeat)
    with _database(database) as url:
        app.point_to(url)
        session = connect(url, Catalogue(SCHEMA), name="semel bench")
        try:
            run(drop(), session)
            migrate_database(url, schema=SCHEMA)
            report = {"machine": _machine(), "server": run(about(), session)}
            report |= measure_guard(url, operations, repeat) if guard else _measure(url, session, sizes)
        finally:
            run(drop(), session)
            session.connection.close()
            app.close()
    print(json.dumps(report, indent=2) if as_json else _as_text(report))
    return 0


def _measure(url: str, session: Session, sizes: Sizes) -> dict[str, object]:
    return {
        "jobs": sizes.drain,
        "repeat": sizes.repeat,
        "drain_one_child_per_second": median(sizes.repeat, lambda: _drain(url, session, sizes.drain, 1)),
        "drain_two_children_per_second": median(sizes.repeat, lambda: _drain(url, session, sizes.drain, 2)),
        "enqueue_one_by_one_per_second": median(sizes.repeat, lambda: _one_by_one(sizes.one_by_one)),
        "enqueue_in_bulk_per_second": median(sizes.repeat, lambda: _bulk(sizes.bulk)),
        "pick_up_seconds": _pick_up(url, session, sizes.pick_up),
    }


def _drain(url: str, session: Session, count: int, children: int) -> float:
    first = nothing.enqueue_many(_arguments(count))[0].id
    run(settle_down(), session)
    with _worker(url, children, drain=True) as worker:
        worker.wait()
    done, seconds = run(rate("nothing", first), session)
    if done != count:
        raise SystemExit(f"{count} jobs were enqueued, {done} are done")
    return done / seconds


def _one_by_one(count: int) -> float:
    began = time.perf_counter()
    for number in range(count):
        nothing.using(queue="never").enqueue(number, f"user{number}@example.com")
    return count / (time.perf_counter() - began)


def _bulk(count: int) -> float:
    began = time.perf_counter()
    nothing.using(queue="never").enqueue_many(_arguments(count))
    return count / (time.perf_counter() - began)


def _arguments(count: int) -> list[tuple[int, str]]:
    return [(number, f"user{number}@example.com") for number in range(count)]


def _pick_up(url: str, session: Session, count: int) -> dict[str, float]:
    """Seconds from the commit of a lone job to the start of its handler, the worker being idle."""
    sent: dict[int, float] = {}
    with _worker(url, 1, drain=False) as worker:
        warm = note_start.enqueue().id
        _until(lambda: warm in run(results([warm]), session))
        for place in range(count):
            time.sleep(0.3 + 0.37 * (place % 3))
            job = note_start.enqueue()
            sent[job.id] = time.time()
            _until(lambda wanted=job.id: wanted in run(results([wanted]), session))  # type: ignore[misc]
        worker.terminate()
        worker.wait()
    started = run(results(list(sent)), session)
    waits = sorted(started[job_id] - at for job_id, at in sent.items())
    return {"median": round(statistics.median(waits), 4), "most": round(waits[-1], 4)}


def _until(condition: Callable[[], bool], limit: float = 30.0) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("a job did not start within 30 s")
        time.sleep(0.02)


@contextmanager
def _worker(url: str, children: int, *, drain: bool) -> Iterator[subprocess.Popen[bytes]]:
    options = {
        "app": "semel.cli.benched:app",
        "database": url,
        "children": children,
        "queues": ("default",),
        "drain": drain,
        "log_level": "WARNING",
    }
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-c", _RUN.format(options=options)], stdin=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


@contextmanager
def _database(given: str | None) -> Iterator[str]:
    url = given or os.environ.get("SEMEL_DATABASE_URL")
    if url:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="semel-bench-") as directory:
        server = EmbeddedServer(Path(directory) / "postgres")
        yield server.start()
        server.destroy()


def _machine() -> dict[str, object]:
    return {
        "semel": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def _as_text(report: Mapping[str, object], before: str = "") -> str:
    lines = []
    for name, value in report.items():
        said = f"{before}{name.replace('_', ' ')}"
        if isinstance(value, dict) and any(isinstance(each, dict) for each in value.values()):
            lines.append(_as_text(value, f"{said}: "))
        elif isinstance(value, dict):
            lines.append(f"{said}: {', '.join(f'{key} {each}' for key, each in value.items())}")
        else:
            lines.append(f"{said}: {value}")
    return "\n".join(lines)
