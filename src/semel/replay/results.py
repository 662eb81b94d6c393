"""What a run found, as all reports show it."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from semel.replay.events import Event

RETURNED: Final = "returned"
"""How a delivery ends that raises nothing."""


class Verdict(StrEnum):
    """What a check came to. All but ``holds`` fail the run."""

    HOLDS = "holds"
    FAILS = "fails"
    VACUOUS = "vacuous"
    """Nothing was shown: the check could not have failed."""
    SKIPPED = "skipped"
    """It does not apply, for the reason given: said before the run, never after."""


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What a check must come to, written down before the first delivery."""

    check: str
    least: int
    most: int
    """Effects of one operation."""
    records: tuple[str, ...] = ()
    """States that the record may have in the end, as ``completed acted``; empty: not looked at."""
    midway: str = ""
    """The record's state while an attempt is inside the effect; empty: not looked at."""
    answer: str = ""
    """How the delivery that the check is about has to end: `RETURNED`, or an error's name; empty: not looked at."""
    control: int = 2
    """Effects that the same comes to without the guard, at least; fewer, and it could not have failed."""
    because: str = ""
    """The policy's words."""
    rounds: int = 1


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An operation's record as it was at the end of a check."""

    count: int
    state: str
    claim_age: float | None = None
    lease: float | None = None
    """Seconds."""
    error: str | None = None
    """What the last attempt, or look-up, raised."""


class Evidence(msgspec.Struct, kw_only=True):
    """What happened in one check, over all its rounds."""

    deliveries: int = 0
    begins: int = 0
    ends: int = 0
    entries: int = 0
    returns: int = 0
    maybes: int = 0
    """Entries without a return, but for those that were killed on entry."""
    effects: list[int] = msgspec.field(default_factory=list)
    """Of each operation, counted at the receiver."""
    overlapping: int | None = None
    """Rounds in which both began before either ended; None where the check is not about it."""
    processes: int = 0
    """Different processes that began a delivery."""
    exits: list[int] = msgspec.field(default_factory=list)
    """Exit codes of killed processes; -9 is a SIGKILL."""
    killed_at: list[str] = msgspec.field(default_factory=list)
    redelivered_by: str = ""
    """``broker`` or ``replay``, where a delivery came again."""
    records: list[Record] = msgspec.field(default_factory=list)
    lease_ended: bool = False
    """Whether replay ended a claim's lease in the table, in place of waiting for it."""
    midway: str | None = None
    """The record's state while an attempt was inside the effect; None: nobody looked."""
    answer: str | None = None
    """How the delivery that the check is about ended; None: not known."""
    unfinished: str | None = None
    """Why the check was not done to its end."""
    escaped: list[str] = msgspec.field(default_factory=list)
    eager: bool = False
    control: int | None = None
    """The most effects of one operation where the same was done without the guard; None: there was no control."""
    control_refused: str | None = None
    """Why there is no control."""
    notes: list[str] = msgspec.field(default_factory=list)
    events: list[Event] = msgspec.field(default_factory=list)
    logs: list[str] = msgspec.field(default_factory=list)
    """The last lines of the workers' logs, where the check failed."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One check: what was done, expected, and seen."""

    name: str
    title: str
    """What was done, in words."""
    verdict: Verdict
    reasons: tuple[str, ...]
    """Why it fails, is vacuous or was skipped."""
    expected: Expected | None
    evidence: Evidence
    seconds: float


class CodeRun(msgspec.Struct, frozen=True, kw_only=True):
    """All checks over one version of the code."""

    label: str
    """``before``, ``after``, or empty where there is one."""
    code: str
    """The directory or revision, as it was given; with the commit it came to."""
    checks: tuple[CheckResult, ...]
    guard: dict[str, Any]
    """Where the guard is: the constraint, its table and columns, what became of the check without it, the processes."""

    @property
    def holds(self) -> bool:
        """Whether every check that applies holds, and there is one."""
        judged = [check for check in self.checks if check.verdict is not Verdict.SKIPPED]
        return bool(judged) and all(check.verdict is Verdict.HOLDS for check in judged)


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    name: str
    began: datetime
    took: timedelta
    seed: int
    policy: str
    """In words, as it stood before the first delivery."""
    expectations: str
    """The file they were written to, and its SHA-256."""
    versions: dict[str, str]
    runs: tuple[CodeRun, ...]

    @property
    def holds(self) -> bool:
        """Whether the code holds; with two, the newer one, and whether the older one failed where the newer holds."""
        *before, after = self.runs
        return after.holds and all(
            any(check.verdict is Verdict.FAILS for check in each.checks) for each in before
        )
