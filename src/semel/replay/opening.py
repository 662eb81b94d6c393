"""Opens what one version of the code needs: its guard, its way, the counter, the control room."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from semel.core.durations import to_timedelta
from semel.replay.bench import Bench, Mode, Told
from semel.replay.code import Code
from semel.replay.constraint import bring_back
from semel.replay.control import ControlRoom, open_room
from semel.replay.counting import Counter, open_counter, refuse_counted
from semel.replay.description import Description
from semel.replay.folders import SHORT, own_folder
from semel.replay.ground import Ground, environment_of, open_ground
from semel.replay.messages import message_of
from semel.replay.options import Options
from semel.replay.proxy import proxied
from semel.replay.staging import project_of, refuse_foreign, require_staging, shared_of
from semel.replay.turns import Turns
from semel.replay.version import Version
from semel.replay.ways.way import Surroundings


@contextmanager
def open_version(
    description: Description,
    code: Code,
    options: Options,
    numbers: itertools.count[int],
    turns: Turns,
    *,
    first: int,
    newest: bool,
) -> Iterator[Version]:
    """Everything that one version needs; nothing of it is left when it closes. Raises NotStaging.

    ``first`` is the number of the first operation, which has no effect yet.
    """
    logs = options.directory.absolute() / "logs" / (code.label or "code")  # workers start elsewhere
    logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        short = stack.enter_context(own_folder(SHORT))
        room = stack.enter_context(open_room(short / "room", shared=options.shared))
        ground = stack.enter_context(open_ground(description, code, logs, short, newest=newest))
        require_staging(project_of(Path.cwd()), ground.targets)
        turns.take(shared_of(ground.targets))
        bring_back(ground.guard)
        refuse_foreign([*ground.way.foreign(), *ground.guard.others()], shared=options.shared)
        make = partial(
            Bench,
            room=room,
            counter=stack.enter_context(_counter(description, room, ground, first)),
            guard=ground.guard,
            told=_told(description, short / "room", logs / "journal.jsonl"),
            numbers=numbers,
            patience=_seconds(description.patience, "patience"),
            redelivery=_seconds(description.redelivery, "redelivery"),
        )
        environment = environment_of(description, code, wrapped=True)
        environment |= stack.enter_context(proxied(description, room))
        wrapped = Surroundings(code.directory, environment, logs)

        def open_bench(mode: Mode) -> Bench:
            bench = make(ground.control if mode.name == "control" else ground.way, wrapped, mode)
            stack.callback(bench.stop_workers)
            return bench

        yield Version(code, options, ground, open_bench)


@contextmanager
def _counter(description: Description, room: ControlRoom, ground: Ground, first: int) -> Iterator[Counter]:
    """Counts effects; of the first operation there are none yet."""
    distinct = ground.guard.policy.name == "provider_key"
    with open_counter(description, room, distinct=distinct) as counter:
        refuse_counted(counter, first, message_of(description, first))
        yield counter


def _told(description: Description, socket: Path, journal: Path) -> Told:
    watch = description.watch
    return Told(
        socket, journal, () if watch.call is None else (watch.call,), _seconds(watch.dwell, "watch.dwell")
    )


def _seconds(value: str | float, name: str) -> float:
    seconds: float = to_timedelta(value, name=name).total_seconds()
    return seconds
