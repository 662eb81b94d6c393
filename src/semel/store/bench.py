"""What a benchmark reads back: rates by the database's clock, results, the server's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from semel.store.statement import Operation, Statement, Steps

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def rate(kind: str, first: int) -> Operation[tuple[int, float]]:
    """How many jobs of ``kind`` from id ``first`` on have ended, and the seconds between the first end and the last."""

    def steps() -> Steps[tuple[int, float]]:
        rows = yield Statement("bench/rate", {"kind": kind, "first": first})
        return int(rows[0][0]), float(rows[0][1] or 0)

    return Operation("rate", steps, alone=True)


def results(ids: Sequence[int]) -> Operation[dict[int, float]]:
    """The numbers that some jobs returned, by id; those that have not ended are missing."""

    def steps() -> Steps[dict[int, float]]:
        rows = yield Statement("bench/results", {"ids": "{" + ",".join(map(str, ids)) + "}"})
        return {int(row[0]): float(row[1]) for row in rows}

    return Operation("results", steps, alone=True)


def about() -> Operation[dict[str, str]]:
    """The server's version and the settings that decide what a commit costs."""

    def steps() -> Steps[dict[str, str]]:
        rows = yield Statement("bench/about")
        names = ("postgresql", "fsync", "synchronous_commit", "shared_buffers")
        return dict(zip(names, map(str, rows[0]), strict=True))

    return Operation("about", steps, alone=True)


def settle_down() -> Operation[None]:
    """VACUUM and ANALYZE the jobs, so that runs start alike. Not inside a transaction."""
    return _plain("settle_down")


def drop() -> Operation[None]:
    """Drop the benchmark's schema."""
    return _plain("drop")


def make_effects(table: str) -> Operation[None]:
    """A table for effects. ``table`` is its quoted name."""
    return _plain("make_effects", literals={"table": table})


def effect(table: str, number: int) -> Operation[None]:
    """The effect of one operation: a row."""
    return _plain("effect", {"number": number}, {"table": table})


def _plain(
    name: str, parameters: Mapping[str, Any] = _NOTHING, literals: Mapping[str, str] = _NOTHING
) -> Operation[None]:
    def steps() -> Steps[None]:
        yield Statement(f"bench/{name}", parameters, literals)

    return Operation(name, steps, alone=True)
