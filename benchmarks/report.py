"""What a run came to: as text, and as JSON with every repetition."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from benchmarks.figures import Line, Reading, Refused, Turn, judge
from benchmarks.measuring import Measure


@dataclass(frozen=True)
class Report:
    """All that is known after a run."""

    about: Mapping[str, str]
    left_out: Mapping[str, str]
    repetitions: int
    scale: float
    turns: Mapping[str, Sequence[Turn]]
    """By the measure's name."""
    measures: Sequence[Measure]

    def with_turns(self, measure: Measure, turns: Sequence[Turn]) -> Report:
        """The same, one measure later."""
        return replace(self, turns={**self.turns, measure.name: turns}, measures=[*self.measures, measure])

    def lines(self) -> list[Line]:
        """The table's."""
        return [
            judge(figure, self.turns[measure.name]) for measure in self.measures for figure in measure.figures
        ]

    def as_json(self) -> dict[str, object]:
        return {
            "about": dict(self.about),
            "left_out": dict(self.left_out),
            "repetitions": self.repetitions,
            "scale": self.scale,
            "figures": [asdict(line) for line in self.lines()],
            "measures": {
                name: [{who: _as_json(found) for who, found in turn.items()} for turn in turns]
                for name, turns in self.turns.items()
            },
        }

    def as_text(self) -> str:
        parts = [f"{name}: {value}" for name, value in self.about.items()]
        parts += [f"LEFT OUT {name}: {reason}" for name, reason in self.left_out.items()]
        parts += [f"repetitions: {self.repetitions}, scale: {self.scale:g}", ""]
        for measure in self.measures:
            parts += [_readings(measure, self.turns[measure.name]), ""]
        return "\n".join([*parts, _table(_HEAD, [_row(line) for line in self.lines()])])


_HEAD = ("what", "measured", "least – most", "at least", "aim", "verdict", "others' CPU", "steal")


def _row(line: Line) -> tuple[str, ...]:
    sign = "≤ " if line.most else ""
    span = f"{min(line.turns):.3g} – {max(line.turns):.3g}" if line.turns else ""
    return (
        line.what,
        "" if line.measured is None else f"{_figure(line.measured)} {line.unit}",
        span,
        "" if line.at_least is None else f"{sign}{line.at_least:,g}",
        "" if line.aim is None else f"{sign}{line.aim:,g}",
        line.verdict.replace("\n", " "),
        f"{line.noise.foreign:.2f}",
        f"{line.noise.steal:.2f}",
    )


def _readings(measure: Measure, turns: Sequence[Turn]) -> str:
    """Every contestant's median, with the least and the most."""
    names = list(dict.fromkeys(name for turn in turns for name in turn))
    head = (f"{measure.name} ({measure.unit})", "median", "least – most", *measure.also.values())
    return f"{measure.what}\n" + _table(head, [_contestant(name, measure, turns) for name in names])


def _contestant(name: str, measure: Measure, turns: Sequence[Turn]) -> tuple[str, ...]:
    found = [turn[name] for turn in turns if name in turn]
    refusals = [each for each in found if isinstance(each, Refused)]
    if refusals:
        return (name, "refused", str(refusals[0]).splitlines()[-1][:80], *("" for _ in measure.also))
    readings = [each for each in found if isinstance(each, Reading)]
    values = [each.value for each in readings]
    also = [
        _figure(statistics.median(each.also[key] for each in readings)) if key in readings[0].also else ""
        for key in measure.also
    ]
    return (
        name,
        _figure(statistics.median(values)),
        f"{_figure(min(values))} – {_figure(max(values))}",
        *also,
    )


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """As Markdown, aligned."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def _as_json(found: Reading | Refused) -> dict[str, object]:
    return {"refused": str(found)} if isinstance(found, Refused) else asdict(found)
