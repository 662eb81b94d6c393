"""What was found of one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = str | Sequence[str]


@dataclass(frozen=True)
class Parameter:
    """One argument of the job's message."""

    name: str
    kind: str = ""
    """Its annotation, as it is written; empty: none."""
    required: bool = True


@dataclass(frozen=True)
class Watched:
    """A call that may have the effect."""

    call: str
    weight: int
    """How likely it is; the highest is taken."""
    why: str


@dataclass(frozen=True)
class Candidate:
    """A job that can be replayed."""

    name: str
    way: str
    """As ``deliver.by``."""
    place: str
    """File and line."""
    deliver: Mapping[str, Value]
    """The fields of ``deliver``; those that begin with TODO were not found."""
    parameters: tuple[Parameter, ...] = ()
    watched: tuple[Watched, ...] = ()
    """The most likely first."""
    operation: str | None = None
    """Of semel's guard, as ``module:name``."""
    key: str | None = None
    """The parameter that makes the operation, where the guard says so."""
    writes: bool = False
    """Whether it writes rows, as far as can be seen."""
    notes: tuple[str, ...] = field(default=())
