"""How a run is to be done, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """How to run."""

    directory: Path
    """For the expectations and the workers' logs."""
    only: tuple[str, ...] = ()
    """Names of checks, or their beginnings; empty: all."""
    rounds: int | None = None
    seed: int | None = None
    """The first operation's number; None: made of the time, so that no two runs share an operation."""
    code: tuple[tuple[str, str], ...] = ()
    """Versions to run, by label: a folder or a revision of git. Empty: the working directory."""
    shared: bool = False
    """Run beside other traffic."""
    constraint: bool = True
    """Whether the guard's table is put aside for a copy without the constraint."""


@dataclass(frozen=True)
class Progress:
    """How far it is."""

    label: str
    check: str
    done: int
    total: int


Tell = Callable[[Progress], None]
