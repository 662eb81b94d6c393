"""Jobs that are guarded operations: ``@app.job(once=…)`` joins the two.

A `Row()` runs in the job's transaction: effect, record and completion are one commit. For every other effect the record's
lease is kept as long as the handler runs. The guard's answers become outcomes of the job, as every queue has its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from semel.core.effects import Row
from semel.core.outcomes import Cancel, HoldForPerson, Retry, Snooze
from semel.core.retry import Policy
from semel.errors import (
    Abandoned,
    ClaimLost,
    ConfigurationError,
    Held,
    InProgress,
    KeyRefused,
    PayloadMismatch,
    RetryTransaction,
    SemelError,
    TooOld,
)
from semel.guard.declaration import to_message
from semel.guard.guarded import Guarded, Guarding
from semel.queue.context import JobContext
from semel.store.pools import Database

_SOON: Final = timedelta(seconds=1)
_LEAST: Final = timedelta(milliseconds=50)
_MOST: Final = timedelta(seconds=5)
"""An operation that another job acts on is often done long before its lease ends: look again by then."""


def guard_job(
    function: Callable[..., Any], guarding: object, *, context: bool, timeout: timedelta | None
) -> Guarded[..., Any]:
    """The guarded function behind a job. Its record's lease is extended for as long as an attempt may run."""
    if not isinstance(guarding, Guarding):
        raise ConfigurationError(
            f"once= is {guarding!r}.", remedy='Give what once.operation("…", key=…, effect=…) returns.'
        )
    declaration = guarding.declaration
    if isinstance(declaration.effect, Row) and guarding.place.dialect != "postgresql":
        raise ConfigurationError(
            f"{declaration.job_type} is a Row() of a job, whose transaction is the queue's, and its Once is in "
            f"{guarding.place.dialect}.",
            remedy="Give it a Once over the application: Once(app).",
        )
    if not isinstance(declaration.effect, Row):
        longest = declaration.longest_run if timeout is None else max(declaration.longest_run, timeout)
        declaration = dataclasses.replace(declaration, extend=True, longest_run=longest)
    return dataclasses.replace(guarding, declaration=declaration).guard(function, filled_in=int(context))


def make_handler(guarded: Guarded[..., Any], database: Database, *, context: bool) -> Callable[..., Any]:
    """The job's handler: takes the context (and for a `Row()` the transaction's connection), then the arguments.

    A `Once` over the job's own application has its records where the jobs are, in a copy of it for tests too.
    """
    in_row = isinstance(guarded.declaration.effect, Row)
    proven = getattr(guarded.place.target, "database", guarded.place.target) is database

    def run(ctx: JobContext, *args: Any, **kwargs: Any) -> Any:
        connection, rest = (args[0], args[1:]) if in_row else (None, args)
        message = to_message("semel", job_id=ctx.job_id, installation=ctx.installation)
        leading = (ctx,) if context else ()
        return guarded.run(rest, kwargs, tx=connection, message=message, leading=leading, proven=proven)

    async def handle_async(ctx: JobContext, *args: Any, **kwargs: Any) -> Any:
        try:
            return await run(ctx, *args, **kwargs)
        except Exception as error:
            raise to_outcome(error) from error

    def handle(ctx: JobContext, *args: Any, **kwargs: Any) -> Any:
        try:
            return run(ctx, *args, **kwargs)
        except Exception as error:
            raise to_outcome(error) from error

    handler: Callable[..., Any] = handle_async if guarded.is_async else handle
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(handler, name, getattr(guarded.function, name, None))
    return handler


def to_outcome(error: Exception) -> Exception:
    """What an answer of the guard means for the job (the table in docs/guard-on-the-queue.md); any other error stays itself.

    So does the answer of another operation, which the handler asked for: it says nothing about this job's own.
    """
    if isinstance(error, SemelError) and error.nested:
        return error
    match error:
        case InProgress(retry_after=retry_after):  # and Busy
            return Snooze(for_=min(max(retry_after, _LEAST), _MOST), reason=error.happened)
        case Held():
            return HoldForPerson(error.happened)
        case Abandoned():
            return Cancel(error.happened)
        case RetryTransaction():
            return Retry(after=_LEAST, reason=error.happened)
        case ClaimLost():
            # The record is somebody else's by now: this attempt writes nothing about it, and the next delivery asks it.
            return Snooze(for_=_SOON, reason=error.happened)
    return error


@dataclasses.dataclass(frozen=True, slots=True)
class GuardedPolicy:
    """A job's retry policy, less what no retry can change: another payload under the same key, or a forgotten one."""

    policy: Policy
    max_attempts: int

    def __call__(self, exception: BaseException, attempt: int) -> Any:
        if isinstance(exception, PayloadMismatch | TooOld | KeyRefused) and not exception.nested:
            return None
        return self.policy(exception, attempt)
