"""A claim whose attempt was interrupted while it began: its function was not called."""

from __future__ import annotations

import logging
from typing import Final

from semel.core.operations import Record, State
from semel.guard.answers import log_answer
from semel.guard.flow import Flow, patiently
from semel.store import guard_end
from semel.store.guard_begin import read
from semel.store.guard_request import Request

logger = logging.getLogger("semel.guard")
_INTERRUPTIONS: Final = 10


def give_back(request: Request, error: str) -> Flow[None]:
    """Release the attempt's own claim, if there is one: this attempt did nothing.

    Where an attempt before it may have acted, nobody knows what that one did: then the claim is uncertain, and one that was
    to look first is left to its lease. Where storing fails the lease decides too.
    """
    try:
        record = yield from _read(request)
        if record is None or not record.mine or record.state is not State.CLAIMED:
            return
        if not (
            record.acting and (record.takeovers or record.looks)
        ):  # a claim of what is new or was released
            yield from patiently(guard_end.release(request, error=error))
            log_answer(logging.INFO, request, "released", error)
        elif record.unsure_for is None:
            yield from patiently(guard_end.uncertain(request, error=error))
            log_answer(logging.WARNING, request, "uncertain", error)
    except Exception as storing:  # whatever the driver raises
        logger.error(
            "%s: its claim could not be given back, its lease decides: %s", request.job_type, storing
        )


def _read(request: Request) -> Flow[Record | None]:
    """The record, though the attempt is interrupted again while it is read."""
    for _ in range(_INTERRUPTIONS):
        try:
            return (yield from patiently(read(request)))
        except (Exception, GeneratorExit):
            raise
        except BaseException as again:
            logger.debug("interrupted again: %r", again)
    return (yield from patiently(read(request)))
