"""How acts are run: again, where the database only asks for that."""

from __future__ import annotations

from typing import Final, TypeVar

from semel.errors import RetryTransaction
from semel.store.faults import HistoryDayMissing
from semel.store.run import AsyncSession, Session, run, run_async
from semel.store.statement import Operation
from semel.store.upkeep import make_history_days

Answer = TypeVar("Answer")

TRIES: Final = 5
"""For deadlocks; each try waits for the winner, so they do not follow one another at once."""


def carry_out(operation: Operation[Answer], session: Session) -> Answer:
    """Run an act whole; makes a missing day of the history, and starts anew after a deadlock.

    Not inside a transaction of the caller's, which either would have ended.
    """
    for _ in range(TRIES):
        try:
            return run(operation, session)
        except HistoryDayMissing:
            run(make_history_days(), session)
        except RetryTransaction:
            continue
    return run(operation, session)


async def carry_out_async(operation: Operation[Answer], session: AsyncSession) -> Answer:
    """`carry_out`, over an asyncio session."""
    for _ in range(TRIES):
        try:
            return await run_async(operation, session)
        except HistoryDayMissing:
            await run_async(make_history_days(), session)
        except RetryTransaction:
            continue
    return await run_async(operation, session)
