"""What each answer of the guard makes of a task's attempt (the table in docs/celery.md)."""

from __future__ import annotations

import logging
import random
from datetime import timedelta
from typing import Any, Final, NoReturn

from celery import Celery, Task
from celery.app.trace import TraceInfo
from celery.exceptions import Ignore, Reject
from celery.states import FAILURE
from kombu.exceptions import OperationalError

from semel.adapters.celery.message import Kept, publish
from semel.errors import (
    Abandoned,
    ClaimLost,
    Held,
    InProgress,
    KeyRefused,
    PayloadMismatch,
    RetryTransaction,
    SemelError,
    TooOld,
)

logger = logging.getLogger("semel.adapters.celery")

_FAILS: Final = (Held, PayloadMismatch, TooOld, KeyRefused)
"""It never succeeds by coming again, or a person decides first."""
_MOST: Final = 60.0
_LEAST: Final = 0.1
_SOON: Final = timedelta(seconds=1)


def translate(task: Task, error: SemelError, kept: Kept | None) -> NoReturn:
    """End the attempt as the answer says, by raising what Celery understands. Call it where ``error`` is caught."""
    match error:
        case InProgress(retry_after=left):  # and Busy
            _again(task, error, kept, left)
        case ClaimLost():
            # The record is somebody else's by now: this attempt says nothing, and the next delivery asks it.
            _again(task, error, kept, _SOON)
        case SemelError() if isinstance(error, _FAILS):
            _fail(task, error)
        case Abandoned():
            _revoke(task, error)
        case RetryTransaction():
            raise task.retry(exc=error, countdown=random.uniform(_LEAST, 1.0)) from error  # noqa: S311
    raise error


def wait_for(app: Celery, left: timedelta) -> float:
    """Seconds until a message is published for again: what is left of the lease, a minute at most, and some jitter.

    Less than half of a broker's visibility time-out, where a short one is set: the message waits unacknowledged in a
    worker, and would come a second time.
    """
    most = _MOST
    visibility = (app.conf.broker_transport_options or {}).get("visibility_timeout")
    if isinstance(visibility, int | float) and visibility > 0:
        most = min(most, visibility * 0.45)
    wait = min(max(left.total_seconds(), _LEAST), most)
    return wait + random.uniform(0, wait / 10)  # noqa: S311


def _again(task: Task, error: SemelError, kept: Kept | None, left: timedelta) -> NoReturn:
    if kept is None:
        raise error
    wait = wait_for(task.app, left)
    try:
        publish(task.app, kept, countdown=wait)
    except OperationalError as unreachable:
        if task.acks_late:  # the broker still has it
            raise Reject(unreachable, requeue=True) from error
        raise
    logger.info("%s[%s] comes again in %.1f s: %s", task.name, task.request.id, wait, error.happened)
    raise Ignore from error


def _fail(task: Task, error: SemelError) -> NoReturn:
    """Fail visibly and for good. Celery's own way, unless ``autoretry_for`` would take it for an error to retry.

    It is expected, so it is a line of the log, and its traceback is in the result only.
    """
    task.throws = (*_FAILS, *(each for each in _kinds(task.throws) if each not in _FAILS))
    if not hasattr(task, "_orig_run"):
        raise error
    TraceInfo(FAILURE, error).handle_error_state(task, task.request)
    raise Ignore from error


def _kinds(throws: Any) -> tuple[type[BaseException], ...]:
    """A task's ``throws``, which may be one class too."""
    return tuple(throws) if isinstance(throws, list | tuple | set) else (throws,) if throws else ()


def _revoke(task: Task, error: SemelError) -> NoReturn:
    """A person decided that it is not to happen: it ends without a result and without a next step, marked as revoked."""
    request: Any = task.request
    task.backend.mark_as_revoked(
        request.id, error.happened, request=request, store_result=not _ignores_result(task)
    )
    logger.warning("%s[%s] is not run: %s", task.name, request.id, error.happened)
    raise Ignore from error


def _ignores_result(task: Task) -> bool:
    told = vars(task.request).get("ignore_result")
    return bool(task.ignore_result if told is None else told) and not task.store_errors_even_if_ignored
