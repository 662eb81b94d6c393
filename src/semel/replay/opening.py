"""Opens what one version of the code needs: its guard, its way, the counter, the control room."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from semel.core.durations import to_timedelta
from semel.replay.bench import Bench, Mode, Told
from semel.replay.code import Code
from semel.replay.control import open_room
from semel.replay.counting import open_counter
from semel.replay.description import Control, Description
from semel.replay.faults import PYTHON, VARIABLE
from semel.replay.guards import NoGuard, find_guard
from semel.replay.options import Options
from semel.replay.staging import project_of, refuse_foreign, require_staging, targets_of
from semel.replay.version import Version
from semel.replay.ways.opening import open_way
from semel.replay.ways.way import Surroundings

_BEFORE: Final = "this is the code before: it is what the newer one is held against"


@contextmanager
def open_version(
    description: Description, code: Code, options: Options, numbers: itertools.count[int], *, newest: bool
) -> Iterator[Version]:
    """Everything that one version needs; nothing of it is left when it closes."""
    logs = options.directory / "logs" / (code.label or "code")
    logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="semel-", dir="/tmp")))
        room = stack.enter_context(open_room(short / "room"))
        plain = Surroundings(code.directory, _environment(description, code, wrapped=False), logs)
        wrapped = replace(plain, environment=_environment(description, code, wrapped=True))
        guard = find_guard(description, plain, newest=newest)
        if not newest and isinstance(guard, NoGuard):
            description = msgspec.structs.replace(description, control=Control(none=_BEFORE))
        stack.callback(guard.close)
        way = open_way(description.deliver, plain, short / "broker")
        stack.callback(way.close)
        require_staging(project_of(Path.cwd()), targets_of(description, way.targets()))
        refuse_foreign(way.foreign(), shared=options.shared)
        distinct = guard.policy.name == "provider_key"
        counter = stack.enter_context(open_counter(description, room, distinct=distinct))
        control = way
        if description.control.deliver is not None:
            control = open_way(description.control.deliver, plain, short / "control")
            stack.callback(control.close)
        make = partial(
            Bench,
            room=room,
            counter=counter,
            guard=guard,
            told=_told(description, short / "room", logs / "journal.jsonl"),
            numbers=numbers,
            patience=_seconds(description.patience, "patience"),
            redelivery=_seconds(description.redelivery, "redelivery"),
        )

        def open_bench(mode: Mode) -> Bench:
            bench = make(control if mode.name == "control" else way, wrapped, mode)
            stack.callback(bench.stop_workers)
            return bench

        yield Version(description, code, options, way=way, guard=guard, make=open_bench)


def _told(description: Description, socket: Path, journal: Path) -> Told:
    watch = description.watch
    return Told(
        socket, journal, () if watch.call is None else (watch.call,), _seconds(watch.dwell, "watch.dwell")
    )


def _environment(description: Description, code: Code, *, wrapped: bool) -> dict[str, str]:
    """This process's own, the code first on Python's path, and in front of it what loads the wrapper."""
    paths = [str(PYTHON)] if wrapped else []
    paths += [str(code.directory), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, **description.environment}
    environment.pop(VARIABLE, None)
    return environment | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


def _seconds(value: str | float, name: str) -> float:
    seconds: float = to_timedelta(value, name=name).total_seconds()
    return seconds
