"""What a finding's code means: how bad it is, what can happen, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from semel.doctor.finding import Finding, Severity


class Words(NamedTuple):
    """How bad it is, what can happen, what to do."""

    severity: Severity
    happened: str
    mend: str


def find(words: Mapping[str, Words], code: str, subject: str, figure: str) -> Finding:
    """A finding by its code."""
    severity, happened, mend = words[code]
    return Finding(code=code, severity=severity, subject=subject, figure=figure, happened=happened, mend=mend)
