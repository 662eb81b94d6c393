"""Starts one attempt where its handler belongs: on the event loop, on a thread, in a process, in a transaction."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from typing import Any

from semel.queue.context import JobContext, make_context
from semel.queue.job import Job
from semel.queue.worker.board import Held
from semel.queue.worker.processes import Processes, Work
from semel.queue.worker.threads import OneProcess, Threads
from semel.queue.worker.transactions import Transactions

logger = logging.getLogger("semel.worker")

Ended = Callable[[Any, BaseException | None], None]
"""Called on the event loop with the handler's result or error."""


class Launcher:
    """Starts handlers; `launch` answers how to ask one to end."""

    def __init__(
        self, installation: uuid.UUID, transactions: Transactions, processes: Processes, size: int
    ) -> None:
        self.installation = installation
        self.transactions = transactions
        self.threads = Threads(size)
        self.processes = processes

    def launch(self, held: Held, job: Job[..., Any], ended: Ended) -> Callable[[], object]:
        """Start a claimed job's handler. Raises PayloadUnreadable where its arguments do not fit."""
        if job.run_in == "process":
            context = self._context(held, job) if job.context else None
            function = job.function
            work = Work(function.__module__, function.__qualname__, job.kind, context, held.job.payload)
            return self.processes.start(work, held.report, _from_thread(held, ended))
        args, kwargs = job.signature.decode(held.job.payload)

        def call(connection: Any = None) -> Any:
            leading = (self._context(held, job, connection),) if job.context else ()
            with OneProcess():  # inside the transaction, which a fork must not end
                return job.function(*leading, *((connection,) if job.transaction else ()), *args, **kwargs)

        async def call_async(connection: Any = None) -> Any:
            with OneProcess():
                return await call(connection)

        if job.is_async:
            task = asyncio.get_running_loop().create_task(self._run_async(held, job, call_async))
            task.add_done_callback(lambda task: ended(*_outcome(task)))
            return task.cancel
        if job.transaction:
            return self.threads.start(lambda: self.transactions.run(held, call), _from_thread(held, ended))
        return self.threads.start(call, _from_thread(held, ended))

    def close(self) -> None:
        self.threads.close()
        self.processes.close()

    async def _run_async(
        self, held: Held, job: Job[..., Any], call: Callable[..., Any]
    ) -> tuple[Any, BaseException | None]:
        """The handler's result or error. An exit is an error too: let out of a task, it would end the event loop."""
        try:
            if job.transaction:
                return await self.transactions.run_async(held, call), None
            return await call(), None
        except BaseException as error:
            return None, error

    def _context(self, held: Held, job: Job[..., Any], connection: Any = None) -> JobContext:
        return make_context(
            held.job,
            installation=self.installation,
            timeout=job.timeout,
            deadline=held.deadline,
            state=None if job.run_in == "process" else held,
            connection=connection,
        )


def _outcome(task: asyncio.Task[tuple[Any, BaseException | None]]) -> tuple[Any, BaseException | None]:
    return (None, asyncio.CancelledError()) if task.cancelled() else task.result()


def _from_thread(held: Held, ended: Ended) -> Ended:
    loop = asyncio.get_running_loop()

    def done(result: Any, error: BaseException | None) -> None:
        try:
            loop.call_soon_threadsafe(ended, result, error)
        except RuntimeError:  # the loop is closed: the worker has stopped without this attempt
            logger.warning("job %s ended after its worker had stopped", held.job.id)

    return done
