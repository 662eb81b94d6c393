"""`make bench-peers`, or python -m benchmarks: see README.md beside this file."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import chart, machine
from benchmarks.catalogue import MEASURES
from benchmarks.cluster import running_cluster, running_redis
from benchmarks.driving import Bench
from benchmarks.installing import CannotInstall, Environments
from benchmarks.measuring import take_turns
from benchmarks.peers import INSTALLATIONS
from benchmarks.report import Report


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Measure semel beside its peers.")
    parser.add_argument(
        "--only", nargs="+", choices=sorted(MEASURES), metavar="MEASURE", help=", ".join(MEASURES)
    )
    parser.add_argument("--repetitions", type=int, default=3, help="turns of each measure; the median counts")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="0.01: a hundredth of the jobs, to try it out"
    )
    parser.add_argument(
        "--peers", nargs="*", choices=sorted(INSTALLATIONS), help="only these, by their installation"
    )
    parser.add_argument(
        "--directory", type=Path, default=Path(sys.prefix) / "benchmarks", help="for their environments"
    )
    parser.add_argument("--data", type=Path, help="where the cluster is put while it runs; a real disk")
    parser.add_argument(
        "--patience",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="wait so long for a quiet machine before each reading",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every repetition")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw the drain as an SVG")
    return parser.parse_args(words)


def install(environments: Environments, wanted: Sequence[str] | None) -> dict[str, str]:
    """Make the environments; answers those that are left out, and why."""
    left_out = {}
    for name in INSTALLATIONS:
        if wanted is not None and name not in wanted:
            left_out[name] = "not asked for"
            continue
        try:
            environments.install(name)
        except CannotInstall as error:
            left_out[name] = str(error)
            print(f"LEFT OUT {name}: {error}", file=sys.stderr, flush=True)
    return left_out


def run(given: argparse.Namespace) -> Report:
    """Everything between the first installation and the last server's end."""
    environments = Environments(given.directory.absolute())
    left_out = install(environments, given.peers)
    measures = [measure for name, measure in MEASURES.items() if given.only is None or name in given.only]
    with tempfile.TemporaryDirectory(prefix="semel-peers-", dir=given.data) as name:
        directory = Path(name)
        directory.chmod(0o711)  # the cluster may belong to another user
        with running_cluster(directory, max_connections="300") as cluster, running_redis(directory) as redis:
            if redis is None:
                left_out["redis"] = "there is no redis-server on the PATH"
            about = machine.describe(cluster, directory)
            bench = Bench(cluster, redis, environments, given.scale, left_out, given.patience)
            report = Report(about, left_out, given.repetitions, given.scale, {}, [])
            for measure in measures:
                turns = take_turns(measure, bench, given.repetitions)
                report = report.with_turns(measure, turns)
                if given.json:  # a run that is stopped keeps what it has
                    given.json.write_text(json.dumps(report.as_json(), indent=1) + "\n")
    return report


def main(words: Sequence[str] | None = None) -> int:
    given = arguments(words)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # the servers end on the way out
    report = run(given)
    print(report.as_text())
    if given.chart and "drain" in report.turns:
        about = report.about
        versions = f"PostgreSQL {about['postgresql']}, Python {about['python']}"
        conditions = f"{about['processor']}, {versions}; median of {given.repetitions}"
        chart.draw(report.turns["drain"], conditions, given.chart)
    return 0


if __name__ == "__main__":
    sys.exit(main())
