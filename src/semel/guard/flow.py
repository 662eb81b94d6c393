"""One source for sync and async: a flow yields what is to be asked of the database, or called of the user's, and takes the
answers; two short drivers do it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from semel.store.faults import LockBusy
from semel.store.statement import Operation

Answer = TypeVar("Answer")
_PATIENCE: Final = 20
"""Tries for a lock that others hold, each of half a second or a second in the database."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Run one operation of the store."""

    operation: Operation[Any]


@dataclass(frozen=True, slots=True)
class Call:
    """Call the user's code. What it raises is raised in the flow, whatever it is."""

    function: Callable[[], Any]


Flow = Generator[Ask | Call, Any, Answer]
Move = Callable[[], Ask | Call]
AskStore = Callable[[Operation[Any]], Any]
AskStoreAsync = Callable[[Operation[Any]], Awaitable[Any]]


def patiently(operation: Operation[Answer]) -> Flow[Answer]:
    """Ask what a claim's holder must be able to write, though others hold its row (SQLite: its file) for some seconds."""
    for _ in range(_PATIENCE - 1):
        try:
            return (yield Ask(operation))  # type: ignore[no-any-return]
        except LockBusy:
            continue
    return (yield Ask(operation))  # type: ignore[no-any-return]


def drive(flow: Flow[Answer], ask: AskStore, begin: Move | None = None) -> Answer:
    """Run a flow to its end. What interrupts the driver itself, between two steps, is raised in the flow too.

    ``begin`` is the first move, where it is another than the flow's start.
    """
    move = begin or partial(next, flow)
    while True:
        try:
            while True:
                step = move()
                answer = ask(step.operation) if isinstance(step, Ask) else step.function()
                move = partial(flow.send, answer)
        except BaseException as error:
            if not has_ended(flow):
                move = partial(flow.throw, error)
            elif isinstance(error, StopIteration):
                result: Answer = error.value
                return result
            else:
                raise


async def drive_async(
    flow: Flow[Answer], ask: AskStoreAsync, begin: Move | None = None, *, shield: bool = True
) -> Answer:
    """`drive`, for asyncio. A cancellation reaches the user's code; what the flow writes after it is shielded.

    Without ``shield`` it reaches the statements too, of a transaction that rolls back then.
    """
    move = begin or partial(next, flow)
    while True:
        try:
            while True:
                step = move()
                answer = await step_async(step, ask, shield=shield)
                move = partial(flow.send, answer)
        except BaseException as error:
            if not has_ended(flow):
                move = partial(flow.throw, error)
            elif isinstance(error, StopIteration):
                result: Answer = error.value
                return result
            else:
                raise


def has_ended(flow: Flow[Any]) -> bool:
    """Whether nothing of it is left to run: then an error is the flow's own."""
    return inspect.getgeneratorstate(flow) == inspect.GEN_CLOSED


async def step_async(step: Ask | Call, ask: AskStoreAsync, *, shield: bool = True) -> Any:
    """One step's answer."""
    if isinstance(step, Call):
        answer = step.function()
        return await answer if inspect.isawaitable(answer) else answer
    return await (shielded(ask(step.operation)) if shield else ask(step.operation))


async def shielded(work: Awaitable[Answer]) -> Answer:
    """Finish ``work`` even where this task is cancelled meanwhile, once or often; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                continue
        raise
