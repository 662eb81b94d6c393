"""What is measured, and what it must come to: readings, the ratios of one turn, and a verdict over all turns."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field


class Refused(Exception):
    """What was measured does not count: jobs were lost or ran twice, or a program failed."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Cores' worth of CPU that other processes of the machine used meanwhile, and that its host held back."""

    foreign: float = 0.0
    steal: float = 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One contestant, measured once."""

    value: float
    noise: Noise = field(default_factory=Noise)
    also: Mapping[str, float] = field(default_factory=dict)


Turn = Mapping[str, Reading | Refused]
"""What each contestant came to, one after another within minutes."""

Ratio = Callable[[Turn], float | None]
"""A figure of one turn; None where nobody to compare with took part."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. ``at_least`` and ``aim`` are bounds from above where ``most`` is set; None: not judged."""

    what: str
    of: Ratio
    at_least: float | None = None
    aim: float | None = None
    most: bool = False
    unit: str = "×"


@dataclass(frozen=True, slots=True)
class Line:
    """A figure as it came out."""

    what: str
    measured: float | None
    turns: Sequence[float]
    at_least: float | None
    aim: float | None
    most: bool
    unit: str
    verdict: str
    noise: Noise


def reading(turn: Turn, name: str) -> Reading | None:
    """What a contestant came to; None where it did not take part. Raises where it was refused."""
    found = turn.get(name)
    if isinstance(found, Refused):
        raise Refused(f"{name}: {found}")
    return found


def ratio(name: str, *others: str, also: str | None = None) -> Ratio:
    """A contestant against the best of the others, by their values or by one of what was ``also`` read."""

    def of(turn: Turn) -> float | None:
        own = reading(turn, name)
        rivals = [found for other in others if (found := reading(turn, other)) is not None]
        if own is None or not rivals:
            return None
        if also is not None:
            return own.also[also] / min(rival.also[also] for rival in rivals)
        return own.value / max(rival.value for rival in rivals)

    return of


def only(name: str, also: str | None = None, divide: float = 1.0) -> Ratio:
    """A contestant's own value, or something that was ``also`` read."""

    def of(turn: Turn) -> float | None:
        own = reading(turn, name)
        return None if own is None else (own.value if also is None else own.also[also]) / divide

    return of


def judge(figure: Figure, turns: Sequence[Turn]) -> Line:
    """The median over the turns. One refusal among what it needs refuses the figure."""
    noise = _noise(turns)
    try:
        found = [value for turn in turns if (value := figure.of(turn)) is not None]
    except Refused as refusal:
        return _line(figure, [], f"refused: {refusal}", noise)
    if not found:
        return _line(figure, [], "not measured: nobody to compare with", noise)
    return _line(figure, found, _verdict(figure, statistics.median(found)), noise)


def _line(figure: Figure, found: list[float], verdict: str, noise: Noise) -> Line:
    measured = statistics.median(found) if found else None
    return Line(
        figure.what, measured, found, figure.at_least, figure.aim, figure.most, figure.unit, verdict, noise
    )


def _verdict(figure: Figure, measured: float) -> str:
    if figure.at_least is None:
        return ""
    if figure.aim is not None and _reaches(measured, figure.aim, figure.most):
        return "aim"
    return "enough" if _reaches(measured, figure.at_least, figure.most) else "SHORT"


def _reaches(measured: float, bound: float, most: bool) -> bool:
    return measured <= bound if most else measured >= bound


def _noise(turns: Iterable[Turn]) -> Noise:
    """The mean over all readings."""
    all_noise = [found.noise for turn in turns for found in turn.values() if isinstance(found, Reading)]
    if not all_noise:
        return Noise()
    return Noise(
        statistics.fmean(noise.foreign for noise in all_noise),
        statistics.fmean(noise.steal for noise in all_noise),
    )
