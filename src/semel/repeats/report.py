"""All that is told of one history, with references masked as asked; and its JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from semel.core.past import Past, RepeatedReference, to_instant
from semel.repeats.deploys import AtDeploys
from semel.repeats.gaps import Bar, histogram
from semel.repeats.masking import Mask, mask
from semel.repeats.problems import NOTED, REFUSED, Problems
from semel.repeats.suggestions import Suggestion


@dataclass(frozen=True, slots=True)
class Shown:
    """How the person wants it."""

    source: str
    columns: tuple[str, ...]
    mask: Mask = Mask.NONE
    mask_key: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """What one problem is, in how many lines, and which come first."""

    kind: str
    lines: int
    counted: bool
    says: str
    first_lines: tuple[int, ...]
    details: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Ready to be shown."""

    shown: Shown
    past: Past
    suggestions: tuple[Suggestion, ...]
    deploys: AtDeploys | None = None
    problems: Problems | None = None

    @property
    def more(self) -> int:
        """How many repeated references are not listed."""
        return self.past.counts.repeated_references - len(self.past.listed)

    @property
    def bars(self) -> list[Bar]:
        return histogram(self.past.gaps)

    def reference(self, repeated: RepeatedReference) -> tuple[str, ...]:
        """Its parts, as they may be shown."""
        return tuple(mask(part, self.shown.mask, self.shown.mask_key) for part in repeated.reference)

    def told(self) -> list[Told]:
        """What is wrong with lines: first what keeps them from being counted."""
        met = self.problems.kinds if self.problems else {}
        return [
            Told(
                kind,
                met[kind].count,
                kinds is NOTED,
                kinds[kind],
                tuple(met[kind].lines),
                tuple(met[kind].details) if self.shown.mask is Mask.NONE else (),
            )
            for kinds in (REFUSED, NOTED)
            for kind in kinds
            if kind in met
        ]

    def to_json(self) -> dict[str, Any]:
        """Times are instants, gaps seconds. The shape is in docs/repeats.md."""
        counts = asdict(self.past.counts)
        first, last = counts.pop("first_ms"), counts.pop("last_ms")
        return {
            "source": self.shown.source,
            "columns": self.shown.columns,
            "counts": {
                **counts,
                "references": self.past.counts.references,
                "first": None if first is None else to_instant(first),
                "last": None if last is None else to_instant(last),
            },
            "repeats": [self._one(repeated) for repeated in self.past.listed],
            "more": self.more,
            "suggests": [asdict_of(suggestion) for suggestion in self.suggestions],
            "deploys": None if self.deploys is None else asdict(self.deploys) | {"holds": self.deploys.holds},
            "gaps": [
                {
                    "from": bar.from_ms / 1_000,
                    "to": None if bar.to_ms is None else bar.to_ms / 1_000,
                    "gaps": bar.gaps,
                }
                for bar in self.bars
            ],
            "problems": [asdict(told) for told in self.told()],
        }

    def _one(self, repeated: RepeatedReference) -> dict[str, Any]:
        gaps = [timedelta(milliseconds=gap) for gap in repeated.gaps_ms]
        return {
            "reference": list(self.reference(repeated)),
            "deliveries": repeated.deliveries,
            "first": to_instant(repeated.first_ms),
            "last": to_instant(repeated.last_ms),
            "shortest_gap": timedelta(milliseconds=repeated.shortest_gap_ms),
            "longest_gap": timedelta(milliseconds=repeated.longest_gap_ms),
            "gaps": gaps,
            "more_gaps": repeated.deliveries - 1 - len(gaps),
        }


def asdict_of(suggestion: Suggestion) -> dict[str, Any]:
    """Its figures are a read-only mapping, which `asdict` does not copy everywhere."""
    return {
        "kind": suggestion.kind,
        "seen": suggestion.seen,
        "means": suggestion.means,
        "figures": dict(suggestion.figures),
    }
