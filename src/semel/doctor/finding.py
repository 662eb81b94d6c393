"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is. Notes are for knowing; the others are to be mended."""

    ERROR = "error"
    """The promise of an operation's policy does not hold as it is set up."""
    WARNING = "warning"
    """Work can be lost, stuck or delivered again and again; the record keeps it from happening twice."""
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that does not fit, with the figures that say so."""

    code: str
    """Stable; docs/doctor.md has a line on each."""
    severity: Severity
    subject: str
    """What it is about: a task, a queue, the broker."""
    figure: str
    """The numbers that were held against each other."""
    happened: str
    """What can happen."""
    mend: str
    """What to do."""

    @property
    def is_fine(self) -> bool:
        """Whether nothing needs mending."""
        return self.severity is Severity.NOTE


def in_order(findings: list[Finding]) -> list[Finding]:
    """The worst first, then as found."""
    rank = list(Severity)
    return sorted(findings, key=lambda finding: rank.index(finding.severity))
