"""The one place that executes: it drives an operation's generator over a session, sync or async.

Every statement of semel passes here, so one hook (``watch``) sees every point at which a process can die: ``before`` and
``after`` each statement, and ``committed`` after the transaction. Tests kill processes there; nothing else uses it.
A statement's error is raised inside the operation, at its ``yield``: most let it pass.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol, TypeVar

from semel.store.statement import Copy, Operation, Rows, Statement

Answer = TypeVar("Answer")
Watch = Callable[[str, str], None]


class Session(Protocol):
    """A connection, seen through what an operation needs. Drivers' errors come out as semel's where they have one."""

    watch: Watch | None

    @property
    def dialect(self) -> str: ...
    def execute(self, statement: Statement) -> Rows: ...
    def copy(self, copy: Copy) -> Rows: ...
    def transaction(self) -> AbstractContextManager[None]: ...


class AsyncSession(Protocol):
    """The same for asyncio."""

    watch: Watch | None

    @property
    def dialect(self) -> str: ...
    async def execute(self, statement: Statement) -> Rows: ...
    async def copy(self, copy: Copy) -> Rows: ...
    def transaction(self) -> AbstractAsyncContextManager[None]: ...


def run(operation: Operation[Answer], session: Session) -> Answer:
    """Run one operation: in a transaction of its own, or in a savepoint of the caller's.

    A crash before the commit leaves nothing behind; after it, all.
    """
    if operation.alone:
        answer = _drive(operation, session)
    else:
        with session.transaction():
            answer = _drive(operation, session)
    if session.watch is not None:
        session.watch("committed", operation.name)
    return answer


async def run_async(operation: Operation[Answer], session: AsyncSession) -> Answer:
    """`run`, over an asyncio session."""
    if operation.alone:
        answer = await _drive_async(operation, session)
    else:
        async with session.transaction():
            answer = await _drive_async(operation, session)
    if session.watch is not None:
        session.watch("committed", operation.name)
    return answer


def _drive(operation: Operation[Answer], session: Session) -> Answer:
    steps = operation.steps()
    watch = session.watch
    try:
        step = next(steps)
        while True:
            if watch is not None:
                watch("before", step.name)
            try:
                rows = session.copy(step) if isinstance(step, Copy) else session.execute(step)
            except Exception as error:
                step = steps.throw(error)
                continue
            if watch is not None:
                watch("after", step.name)
            step = steps.send(rows)
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer


async def _drive_async(operation: Operation[Answer], session: AsyncSession) -> Answer:
    steps = operation.steps()
    watch = session.watch
    try:
        step = next(steps)
        while True:
            if watch is not None:
                watch("before", step.name)
            try:
                rows = await session.copy(step) if isinstance(step, Copy) else await session.execute(step)
            except Exception as error:
                step = steps.throw(error)
                continue
            if watch is not None:
                watch("after", step.name)
            step = steps.send(rows)
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer
