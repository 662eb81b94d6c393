"""What the timing of repeats suggests, each with its figures. A suggestion is where to look, not a proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from semel.core.past import GapGroup, Past, to_instant
from semel.repeats.bursts import find_bursts
from semel.repeats.deploys import AtDeploys
from semel.repeats.gaps import CLOSE_MS, DAY, FAR_MS, HOUR, MINUTE, SECOND, Peak, find_peaks, say_duration

_KNOWN: Final = MappingProxyType(
    {
        30 * SECOND: "the default visibility time-out of Amazon SQS is 30 s",
        15 * MINUTE: "pg-boss ends a job after 15 min, AWS Lambda a call",
        30 * MINUTE: "RabbitMQ's consumer time-out and Celery's visibility time-out on SQS are 30 min",
        HOUR: "Celery's visibility time-out on Redis is 1 h",
        4 * HOUR: "Graphile Worker unlocks a job after 4 h",
        12 * HOUR: "an SQS message can be invisible for 12 h at most",
    }
)
_MOST_BURSTS: Final = 5


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One reading of the timing: its kind, what was seen, what it may be, its figures."""

    kind: str
    seen: str
    means: str
    figures: Mapping[str, Any]


def suggest(past: Past, deploys: AtDeploys | None) -> list[Suggestion]:
    """Equal gaps first, then what remains of the short and the long ones, then what came at one time."""
    all_gaps = sum(group.gaps for group in past.gaps)
    peaks = [peak for peak in find_peaks(past.gaps) if peak.about_ms <= DAY or _is_whole_days(peak)]
    rest = [group for group in past.gaps if not any(_within(group, peak) for peak in peaks)]
    found = [_equal(peak, all_gaps) for peak in peaks]
    found += _apart(rest, all_gaps)
    if deploys is not None and deploys.holds:
        found.append(_deploys(deploys))
    return found + _bursts(past)


def _within(group: GapGroup, peak: Peak) -> bool:
    return peak.least_ms <= group.least_ms and group.most_ms <= peak.most_ms


def _is_whole_days(peak: Peak) -> bool:
    """No time-out is as long; what recurs by the day is a schedule, and other long gaps have nothing in common."""
    return peak.about_ms >= 20 * HOUR and min(peak.about_ms % DAY, DAY - peak.about_ms % DAY) <= HOUR


def _equal(peak: Peak, all_gaps: int) -> Suggestion:
    share = peak.gaps / all_gaps
    figures = {"about_seconds": peak.about_ms / SECOND, "gaps": peak.gaps, "share": round(share, 4)}
    about = say_duration(peak.about_ms)
    if _is_whole_days(peak):
        return Suggestion(
            "schedule",
            f"{_part(peak.gaps, share)} about {about} apart",
            "equal gaps of whole days: a schedule, or a report that is asked for again",
            figures,
        )
    known = _KNOWN.get(peak.about_ms)
    hint = f" ({known})" if known else ""
    return Suggestion(
        "time-out",
        f"{_part(peak.gaps, share)} about {about} apart",
        f"equal gaps: a time-out of {about}, after which the work is delivered again, or a fixed retry delay{hint}",
        figures,
    )


def _apart(rest: Sequence[GapGroup], all_gaps: int) -> list[Suggestion]:
    close = sum(group.gaps for group in rest if group.most_ms < CLOSE_MS)
    far = sum(group.gaps for group in rest if group.least_ms >= FAR_MS)
    between = sum(group.gaps for group in rest) - close - far
    told = (
        ("retry", close, f"less than {say_duration(CLOSE_MS)} apart",
         "close together: a retry, a double click, or one message delivered twice"),
        ("unclear", between, f"between {say_duration(CLOSE_MS)} and {say_duration(FAR_MS)} apart",
         "spread, without one gap that stands out: no time-out; backoff, or people who try again"),
        ("enqueued-again", far, f"{say_duration(FAR_MS)} or more apart", "far apart: the work was enqueued again"),
    )  # fmt: skip
    return [
        Suggestion(
            kind,
            f"{_part(gaps, gaps / all_gaps)} {seen}",
            means,
            {"gaps": gaps, "share": round(gaps / all_gaps, 4)},
        )
        for kind, gaps, seen, means in told
        if gaps
    ]


def _deploys(found: AtDeploys) -> Suggestion:
    return Suggestion(
        "deploys",
        say_deploys(found),
        "at deploys: workers that are stopped before they acknowledge, or a release that enqueues again",
        {"at_deploys": found.at_deploys, "by_chance": round(found.by_chance, 2), "p_value": found.p_value},
    )


def say_deploys(found: AtDeploys) -> str:
    """The count beside what chance would give."""
    return (
        f"{found.at_deploys:,} of {found.repeats:,} repeats within {say_duration(found.window_ms)} after a deploy; "
        f"by chance {found.by_chance:.1f} (p {say_chance(found.p_value)}, deploys shifted: p "
        f"{say_chance(found.p_shifted)})"
    )


def say_chance(value: float) -> str:
    return "< 1e-12" if value < 1e-12 else f"= {value:.2g}"


def _bursts(past: Past) -> list[Suggestion]:
    bursts = find_bursts(past.buckets, past.step_ms)
    return [
        Suggestion(
            "burst",
            f"{burst.references:,} references came again within {say_duration(burst.to_ms - burst.from_ms)} from "
            f"{to_instant(burst.from_ms):%Y-%m-%d %H:%M} UTC (by chance {burst.by_chance:.1f})",
            "a burst: an incident, a script that was run again, a queue that was replayed",
            {
                "references": burst.references,
                "from": to_instant(burst.from_ms),
                "to": to_instant(burst.to_ms),
                "by_chance": round(burst.by_chance, 2),
                "of_bursts": len(bursts),
            },
        )
        for burst in bursts[:_MOST_BURSTS]
    ]


def _part(gaps: int, share: float) -> str:
    percent = "100%" if share == 1 else f"{min(share * 100, 99.9):.1f}%"
    return f"{gaps:,} gap{'' if gaps == 1 else 's'} ({percent})"
