"""What a drain sees of the real engine: each attempt's end, and the exception or result behind it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import msgspec

from semel.core.decide import ErrorRecord, Settlement
from semel.core.outcomes import JobOutcome
from semel.core.states import Status
from semel.queue.app import App
from semel.queue.job import Job
from semel.queue.worker.board import Board, Ending, Held
from semel.queue.worker.slots import SlotTable
from semel.store.jobs import Detail
from semel.testing.outcomes import AttemptOutcome


@dataclass(slots=True)
class Notes:
    """What handlers returned or raised, by job, until the attempt's end is noted. One attempt of a job at a time."""

    _ends: dict[int, tuple[Any, BaseException | None]] = field(default_factory=dict)

    def put(self, job_id: int, result: Any, error: BaseException | None) -> None:
        self._ends[job_id] = result, error

    def take(self, job_id: int) -> tuple[Any, BaseException | None]:
        return self._ends.pop(job_id, (None, None))


class WatchedApp(App):
    """An application as it is, except that what its handlers return and raise is noted."""

    def __init__(self, app: App, notes: Notes) -> None:
        super().__init__(app.url, schema=app.catalogue.schema, settings=app.settings)
        self.database = app.database
        self._watched = {kind: _watched(job, notes) for kind, job in app.jobs.items()}

    @property
    def jobs(self) -> Mapping[str, Job[..., Any]]:
        return MappingProxyType(self._watched)


class WatchedBoard(Board):
    """An engine's board that notes how each attempt ended."""

    def __init__(self, slots: SlotTable, notes: Notes, tell: Callable[[AttemptOutcome], None]) -> None:
        super().__init__(slots)
        self._notes = notes
        self._tell = tell

    def end(self, ending: Ending) -> None:
        super().end(ending)
        result, exception = self._notes.take(ending.held.job.id)
        if not ending.give_back:
            self._tell(_outcome(ending.held, ending.detail, result, exception))

    def release(self, held: Held) -> None:
        super().release(held)
        if held.settled:  # its own transaction has ended the job
            result, _ = self._notes.take(held.job.id)
            self._tell(_outcome(held, None, result, None))


def _watched(job: Job[..., Any], notes: Notes) -> Job[..., Any]:
    """The context comes first in any case, and says whose attempt it is; the handler gets what it declared."""
    if job.run_in == "process":
        return job
    handler = job.function

    def given(args: tuple[Any, ...]) -> tuple[Any, ...]:
        return args if job.context else args[1:]

    if job.is_async:

        @functools.wraps(handler)
        async def run(*args: Any, **kwargs: Any) -> Any:
            result: Any = None
            error: BaseException | None = None
            try:
                result = await handler(*given(args), **kwargs)
            except BaseException as raised:
                error = raised
                raise
            finally:
                notes.put(args[0].job_id, result, error)
            return result

    else:

        @functools.wraps(handler)
        def run(*args: Any, **kwargs: Any) -> Any:
            result: Any = None
            error: BaseException | None = None
            try:
                result = handler(*given(args), **kwargs)
            except BaseException as raised:
                error = raised
                raise
            finally:
                notes.put(args[0].job_id, result, error)
            return result

    return replace(job, function=run, context=True)


def _outcome(
    held: Held, detail: Detail | None, result: Any, exception: BaseException | None
) -> AttemptOutcome:
    settlement = _settlement(detail)
    if not _belongs(exception, settlement.error):
        exception = None
    return AttemptOutcome(job=held.job, settlement=settlement, result=result, exception=exception)


def _settlement(detail: Detail | None) -> Settlement:
    if detail is None:
        return Settlement(Status.DONE, None, None, refund=False, error=None, result=None, reason="")
    error = None if detail.error is None else msgspec.json.decode(detail.error, type=ErrorRecord)
    return Settlement(
        status=Status(detail.status),
        delay=None if detail.delay is None else timedelta(seconds=detail.delay),
        run_at=None if detail.run_at is None else datetime.fromisoformat(detail.run_at),
        refund=detail.refund,
        error=error,
        result=None if detail.result is None else bytes(detail.result),
        reason=error.reason if error is not None else detail.summary or "",
    )


def _belongs(exception: BaseException | None, error: ErrorRecord | None) -> bool:
    """Whether the worker's record is of this exception: a time-out's is of TimedOut, not of what interrupted."""
    if error is None:
        return isinstance(exception, JobOutcome)
    return error.type.rpartition(".")[2] == type(exception).__name__
