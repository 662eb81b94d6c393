"""Starts one attempt where its handler belongs: on the event loop, on a thread, in a process, in a transaction."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from semel.queue.context import JobContext, make_context
from semel.queue.job import Job
from semel.queue.worker.board import Held
from semel.queue.worker.ends import Ends
from semel.queue.worker.processes import Processes, Work
from semel.queue.worker.threads import OneProcess, Threads, end_copy
from semel.queue.worker.transactions import Transactions

logger = logging.getLogger("semel.worker")


class Launcher:
    """Starts handlers; `launch` answers how to ask one to end."""

    def __init__(
        self, installation: uuid.UUID, transactions: Transactions, processes: Processes, size: int
    ) -> None:
        self.installation = installation
        self.transactions = transactions
        self.threads = Threads(size)
        self.processes = processes
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._process = os.getpid()

    def launch(self, held: Held, job: Job[..., Any], ends: Ends) -> Callable[[], object]:
        """Start a claimed job's handler, which tells ``ends``. Raises PayloadUnreadable where its arguments do not fit."""
        if job.run_in == "process":
            context = self._context_of(held, job) if job.context else None
            function = job.function
            work = Work(function.__module__, function.__qualname__, job.kind, context, held.job.payload)
            return self.processes.start(work, held.report, partial(ends.tell, held, job))
        args, kwargs = job.signature.decode(held.job.payload)

        if job.is_async:
            run = self._run_async(held, job, args, kwargs, ends)
            task = self._loop.create_task(run, context=self._context.copy())
            if not task.done():  # as it may be, by an eager task factory
                held.task = task
            return task.cancel

        def call(connection: Any = None) -> Any:
            leading = (self._context_of(held, job, connection),) if job.context else ()
            with OneProcess():  # inside the transaction, which a fork must not end
                return job.function(*leading, *((connection,) if job.transaction else ()), *args, **kwargs)

        if job.transaction:
            return self.threads.start(
                lambda: self.transactions.run(held, call), partial(ends.tell, held, job)
            )
        return self.threads.start(call, partial(ends.tell, held, job))

    def close(self) -> None:
        self.threads.close()
        self.processes.close()

    async def _run_async(
        self, held: Held, job: Job[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], ends: Ends
    ) -> None:
        """Run a handler and tell its end. An exit is an error too: let out of a task, it would end the event loop."""
        try:
            if job.transaction:
                result = await self._in_transaction(held, job, args, kwargs)
            elif job.context:
                result = await job.function(self._context_of(held, job), *args, **kwargs)
            else:
                result = await job.function(*args, **kwargs)
        except BaseException as error:
            self._end_copy(error)
            ends.note(held, job, None, error)
        else:
            self._end_copy(None)
            ends.note(held, job, result, None)

    async def _in_transaction(
        self, held: Held, job: Job[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        async def call(connection: Any) -> Any:
            leading = (self._context_of(held, job, connection),) if job.context else ()
            with OneProcess():  # inside the transaction, which a fork must not end
                return await job.function(*leading, connection, *args, **kwargs)

        return await self.transactions.run_async(held, call)

    def _end_copy(self, error: BaseException | None) -> None:
        """As `OneProcess`, for what runs in the process that began it all."""
        if os.getpid() != self._process:
            end_copy(error)

    def _context_of(self, held: Held, job: Job[..., Any], connection: Any = None) -> JobContext:
        return make_context(
            held.job,
            installation=self.installation,
            timeout=job.timeout,
            deadline=held.deadline,
            state=None if job.run_in == "process" else held,
            connection=connection,
        )
