"""Every measure, in the order in which they run."""

from __future__ import annotations

from types import MappingProxyType

from benchmarks.measures import drain

MEASURES = MappingProxyType({each.MEASURE.name: each.MEASURE for each in (drain,)})
