"""The database's errors in semel's words, told apart by SQLSTATE, never by their text."""

from __future__ import annotations

from semel.errors import (
    DatabaseUnreachable,
    RetryTransaction,
    SchemaMismatch,
    SemelError,
)

_SCHEMA = frozenset({"42P01", "3F000", "42703", "42883"})
_BUSY = frozenset({"55P03", "55000"})  # lock_timeout; or somebody is in the middle of a DETACH
_RETRY = frozenset({"40001", "40P01"})
_ENDED = frozenset(
    {
        "57P01",
        "57P02",
        "57P03",
        "57P05",
        "25P04",
        "53300",
        "53400",
    }  # ended, shutting down, too many connections
    | {"08000", "08001", "08003", "08004", "08006", "08P01"}
)


class HistoryDayMissing(SemelError):
    """A completion met a day of the history that is not there yet; make it and repeat."""

    code = "history-day-missing"


class LockBusy(SemelError):
    """A statement gave up on a lock that others hold (lock_timeout); nothing was changed."""

    code = "lock-busy"


def name_fault(
    error: Exception, *, sqlstate: str | None, table: str | None, constraint: str | None, lost: bool
) -> Exception:
    """The error to raise for a driver's error: one of semel's where there is one, else the driver's own."""
    summary = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if sqlstate == "23514" and constraint is None and table == "jobs_done":
        return HistoryDayMissing(f"The history has no partition for today: {summary}.")
    if sqlstate in _BUSY:
        return LockBusy(f"Others hold a lock that this needs: {summary}.", remedy="Try again later.")
    if sqlstate in _RETRY:
        return RetryTransaction(
            f"The database ended this transaction: {summary}.",
            holds="Nothing of it is stored.",
            remedy="Run the whole transaction again.",
        )
    if sqlstate in _SCHEMA:
        return SchemaMismatch(
            f"semel's tables are not there, or not as this version needs them: {summary}.",
            holds="Nothing was stored.",
            remedy="Run: semel migrate",
        )
    if lost or sqlstate in _ENDED:
        return DatabaseUnreachable(
            f"The connection to the database ended: {summary}.",
            holds="What was not committed is gone; a commit that was under way may have happened.",
            remedy="Check that the server runs and takes connections; workers try again by themselves.",
        )
    return error
