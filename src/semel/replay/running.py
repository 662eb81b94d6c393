"""A whole run: the expectations are written, every version of the code is put through its checks, and judged."""

from __future__ import annotations

import itertools
import platform
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from importlib import metadata
from typing import Final

import msgspec

from semel.replay.code import laid_out
from semel.replay.description import Description
from semel.replay.masking import masked_run
from semel.replay.opening import open_version
from semel.replay.options import Options, Progress, Tell
from semel.replay.results import Run
from semel.replay.turns import open_turns
from semel.replay.written import write_expectations

__all__ = ["Options", "Progress", "replay"]

_PACKAGES: Final = ("semel", "celery", "boto3", "redis", "psycopg")


def replay(description: Description, options: Options, *, progress: Tell | None = None) -> Run:
    """Replay the job. Raises NotStaging, ConfigurationError, WorkerDidNotStart, all before anything is sent.

    A check that goes wrong is a verdict.
    """
    if options.rounds is not None:
        description = msgspec.structs.replace(description, rounds=options.rounds)
    return masked_run(_run(description, options, progress or (lambda _: None)), description)


def _run(description: Description, options: Options, tell: Tell) -> Run:
    began, clock = datetime.now(UTC), time.monotonic()
    seed = options.seed if options.seed is not None else int(time.time() * 1000) % 1_000_000_000
    numbers = itertools.count(seed)
    with ExitStack() as stack:
        turns = stack.enter_context(open_turns())
        codes = stack.enter_context(laid_out(options.code))
        benches = [
            stack.enter_context(
                open_version(description, code, options, numbers, turns, first=seed, newest=code is codes[-1])
            )
            for code in codes
        ]
        newest = benches[-1]
        for each in benches:
            each.choose(options.only)
        for each in reversed(benches):
            each.try_workers(keep=each is benches[0])
        written = write_expectations(
            options.directory,
            description,
            newest.expectations(),
            policy=newest.guard.policy.words,
            versions=_versions(),
            seed=seed,
            code={each.code.label: each.code.shown for each in benches},
            skipped={check.name: check.skipped for check in newest.checks if check.skipped},
        )
        runs = tuple(each.run(tell) for each in benches)
    return Run(
        name=description.name,
        began=began,
        took=timedelta(seconds=time.monotonic() - clock),
        seed=seed,
        policy=newest.guard.policy.words,
        expectations=str(written),
        versions=_versions(),
        runs=runs,
    )


def _versions() -> dict[str, str]:
    """What ran."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
