"""The report of ``semel repeats`` in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import typer

from semel.cli.output import print_table, printable_lines
from semel.core.past import to_instant
from semel.repeats.gaps import Bar, say_duration
from semel.repeats.html import say_gaps, say_lines
from semel.repeats.report import Report
from semel.repeats.suggestions import say_deploys

_WIDEST: Final = 40
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def show(report: Report) -> None:
    """Counts, what the timing suggests, the histogram, the references, the lines to know of."""
    counts = report.past.counts
    typer.echo(
        f"{counts.rows:,} rows, {counts.deliveries:,} counted: {counts.references:,} references, of which "
        f"{counts.repeated_references:,} came more than once ({counts.repeats:,} repeats)."
    )
    _not_counted(report)
    if report.past.listed or report.bars:
        _repeats(report)
    if report.deploys is not None and not report.deploys.holds:
        typer.echo(f"\nNot at deploys: {say_deploys(report.deploys)}.")
    told = report.told()
    if told:
        typer.echo("\nLines to know of:")
    for one in told:
        typer.echo(
            f"  {one.lines:,} {one.says}{'' if one.counted else ' (not counted)'}: line {say_lines(one)}"
        )
        examples = [
            f"line {line}: {text!a}" for line, text in zip(one.first_lines, one.details, strict=False) if text
        ]
        if examples:
            typer.echo(f"    {examples[0]}")


def _not_counted(report: Report) -> None:
    counts = report.past.counts
    for count, what in (
        (counts.without_reference, "have no reference"),
        (counts.without_time, "have no time"),
        (counts.unreadable_time, "have a time that cannot be read"),
    ):
        if count and report.problems is None:
            typer.echo(f"Not counted: {count:,} rows {what}.")


def _repeats(report: Report) -> None:
    typer.echo("\nWhat the timing suggests:")
    for suggestion in report.suggestions:
        typer.echo(f"  {suggestion.seen}")
        typer.echo(f"    {suggestion.means}")
    typer.echo("\nGaps between deliveries of one reference:")
    for line in draw(report.bars):
        typer.echo(line)
    if not report.past.listed:
        return
    typer.echo("")
    print_table(
        "",
        (*report.shown.columns, "deliveries", "first (UTC)", "last (UTC)", "gaps"),
        [
            (
                *(printable_lines(part) for part in report.reference(repeated)),
                f"{repeated.deliveries:,}",
                f"{to_instant(repeated.first_ms):%Y-%m-%d %H:%M:%S}",
                f"{to_instant(repeated.last_ms):%Y-%m-%d %H:%M:%S}",
                say_gaps(repeated),
            )
            for repeated in report.past.listed
        ],
    )
    if report.more > 0:
        typer.echo(f"… and {report.more:,} more (--limit).")


def draw(bars: Sequence[Bar]) -> list[str]:
    """One line a bar; each begins where the one above ends, about evenly on a logarithmic scale."""
    largest = max((bar.gaps for bar in bars), default=1)
    labels = [_label(bar) for bar in bars]
    wide = max((len(label) for label in labels), default=0)
    return [
        f"  {label:>{wide}}  {_block(bar.gaps / largest)} {bar.gaps:,}"
        for label, bar in zip(labels, bars, strict=True)
    ]


def _label(bar: Bar) -> str:
    start = say_duration(bar.from_ms) if bar.from_ms else "0"
    return f"{start} or more" if bar.to_ms is None else f"{start} to {say_duration(bar.to_ms)}"


def _block(share: float) -> str:
    eighths = max(round(share * _WIDEST * 8), 1 if share else 0)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
