"""How messages reach a function, as a note and a replay read it from what an application has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

_Called = TypeVar("_Called", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class SqsWay:
    """One way in."""

    how: str
    """In words that a name can follow."""
    queue: str | None
    """As it was given; None where AWS alone knows it."""


def tell_way(called: _Called, way: SqsWay, *functions: object) -> _Called:
    """Note at a handler what it is, and which functions it calls."""
    called.semel_way = way  # type: ignore[attr-defined]
    called.semel_functions = functions  # type: ignore[attr-defined]
    return called
