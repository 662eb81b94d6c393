"""The semel job behind a held operation: a person's decision settles both in one commit, since both are in one database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from semel.core.people import Act
from semel.core.settings import Settings
from semel.core.states import Status
from semel.store.statement import Statement, Steps

ADAPTER: Final = "semel"
_ENDED: Final = frozenset({Status.HELD, Status.FAILED})
"""What a person's done and abandon settle too; a job in another state comes to the operation's new answer by itself."""


@dataclass(frozen=True, slots=True)
class SettledJob:
    """What became of the job. ``sent``: whether the operation will be delivered again."""

    sent: bool
    told: str


def job_of(message: Any) -> int | None:
    """The semel job that a kept message stands for."""
    if not isinstance(message, dict) or message.get("adapter") != ADAPTER:
        return None
    job_id = message.get("job_id")
    return job_id if isinstance(job_id, int) else None


def settle_job(act: Act, message: dict[str, Any], *, who: str, why: str) -> Steps[SettledJob | None]:
    """Move the job as the decision says, in the transaction of the decision; None where it is in another database."""
    rows = yield Statement("guard/has_queue")
    if not rows[0][0]:
        return None
    named = message.get("installation")
    if named is not None:
        rows = yield Statement("queue/installation")
        if rows[0][0] != named:
            return None
    job_id = job_of(message)
    rows = yield Statement("operate/lock_job", {"id": job_id})
    status = Status(rows[0][0]) if rows else None
    parameters = {"id": job_id, "who": who, "why": why, "before": None if status is None else status.value}
    if act is Act.REDO:
        return (yield from _run_again(status, parameters))
    if status in _ENDED:
        if act is Act.DONE:
            yield Statement("operate/resolve", parameters)
            return SettledJob(False, f"Job {job_id} is done.")
        yield Statement("operate/cancel", parameters | {"remember": Settings().keep_done.total_seconds()})
        return SettledJob(False, f"Job {job_id} is cancelled.")
    if status in (Status.PENDING, Status.RUNNING):
        return SettledJob(False, f"Job {job_id} is {status}; its next attempt is told.")
    return SettledJob(False, f"Job {job_id} has ended already.")


def _run_again(status: Status | None, parameters: dict[str, Any]) -> Steps[SettledJob]:
    job_id = parameters["id"]
    if status in (Status.PENDING, Status.RUNNING):
        return SettledJob(True, f"Job {job_id} is {status}; its next attempt acts.")
    if status is not None:
        yield Statement("operate/requeue", parameters)
        return SettledJob(True, f"Job {job_id} runs again.")
    finished = yield Statement("operate/find_finished", {"id": job_id})
    copies = (yield Statement("operate/requeue_copy", parameters)) if finished else ()
    if copies:
        return SettledJob(True, f"Job {job_id} is in the history, so it runs again as job {copies[0][0]}.")
    gone = "cannot run again: another job has its unique key" if finished else "is gone"
    return SettledJob(False, f"Job {job_id} {gone}. Enqueue it again yourself.")
