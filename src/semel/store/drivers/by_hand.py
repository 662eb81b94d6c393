"""Transactions by their own statements, for connections in autocommit whose library has none that fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

BEGIN: Final = MappingProxyType(
    {
        "postgresql": "BEGIN ISOLATION LEVEL READ COMMITTED",
        "mysql": "START TRANSACTION",
        "sqlite": "BEGIN IMMEDIATE",
    }
)
"""On MySQL the isolation is the session's; SQLite's writers exclude each other from the beginning."""


@contextmanager
def transaction_by_hand(execute: Callable[[str], object], dialect: str) -> Iterator[None]:
    """A transaction of its own on a connection in autocommit."""
    execute(BEGIN[dialect])
    try:
        yield
        execute("COMMIT")
    except BaseException:
        _try(execute, "ROLLBACK")
        raise


@contextmanager
def savepoint_by_hand(execute: Callable[[str], object]) -> Iterator[None]:
    """A savepoint in the caller's transaction. One name serves all: the newest counts."""
    execute("SAVEPOINT semel")
    try:
        yield
    except BaseException:
        _try(execute, "ROLLBACK TO SAVEPOINT semel")
        _try(execute, "RELEASE SAVEPOINT semel")
        raise
    execute("RELEASE SAVEPOINT semel")


def _try(execute: Callable[[str], object], statement: str) -> None:
    """The first error counts: where the connection or the transaction is gone, so is what would be undone."""
    try:
        execute(statement)
    except Exception:  # noqa: S110
        pass
