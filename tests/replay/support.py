"""What the tests of replay share: a control room, the file that workers' wrappers read, and effects in a file."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from semel.replay.control import ControlRoom, open_room
from semel.replay.events import Event, Point
from semel.replay.faults import PYTHON, VARIABLE
from semel.replay.ways.way import Surroundings

HERE = Path(__file__).parent


@dataclass
class Stage:
    """A room, and where workers live that report to it."""

    room: ControlRoom
    surroundings: Surroundings
    effects_file: Path
    journal: Path

    @property
    def plain(self) -> Surroundings:
        """The same without the wrapper."""
        environment = {k: v for k, v in self.surroundings.environment.items() if k != VARIABLE}
        return replace(self.surroundings, environment=environment)

    def effects(self) -> list[str]:
        """One line for each effect that happened."""
        return self.effects_file.read_text("utf-8").splitlines() if self.effects_file.exists() else []

    def points(self, operation: int, *, but: Sequence[Point] = ()) -> list[str]:
        return [str(each.point) for each in self.room.events(operation) if each.point not in but]

    def first(self, operation: int, point: Point, patience: float = 30) -> Event:
        return self.room.wait_for(operation, point, 1, patience)


@contextmanager
def staged(
    directory: Path,
    *,
    watch: Sequence[str] = (),
    blind: bool = False,
    unconstrained: bool = False,
    **environment: str,
) -> Iterator[Stage]:
    """A stage whose workers start in this folder, ``tests/replay``."""
    with tempfile.TemporaryDirectory(prefix="semel-room-") as short, open_room(Path(short) / "room") as room:
        journal, effects, settings = directory / "journal", directory / "effects", Path(short) / "replay.json"
        told = {"socket": f"{short}/room", "journal": str(journal), "watch": list(watch), "dwell": 0.02}
        told |= {"blind": blind, "unconstrained": unconstrained}
        settings.write_text(json.dumps(told), "utf-8")
        made = {**os.environ, VARIABLE: str(settings), "EFFECTS": str(effects), **environment}
        made["PYTHONPATH"] = os.pathsep.join([str(PYTHON), str(HERE), str(HERE.parent.parent)])
        yield Stage(room, Surroundings(HERE, made, directory), effects, journal)
