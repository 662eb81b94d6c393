"""Where the guard is: its unique constraint is there, and without it the check of two at once goes red."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from semel.replay.guards import NoGuard, SemelGuard
from semel.replay.judging import judge
from semel.replay.results import CheckResult, Evidence, Expected, Verdict
from semel.store.constraints import Constraints

_log = logging.getLogger("semel.replay")
CONSTRAINT_CHECKS: Final = ("constraint", "without-constraint")
"""Their names; the second needs the first."""
_THERE = "The table that the guard writes to has a unique constraint over the operation's key."
_WITHOUT = "Two workers at once, on a copy of the table without the constraint: it has to go red."
Try = Callable[[], tuple[Expected, Evidence]]


def bring_back(guard: NoGuard | SemelGuard) -> None:
    """Put the guard's table back where a run was killed that had put it aside: before anything is delivered."""
    if guard.table is None or guard.database is None:
        return
    constraints = Constraints(guard.database, guard.table)
    try:
        if constraints.bring_back(guard.columns):
            _log.warning("%s is back: a replay that was killed had put it aside.", guard.table)
    finally:
        constraints.close()


def constraint_checks(guard: NoGuard | SemelGuard, without: Try, facts: dict[str, Any]) -> list[CheckResult]:
    """Two checks, where the guard's table is known; ``facts`` gets what was found."""
    if guard.table is None:
        facts["table"] = None
        return []
    if guard.database is None:
        facts["table"] = guard.table
        return [_skipped()]
    facts |= {"table": guard.table, "columns": list(guard.columns)}
    constraints = Constraints(guard.database, guard.table)
    try:
        facts["constraint"] = constraints.find(guard.columns)
        there = _there(facts)
        if facts["constraint"] is None:
            return [there]
        return [there, _without(constraints, guard, without, facts)]
    finally:
        constraints.close()


def _skipped() -> CheckResult:
    return CheckResult(
        name="constraint",
        title=_THERE,
        verdict=Verdict.SKIPPED,
        reasons=("the guard's database has no address to be found by: give guard.database",),
        expected=None,
        evidence=Evidence(),
        seconds=0.0,
    )


def _there(facts: dict[str, Any]) -> CheckResult:
    found = facts["constraint"]
    reasons = () if found else (f"{facts['table']} has none over {', '.join(facts['columns'])}",)
    return CheckResult(
        name="constraint",
        title=_THERE,
        verdict=Verdict.HOLDS if found else Verdict.FAILS,
        reasons=reasons,
        expected=None,
        evidence=Evidence(),
        seconds=0.0,
    )


def _without(
    constraints: Constraints, guard: NoGuard | SemelGuard, without: Try, facts: dict[str, Any]
) -> CheckResult:
    clock = time.monotonic()
    with constraints.put_aside(guard.columns):
        wanted, evidence = without()
    evidence.control_refused = "it is one itself"
    verdict, reasons = judge(wanted, evidence)
    red = verdict is Verdict.FAILS
    facts["without"] = "; ".join(reasons) or "it held"
    return CheckResult(
        name="without-constraint",
        title=_WITHOUT,
        verdict=Verdict.HOLDS if red else Verdict.VACUOUS,
        reasons=()
        if red
        else ("without the constraint it did not go red: the constraint is not what guards", *reasons),
        expected=None,
        evidence=evidence,
        seconds=time.monotonic() - clock,
    )
