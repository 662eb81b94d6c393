"""The application of ``queue_app``, where a person's redo sends the message before it releases the operation."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from queue_app import app, charge

from semel.operate import held
from semel.operate.acts import retry
from semel.operate.carry_out import carry_out
from semel.store.guard_people import lock
from semel.store.views import find_job

__all__ = ["app", "charge"]
resolve = held.resolve


def publish_first(session: Any, decision: Any, resenders: Any = ()) -> Any:
    job_id = held.job_of(carry_out(lock(decision.operation_id), session).message)
    wait_ended(session, job_id)
    acted = carry_out(retry(job_id, who=decision.who, why=decision.why), session)
    wait_ended(session, acted.new_id or acted.job_id)
    held.jobs_beside = lambda session: False
    return dataclasses.replace(resolve(session, decision), sent=True)


def wait_ended(session: Any, job_id: int) -> None:
    ends = time.monotonic() + 20
    while (
        carry_out(find_job(job_id), session).job.status in ("pending", "running") and time.monotonic() < ends
    ):
        time.sleep(0.05)


held.resolve = publish_first
