"""Reads the numbers of a database: its own, and how far its clock is from this machine's."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from semel.core.health import Health
from semel.doctor.database import Budget, DatabaseNumbers, Limits
from semel.store.health import read_guard_health, read_health, read_instant
from semel.store.run import Session, run


def read_database(
    session: Session,
    *,
    limits: Limits | None = None,
    budget: Budget | None = None,
    keep: timedelta | None = None,
    clock: Callable[[], float] = time.time,
) -> DatabaseNumbers:
    """Read-only, on one connection. ``clock`` is this machine's."""
    skew = _skew(session, clock)
    numbers = DatabaseNumbers(health=_health(session, limits or Limits()), skew=skew, budget=budget)
    return numbers if keep is None else replace(numbers, keep=keep)


def _health(session: Session, limits: Limits) -> Health:
    if session.dialect == "postgresql":
        return run(read_health(waiting=limits.waiting), session)
    return run(read_guard_health(session.dialect), session)


def _skew(session: Session, clock: Callable[[], float]) -> timedelta:
    """This machine's clock less the database's; what asking took is in nobody's disfavour."""
    before = clock()
    there = run(read_instant(), session)
    after = clock()
    if before <= there <= after:
        return timedelta(0)
    return timedelta(seconds=before - there if there < before else after - there)
