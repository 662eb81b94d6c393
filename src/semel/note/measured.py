"""The measured part of a note: how long runs took, and whether the lease still covers them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from semel.core.durations import describe
from semel.core.effects import Row
from semel.core.measured import Runs
from semel.guard.declaration import Declaration
from semel.note.page import Measured, Paragraph, Table

WITHIN = timedelta(days=30)
"""The runs that count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What the database said, or why it said nothing."""

    runs: Runs | None = None
    asked: bool = False
    """Whether a database was asked."""
    within: timedelta = WITHIN


def holds_for(declaration: Declaration) -> timedelta:
    """How long a claim holds for one run."""
    return declaration.longest_run if declaration.extend else declaration.lease


def is_covered(declaration: Declaration, runs: Runs | None) -> bool:
    """Whether the lease covers every measured run; one inside its own transaction needs none."""
    return runs is None or isinstance(declaration.effect, Row) or runs.longest <= holds_for(declaration)


def describe_measurement(declaration: Declaration, measurement: Measurement) -> Measured:
    """In words; a check of the note leaves it out."""
    runs = measurement.runs
    if not measurement.asked:
        return Measured((Paragraph("No measurement: no database was asked (--database)."),))
    if runs is None:
        within = describe(measurement.within)
        return Measured((Paragraph(f"No measurement: no attempt acted and completed within {within}."),))
    holds = holds_for(declaration)
    if isinstance(declaration.effect, Row):
        verdict = "no lease counts"
    elif is_covered(declaration, runs):
        verdict = f"covered: a claim holds for {describe(holds)}"
    else:
        verdict = f"NOT covered: a claim holds for {describe(holds)} only"
    rows = (
        ("runs", str(runs.count)),
        ("from, until", f"{runs.first:%Y-%m-%d}, {runs.last:%Y-%m-%d} (UTC)"),
        ("99 of 100 took at most", describe(runs.p99)),
        ("the longest", f"{describe(runs.longest)}; {verdict}"),
        ("completed after their lease had ended", str(runs.past_lease)),
    )
    return Measured((Table(("measured from claim to completion", ""), rows),))
