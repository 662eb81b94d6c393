"""What people read: lists, one job, counts. Nothing here locks or changes anything."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from semel.core.report import (
    HistoryDaySummary,
    JobEvent,
    JobFilter,
    JobPage,
    JobRecord,
    JobSummary,
    Overview,
    QueueCounts,
    ScheduleSummary,
    When,
    read_json,
)
from semel.core.states import LIVE, Status
from semel.store.statement import Operation, Row, Statement, Steps

HISTORIC: Final = frozenset({Status.DONE, Status.CANCELLED})
"""The only statuses in the history."""

_SUMMARY_COLUMNS: Final = 16


def list_jobs(wanted: JobFilter, *, limit: int = 50, before_id: int | None = None) -> Operation[JobPage]:
    """At most ``limit`` jobs, newest first; ``before_id`` goes on after a page."""

    def steps() -> Steps[JobPage]:
        ((now,),) = yield Statement("queue/read_clock")
        parameters = filter_parameters(wanted, now) | {"limit": limit + 1, "before_id": before_id}
        rows = yield Statement("view/list_jobs", parameters, _where_to_look(wanted))
        jobs = tuple(_summary(row) for row in rows[:limit])
        return JobPage(now, jobs, jobs[-1].id if len(rows) > limit else None)

    return Operation("list_jobs", steps)


def find_job(job_id: int) -> Operation[JobRecord | None]:
    """One job with its errors, progress and events; None where there is none."""

    def steps() -> Steps[JobRecord | None]:
        ((now,),) = yield Statement("queue/read_clock")
        rows = yield Statement("view/job", {"id": job_id})
        if not rows:
            return None
        events = yield from list_events(job_id).steps()
        summary, rest = rows[0][:_SUMMARY_COLUMNS], rows[0][_SUMMARY_COLUMNS:]
        payload, result, errors, unique_until, ordering_key, claim, worker, meta, in_history = rest
        return JobRecord(
            as_of=now,
            job=_summary(summary),
            payload=read_json(payload),
            result=read_json(result),
            errors=tuple(errors),
            events=events,
            unique_until=unique_until,
            ordering_key=ordering_key,
            claim=claim,
            worker=worker,
            in_history=in_history,
            meta=read_json(meta),
        )

    return Operation("find_job", steps)


def list_events(job_id: int) -> Operation[tuple[JobEvent, ...]]:
    """What people did to a job; it is kept when the job is deleted."""

    def steps() -> Steps[tuple[JobEvent, ...]]:
        rows = yield Statement("view/job_events", {"id": job_id})
        return tuple(JobEvent(*row) for row in rows)

    return Operation("list_events", steps)


def count_queues(*, history: bool = False) -> Operation[Overview]:
    """Each queue's jobs by what they wait for, and the history's days where asked for."""

    def steps() -> Steps[Overview]:
        ((now,),) = yield Statement("queue/read_clock")
        rows = yield Statement("view/queues")
        days = (yield Statement("view/history_days")) if history else ()
        return Overview(now, tuple(map(_counts, rows)), tuple(HistoryDaySummary(*day) for day in days))

    return Operation("count_queues", steps)


def list_schedules() -> Operation[tuple[ScheduleSummary, ...]]:
    """Every schedule that a worker ever noted."""

    def steps() -> Steps[tuple[ScheduleSummary, ...]]:
        rows = yield Statement("view/schedules")
        return tuple(ScheduleSummary(*row) for row in rows)

    return Operation("list_schedules", steps)


def filter_parameters(wanted: JobFilter, now: datetime) -> dict[str, object]:
    """A filter as parameters of a statement; durations count back from ``now``, the database's."""

    def instant(when: When | None) -> datetime | None:
        return now - when if isinstance(when, timedelta) else when

    return {
        "statuses": sorted(status.value for status in wanted.statuses) or None,
        "queue": wanted.queue,
        "kind": wanted.kind,
        "unique_key": wanted.unique_key,
        "error": wanted.error,
        "created_before": instant(wanted.created_before),
        "created_after": instant(wanted.created_after),
        "finished_before": instant(wanted.finished_before),
        "finished_after": instant(wanted.finished_after),
    }


def _where_to_look(wanted: JobFilter) -> dict[str, str]:
    statuses = wanted.statuses or frozenset(Status)
    finished = wanted.finished_before is not None or wanted.finished_after is not None
    live = "live" if statuses <= LIVE else "NOT live" if finished or not statuses & LIVE else "true"
    return {"live": live, "history": "true" if statuses & HISTORIC else "false"}


def _summary(row: Row) -> JobSummary:
    return JobSummary(
        id=row[0],
        kind=row[1],
        queue=row[2],
        status=Status(row[3]),
        priority=row[4],
        attempts=row[5],
        max_attempts=row[6],
        crashes=row[7],
        run_at=row[8],
        locked_until=row[9],
        created_at=row[10],
        finished_at=row[11],
        unique_key=row[12],
        last_error=row[13],
        progress=row[14],
        progress_message=row[15],
    )


def _counts(row: Row) -> QueueCounts:
    return QueueCounts(
        queue=row[0],
        due=row[1],
        delayed=row[2],
        retrying=row[3],
        running=row[4],
        expired=row[5],
        failed=row[6],
        held=row[7],
        finished=row[8],
        oldest_due=row[9],
    )
