"""`Row()`-guarded jobs, eight at once: effect, record and completion in one commit; pgbench with the same statements."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from benchmarks.cluster import sql
from benchmarks.driving import Bench
from benchmarks.figures import Figure, Reading, Refused, ratio
from benchmarks.limits import pgbench
from benchmarks.measuring import Contest, Measure
from benchmarks.peers import SEMEL
from semel.sql import Catalogue

GUARDED = SEMEL.with_settings("semel-guarded", job="recorded", concurrency="8")
CLIENTS = 8
STATEMENTS = (
    "guard/insert_row",
    "INSERT INTO effects VALUES (:id, 'user')",
    "guard/complete_row",
    "queue/settle",
)
"""What one guarded job does between BEGIN and COMMIT."""

VALUES = MappingProxyType(
    {
        "scope": "''",
        "job_type": "'record'",
        "key": "lpad(CAST(:id AS text), 64, '0')",
        "key_version": "0",
        "label": "CAST(:id AS text)",
        "token": "'949f3e592ac5143a17f6e0c3ff756198'",
        "lease": "60",
        "acting": "true",
        "reference": "'e83dd984-8c30-41b7-b211-63b98a213a1f'",
        "fingerprint": "'c25f24890ea5'",
        "effect": "'row'",
        "message": "NULL",
        "in_savepoint": "false",
        "outcome": "'acted'",
        "result": "NULL",
        "result_dropped": "false",
        "ids": "ARRAY[CAST(:id AS bigint)]",
        "claims": "ARRAY[CAST(:id AS bigint)]",
        "workers": "ARRAY[1]",
        "details": "'[]'",
        "remember": "259200",
    }
)
"""Of every parameter, for pgbench."""


def contests(bench: Bench) -> Mapping[str, Contest]:
    each = bench.count(10_000, 400) // CLIENTS
    return {GUARDED.name: lambda: guarded(bench, each * CLIENTS), "pgbench": lambda: limit(bench, each)}


def guarded(bench: Bench, count: int) -> Reading:
    found = bench.drain(GUARDED, count)
    check(bench, count)
    return found


def limit(bench: Bench, each: int) -> Reading:
    """The jobs are claimed beforehand, and each client ends its own ones."""
    count = each * CLIENTS
    bench.prepare(GUARDED)
    bench.call(GUARDED, "many", count)
    bench.cluster.run_file(GUARDED.name, "claim_all")
    first = int(bench.cluster.ask("SELECT min(id) FROM semel.jobs", GUARDED.name))
    bench.cluster.settle_down(GUARDED.name)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as directory:
        path = Path(directory) / "row.sql"
        path.write_text(script(first, each))
        found = pgbench(bench, path, CLIENTS, each, GUARDED.name, number=0)
    check(bench, count)
    finished = bench.cluster.ask(str(GUARDED.finished), GUARDED.name)
    if finished != count:
        raise Refused(f"pgbench ended {finished} jobs of {count}")
    return found


def check(bench: Bench, count: int) -> None:
    """Every effect is there, and every record."""
    for what in ("effects", "semel.operations WHERE state = 'completed'"):
        if (found := bench.cluster.ask(sql(f"SELECT count(*) FROM {what}"), GUARDED.name)) != count:
            raise Refused(f"of {count} jobs {found} are in {what}")


def script(first: int, each: int) -> str:
    """One guarded job a run, by semel's own statements."""
    catalogue = Catalogue("semel")
    lines = ["\\set number :number + 1", f"\\set id {first - 1} + :client_id * {each} + :number", "BEGIN;"]
    for name in STATEMENTS:
        text = catalogue.text(name).bare if " " not in name else name
        lines.append(
            re.sub(r"(?<![:\w]):([a-z_]+)", lambda found: VALUES.get(found[1], found[0]), text) + ";"
        )
    return "\n".join([*lines, "COMMIT;"])


MEASURE = Measure(
    "row",
    "Row()-guarded jobs, eight connections: effect, record and completion in one commit",
    "jobs/s",
    contests,
    (
        Figure(
            "Row()-guarded jobs, against pgbench with the same statements",
            ratio("semel-guarded", "pgbench"),
            0.5,
            0.8,
        ),
    ),
    {"processor": "µs of processor a job"},
)
