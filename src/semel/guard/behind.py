"""Which guarded functions an object of the user's leads to: a task, a job, a consumer, a wrapper of any of them."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from semel.guard.guarded import Guarded

_LEADS: Final = (
    "semel_guarded",
    "semel_functions",
    "guard",
    "function",
    "func",
    "handler",
    "run",
    "__wrapped__",
)
"""Attributes under which tasks, jobs, consumers and decorated functions have what they call."""

_MOST: Final = 50
"""Objects that are looked at."""


def guarded_behind(found: object) -> tuple[Guarded[..., Any], ...]:
    """The guarded functions that are the fewest attributes away: itself, the only one behind a task or job, or several.

    Several are behind what calls one of them for each kind of message. An object that raises where its attributes are read
    leads nowhere.
    """
    level, seen = [found], set[int]()
    while level and len(seen) < _MOST:
        there = {id(each): each for each in level if isinstance(each, Guarded)}
        if there:
            return tuple(there.values())
        fresh = [each for each in level if id(each) not in seen]
        seen |= {id(each) for each in fresh}
        level = [next_one for each in fresh for next_one in _led_to(each)]
    return ()


def _led_to(each: object) -> list[object]:
    if isinstance(each, tuple):
        return list(each)
    if isinstance(each, ModuleType):
        return []
    return [value for lead in _LEADS if (value := _read(each, lead)) is not None]


def _read(each: object, name: str) -> object:
    try:
        return getattr(each, name, None)
    except Exception:  # a property of somebody else's
        return None
