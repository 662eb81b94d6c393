"""What a run would do and where, before it does it: the checks, and the targets that must be staging. Sends nothing."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from semel.replay.checks import Check, checks_for
from semel.replay.code import Code, laid_out
from semel.replay.description import Description
from semel.replay.guards import find_guard
from semel.replay.running import Options
from semel.replay.staging import targets_of
from semel.replay.ways.opening import open_way
from semel.replay.ways.way import Surroundings


@dataclass(frozen=True)
class Plan:
    """What a run would do."""

    targets: dict[str, str]
    """What it would write to, by what it is; without passwords."""
    foreign: list[str]
    """What is there of others."""
    policy: str
    checks: tuple[Check, ...]
    """Of the newest code; those that are skipped with the reason."""


def plan(description: Description, options: Options) -> Plan:
    """Look at the newest code and at the broker. Raises what a run raises, but for `NotStaging`."""
    with laid_out(options.code[-1:]) as (code,), tempfile.TemporaryDirectory(prefix="semel-") as folder:
        with ExitStack() as stack:
            plain = Surroundings(code.directory, _environment(description, code), Path(folder))
            guard = find_guard(description, plain)
            stack.callback(guard.close)
            way = open_way(description.deliver, plain, Path(folder) / "broker")
            stack.callback(way.close)
            targets = targets_of(description, way.targets(), guard_database=guard.database)
            if description.control.deliver is not None:
                control = open_way(description.control.deliver, plain, Path(folder) / "control")
                stack.callback(control.close)
                targets = targets_of(description, control.targets()) | targets
            checks = checks_for(description, guard.policy, way.victims)
            return Plan(targets, way.foreign(), guard.policy.words, tuple(checks))


def _environment(description: Description, code: Code) -> dict[str, str]:
    paths = [str(code.directory), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **description.environment, "PYTHONPATH": os.pathsep.join(paths)}
