"""Storing new jobs, in the transaction that the session is in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any, Final

import msgspec

from semel.core.job import Enqueued, JobOptions, NewJob
from semel.core.states import Status
from semel.errors import RetryTransaction
from semel.store.statement import Copy, Operation, Statement, Steps

COPY_FROM = 1_000
"""Rows from which COPY is worth its two round trips."""

MOST_ROWS = 5_000
MOST_BYTES = 8 * 1024 * 1024
"""Of one INSERT: what a server and a driver hold in memory for it stays small."""

_PIECE: Final = 16 * 1024
"""Characters of a COPY that are sent at a time."""
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

TRIES = 10
"""How often a unique key may change hands between the two statements of one enqueue."""

_OPTIONS: Final = attrgetter("options")
_COLUMNS: Final = ("id", "payload", "kind", "queue", "priority", "max_attempts")
"""Of every COPY; the others only where a job needs them. A time costs the server a fifth of the row to read."""


class _Listed(msgspec.Struct, omit_defaults=True, gc=False):
    """A row of queue/enqueue_many; what is left out is NULL there."""

    place: int
    kind: str
    payload: msgspec.Raw
    queue: str
    priority: int
    max_attempts: int
    run_at: datetime | None = None
    delay: float | None = None
    unique_key: str | None = None
    unique_for: float | None = None
    ordering_key: str | None = None


def enqueue(job: NewJob) -> Operation[Enqueued]:
    """Store one job, or find the one that holds its unique key.

    One statement, except after a conflict. Where another open transaction has stored the same key, waits
    until it ends.
    """
    if _is_plain(job.options):
        return Operation("enqueue", partial(_store_plain, job), alone=True)
    parameters = _parameters(job)

    def steps() -> Steps[Enqueued]:
        for _ in range(TRIES):
            rows = yield Statement("queue/enqueue_keyed", parameters)
            if rows:
                return Enqueued(rows[0][0], created=True, status=Status.PENDING)
            rows = yield Statement(
                "queue/find_unique", {"kind": job.kind, "unique_key": job.options.unique_key}
            )
            for id_, status, over in rows:
                if not over:
                    return Enqueued(id_, created=False, status=Status(status))
                yield Statement("queue/free_unique", {"ids": f"{{{id_}}}"})
        raise _restless(job)

    return Operation("enqueue", steps, alone=True)


def _store_plain(job: NewJob) -> Steps[Enqueued]:
    options = job.options
    parameters = {
        "kind": job.kind,
        "payload": job.payload.decode(),
        "queue": options.queue,
        "priority": options.priority,
        "max_attempts": options.max_attempts,
    }
    rows = yield Statement("queue/enqueue", parameters)
    return Enqueued(rows[0][0], created=True, status=Status.PENDING)


def enqueue_many(jobs: Sequence[NewJob], *, copy: bool) -> Operation[list[Enqueued]]:
    """Store many jobs, all or none, answered in their order.

    ``copy`` says that the driver can COPY, which is then used for thousands without unique keys. Of a unique
    key that comes twice the first is stored and both are answered with it.
    """
    alike = list({id(options): options for options in map(_OPTIONS, jobs)}.values())
    keyed = any(options.unique_key is not None for options in alike)
    if copy and len(jobs) >= COPY_FROM and not keyed:
        return Operation("enqueue_copy", lambda: _copy(jobs, alike), alone=True)
    placed = list(enumerate(jobs))
    if keyed:  # one order for all callers, so that two of them cannot wait for each other
        placed.sort(key=lambda pair: (pair[1].kind, pair[1].options.unique_key or ""))
    chunks = tuple(_chunks(placed))

    def steps() -> Steps[list[Enqueued]]:
        answers: dict[int, Enqueued] = {}
        for chunk in chunks:
            yield from _insert(chunk, answers)
        return [answers[place] for place in range(len(jobs))]

    return Operation("enqueue_many", steps, alone=len(chunks) == 1 and not keyed)


def _insert(chunk: Mapping[int, NewJob], answers: dict[int, Enqueued]) -> Steps[None]:
    """Store the jobs of a chunk, by place; again for those whose unique key came free meanwhile."""
    missing = dict(chunk)
    for _ in range(TRIES):
        rows = yield Statement(
            "queue/enqueue_many", {"rows": _json(list(map(_listed, missing, missing.values())))}
        )
        for place, id_ in rows:
            answers[place] = Enqueued(id_, created=True, status=Status.PENDING)
            del missing[place]
        if not missing:
            return
        wanted = [
            {"place": place, "kind": job.kind, "unique_key": job.options.unique_key}
            for place, job in missing.items()
        ]
        rows = yield Statement("queue/find_unique_many", {"rows": _json(wanted)})
        over = {id_ for _, id_, _, ended in rows if ended}
        for place, id_, status, ended in rows:
            if not ended:
                answers[place] = Enqueued(id_, created=False, status=Status(status))
                del missing[place]
        if over:
            yield Statement("queue/free_unique", {"ids": f"{{{','.join(map(str, sorted(over)))}}}"})
        if not missing:
            return
    raise _restless(next(iter(missing.values())))


def _copy(jobs: Sequence[NewJob], alike: Iterable[JobOptions]) -> Steps[list[Enqueued]]:
    """Ids first, so that each row's is known: COPY answers with none. Ids of a COPY that fails stay
    unused."""
    rows = yield Statement("queue/reserve_ids", {"count": len(jobs)})
    ids = rows[0][0].split(" ")
    now = datetime.fromtimestamp(rows[0][1], UTC)
    columns = (*_COLUMNS, *_needed(alike))
    yield Copy("queue/copy", "jobs", columns, _pieces(ids, jobs, columns, now))
    status = Status.PENDING
    return [Enqueued(id_, True, status) for id_ in map(int, ids)]  # by position: half the time


def _needed(alike: Iterable[JobOptions]) -> list[str]:
    """The columns, beyond those of every COPY, that some of the jobs have a value for."""
    names = {"ordering_key" for options in alike if options.ordering_key is not None}
    names |= {"run_at" for options in alike if not _is_due(options)}
    return sorted(names)


def _pieces(
    ids: Iterable[str], jobs: Iterable[NewJob], columns: Sequence[str], now: datetime
) -> Iterator[str]:
    """Lines of COPY, some at a time: the server stores the first ones while the next ones are made."""
    lines: list[str] = []
    end, kind, options, size = "", "", None, 0
    for id_, job in zip(ids, jobs, strict=True):
        if job.options is not options or job.kind is not kind:
            kind, options = job.kind, job.options
            end = _end_of_line(job, columns[2:], now)
        payload = job.payload.decode()
        if "\\" in payload or not payload.isprintable():
            payload = payload.translate(_ESCAPES)
        lines.append(f"{id_}\t{payload}{end}")
        size += len(payload)
        if size >= _PIECE:
            yield "".join(lines)
            lines, size = [], 0
    yield "".join(lines)


def _end_of_line(job: NewJob, columns: Iterable[str], now: datetime) -> str:
    """What comes after the payload, which jobs that are made alike have in common."""
    options = job.options
    run_at = options.run_at or now + (options.delay or timedelta(0))
    values = {
        "kind": job.kind,
        "queue": options.queue,
        "priority": options.priority,
        "max_attempts": options.max_attempts,
        "run_at": run_at.isoformat(),
        "ordering_key": options.ordering_key,
    }
    chosen = (values[name] for name in columns)
    written = ("\\N" if value is None else str(value).translate(_ESCAPES) for value in chosen)
    return "".join(f"\t{value}" for value in written) + "\n"


def _chunks(placed: Iterable[tuple[int, NewJob]]) -> Iterator[dict[int, NewJob]]:
    chunk: dict[int, NewJob] = {}
    size = 0
    for place, job in placed:
        if len(chunk) >= MOST_ROWS or (chunk and size + len(job.payload) > MOST_BYTES):
            yield chunk
            chunk, size = {}, 0
        chunk[place] = job
        size += len(job.payload)
    yield chunk


def _parameters(job: NewJob) -> dict[str, Any]:
    options = job.options
    return {
        "kind": job.kind,
        "payload": job.payload.decode(),
        "queue": options.queue,
        "priority": options.priority,
        "max_attempts": options.max_attempts,
        "run_at": options.run_at,
        "delay": _seconds(options.delay),
        "unique_key": options.unique_key,
        "unique_for": _seconds(options.unique_time),
        "ordering_key": options.ordering_key,
    }


def _listed(place: int, job: NewJob) -> _Listed:
    options = job.options
    return _Listed(
        place,
        job.kind,
        msgspec.Raw(job.payload),
        options.queue,
        options.priority,
        options.max_attempts,
        options.run_at,
        _seconds(options.delay),
        options.unique_key,
        _seconds(options.unique_time),
        options.ordering_key,
    )


def _json(rows: Sequence[object]) -> str:
    return msgspec.json.encode(rows).decode()


def _is_plain(options: JobOptions) -> bool:
    """Whether the job is due at once and has no key."""
    return _is_due(options) and options.unique_key is None and options.ordering_key is None


def _is_due(options: JobOptions) -> bool:
    """Whether the job is due at once."""
    return options.run_at is None and options.run_after is None


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def _restless(job: NewJob) -> RetryTransaction:
    return RetryTransaction(
        f"The unique key {job.options.unique_key!r} of {job.kind} changed hands {TRIES} times in a row.",
        holds="Nothing of this call is stored.",
        remedy="Try again.",
    )
