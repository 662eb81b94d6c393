"""What a job does to the world, as its author declares it; the declaration decides what is done with a stale claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeAlias

from semel.core.durations import Duration, describe, to_timedelta
from semel.errors import ConfigurationError


class Answer(StrEnum):
    """What a look-up says about an effect: it happened, it certainly did not, or nobody can tell."""

    DONE = "done"
    NOT_DONE = "not_done"
    UNKNOWN = "unknown"


DONE: Final = Answer.DONE
NOT_DONE: Final = Answer.NOT_DONE
UNKNOWN: Final = Answer.UNKNOWN


@dataclass(frozen=True, slots=True)
class Found:
    """`DONE`, with the result that the operation would have had."""

    result: Any = None


Finding: TypeAlias = Answer | Found
Find: TypeAlias = Callable[..., Any]
"""Gets the operation's reference, then the function's arguments; answers a `Finding` (or an awaitable of one)."""


@dataclass(frozen=True, slots=True)
class Row:
    """Rows in the database that also holds the record: claim, effect and completion are one transaction."""

    name = "row"


@dataclass(frozen=True, slots=True)
class Hold:
    """Nobody can tell: a stale claim waits for a person. The default."""

    name = "hold"


@dataclass(frozen=True, slots=True)
class Lookup:
    """The outside system can be asked by reference.

    ``settle``: how long after the end of the last claim that may have acted a "not done" is believed; at least the outside
    system's time-out and its lag. An answer of UNKNOWN, or an error, is asked again after ``backoff`` (doubling), at most
    ``looks`` times, and then held.
    """

    find: Find = field(repr=False)
    _: KW_ONLY
    settle: Duration
    looks: int = 5
    backoff: Duration = timedelta(seconds=30)
    name = "lookup"

    def __post_init__(self) -> None:
        if not callable(self.find):
            raise ConfigurationError(f"Lookup got find={self.find!r}: give a function.")
        if isinstance(self.looks, bool) or not isinstance(self.looks, int) or self.looks < 1:
            raise ConfigurationError(f"Lookup(looks=…) is {self.looks!r}: give a whole number from 1.")
        for each in ("settle", "backoff"):
            object.__setattr__(self, each, to_timedelta(getattr(self, each), name=f"Lookup({each}=…)"))

    def wait_before(self, look: int) -> timedelta:
        """Until the look after number ``look`` (from 1)."""
        backoff = to_timedelta(self.backoff, name="backoff")
        waited: timedelta = backoff * 2 ** min(look - 1, 20)
        return min(waited, timedelta(hours=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKey:
    """The outside system takes the reference as its idempotency key, and keeps it for ``valid_for``.

    Within that time, less the longest run, a stale claim acts again with the same reference; after it, ``then`` decides.
    """

    valid_for: Duration
    then: Hold | Lookup = field(default_factory=Hold)
    name = "provider_key"

    def __post_init__(self) -> None:
        object.__setattr__(self, "valid_for", to_timedelta(self.valid_for, name="ProviderKey(valid_for=…)"))
        if not isinstance(self.then, Hold | Lookup):
            raise ConfigurationError(f"ProviderKey(then=…) is {self.then!r}: give Hold() or Lookup(…).")

    @property
    def window(self) -> timedelta:
        """``valid_for``, as a duration."""
        return to_timedelta(self.valid_for, name="valid_for")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptDuplicate:
    """A rare second effect is acceptable: a stale claim acts again, at most ``extra`` times, and is then held."""

    extra: int = 1
    name = "accept_duplicate"

    def __post_init__(self) -> None:
        if isinstance(self.extra, bool) or not isinstance(self.extra, int) or self.extra < 1:
            raise ConfigurationError(
                f"AcceptDuplicate(extra=…) is {self.extra!r}: give a whole number from 1."
            )


@dataclass(frozen=True, slots=True)
class AcceptMiss:
    """A rare missing effect is acceptable: a stale claim is completed without acting, marked as missed."""

    name = "accept_miss"


Effect: TypeAlias = Row | Hold | Lookup | ProviderKey | AcceptDuplicate | AcceptMiss


@dataclass(frozen=True, slots=True)
class Promise:
    """What a declared effect promises; the columns of the table in the documents."""

    never_more_than: str
    completed_means: str
    stale: str


def promise(effect: Effect) -> Promise:
    """What holds for this effect, in words."""
    match effect:
        case Row():
            return Promise("1", "exactly 1", "a crash rolled everything back: the next delivery acts")
        case Hold():
            return Promise("1", "exactly 1", "held for a person")
        case Lookup(settle=settle):
            shown = describe(to_timedelta(settle, name="settle"))
            return Promise(
                "1", "exactly 1", f"asked for by reference, {shown} after the last claim that may have acted"
            )
        case ProviderKey(window=window, then=then):
            shown = describe(window)
            return Promise(
                "1", "exactly 1", f"sent again with the same reference within {shown}; then: {then.name}"
            )
        case AcceptDuplicate(extra=extra):
            return Promise(str(1 + extra), "1 or more", f"acts again, at most {extra} more; then held")
        case AcceptMiss():
            return Promise("1", "0 or 1", "completed as missed, without acting")
