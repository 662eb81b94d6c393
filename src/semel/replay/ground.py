"""What a version of the code stands on: its guard, and the ways to its job. Nothing is sent, and no worker started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from semel.replay.code import Code
from semel.replay.description import Control, Description
from semel.replay.faults import PYTHON, VARIABLE
from semel.replay.guards import NoGuard, SemelGuard, find_guard
from semel.replay.staging import targets_of
from semel.replay.ways.opening import open_way
from semel.replay.ways.way import Surroundings, Way

_BEFORE: Final = "this is the code before: it is what the newer one is held against"


@dataclass(frozen=True)
class Ground:
    """One version, found and opened."""

    description: Description
    """For code before its guard, without what only the newer code has."""
    guard: NoGuard | SemelGuard
    way: Way
    control: Way
    """Without the guard; the same one unless the description says otherwise."""
    targets: dict[str, str]
    """What a replay would write to, by what it is; without passwords."""


@contextmanager
def open_ground(
    description: Description, code: Code, logs: Path, sockets: Path, *, newest: bool
) -> Iterator[Ground]:
    """Open them; ``sockets`` is a folder with a short path."""
    with ExitStack() as stack:
        plain = Surroundings(code.directory, environment_of(description, code, wrapped=False), logs)
        guard = find_guard(description, plain, newest=newest)
        stack.callback(guard.close)
        if not newest and isinstance(guard, NoGuard):
            description = msgspec.structs.replace(description, control=Control(none=_BEFORE))
        way = open_way(description.deliver, plain, sockets / "broker")
        stack.callback(way.close)
        targets = targets_of(description, way.targets(), guard_database=guard.database)
        control = way
        if description.control.deliver is not None:
            control = open_way(description.control.deliver, plain, sockets / "control")
            stack.callback(control.close)
            targets = targets_of(description, control.targets()) | targets
        yield Ground(description, guard, way, control, targets)


def environment_of(description: Description, code: Code, *, wrapped: bool) -> dict[str, str]:
    """This process's own, the code first on Python's path, and in front of it what loads the wrapper."""
    paths = [str(PYTHON)] if wrapped else []
    paths += [str(code.directory), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, **description.environment}
    environment.pop(VARIABLE, None)
    return environment | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
