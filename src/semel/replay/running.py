"""The engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from semel.replay.description import Description
from semel.replay.results import Run


@dataclass(frozen=True)
class Options:
    """How to run."""

    directory: Path
    only: tuple[str, ...] = ()
    rounds: int | None = None
    seed: int | None = None
    code: tuple[tuple[str, str], ...] = ()
    shared: bool = False
    constraint: bool = True


@dataclass(frozen=True)
class Progress:
    """How far it is."""

    label: str
    check: str
    done: int
    total: int


def replay(
    description: Description, options: Options, *, progress: Callable[[Progress], None] | None = None
) -> Run:
    """Run it."""
    raise NotImplementedError
