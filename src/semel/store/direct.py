"""Whether a connection leads to the server itself, or to a pooler, which may give each statement to another process."""

from __future__ import annotations

from semel.store.drivers.psycopg3 import AsyncPsycopgSession, PsycopgSession
from semel.store.run import run, run_async
from semel.store.statement import Operation, Statement, Steps


def is_direct(session: PsycopgSession) -> bool:
    """Whether the server's process is the one that the connection was told of; a pooler tells numbers of its own."""
    return run(_process(), session) == session.connection.info.backend_pid


async def is_direct_async(session: AsyncPsycopgSession) -> bool:
    """`is_direct`, for asyncio."""
    return await run_async(_process(), session) == session.connection.info.backend_pid


def _process() -> Operation[int]:
    def steps() -> Steps[int]:
        rows = yield Statement("queue/backend")
        return int(rows[0][0])

    return Operation("backend", steps, alone=True)
