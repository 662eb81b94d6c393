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
    notify,
    pickup,
    row,
    sleeping,
    snapshot,
    threads,
    wal,
    workers,
)

ORDER = (
    drain,
    children,
    threads,
    sleeping,
    pickup,
    enqueue,
    notify,
    bulk,
    wal,
    idle,
    row,
    elsewhere,
    workers,
    full,
    snapshot,
    memory,
)

MEASURES = MappingProxyType({each.MEASURE.name: each.MEASURE for each in ORDER})
