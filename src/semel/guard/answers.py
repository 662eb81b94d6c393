"""The log line of every answer that is not "act"."""

from __future__ import annotations

import logging

from semel.store.guard_request import Request

logger = logging.getLogger("semel.guard")


def log_answer(level: int, request: Request, answered: str, reason: str) -> None:
    """Log what a delivery was answered, with the operation's identity."""
    logger.log(
        level,
        "operation %s %s: %s%s",
        request.job_type,
        request.label or request.key[:12],
        answered,
        f": {reason}" if reason else "",
        extra={
            "job_type": request.job_type,
            "scope": request.scope,
            "key": request.key,
            "answer": answered,
            "reason": reason,
        },
    )
