"""Every measure, in the order in which they run."""

from __future__ import annotations

from types import MappingProxyType

from benchmarks.measures import (
    bulk,
    children,
    drain,
    elsewhere,
    enqueue,
    full,
    idle,
    memory,
    pickup,
    sleeping,
    threads,
    wal,
    workers,
)

MEASURES = MappingProxyType(
    {
        each.MEASURE.name: each.MEASURE
        for each in (
            drain,
            children,
            threads,
            sleeping,
            pickup,
            enqueue,
            bulk,
            wal,
            idle,
            full,
            elsewhere,
            memory,
            workers,
        )
    }
)
