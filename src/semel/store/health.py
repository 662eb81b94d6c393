"""Reads what a database says of itself. One transaction that writes nothing; no statement of it takes over half a minute."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from semel.core.health import Health, Holder, IndexUse, JobsUse, Server, Stuck, TableUse
from semel.core.measured import Open, Runs
from semel.sql import SCHEMA_VERSION
from semel.store.measures import count_open, has_unique_key, measure_runs, read_server
from semel.store.migrate import SchemaState, load_steps, schema_state
from semel.store.statement import Operation, Statement, Steps

_WITHIN: Final = timedelta(days=30)


def read_health(*, waiting: timedelta, within: timedelta = _WITHIN) -> Operation[Health]:
    """Of PostgreSQL. ``waiting`` is how long a job may be due before it counts as stuck."""

    def steps() -> Steps[Health]:
        yield Statement("doctor/begin")
        server = yield from _server()
        state = yield from schema_state().steps()
        unique = yield from has_unique_key().steps()
        runs: tuple[Runs, ...] = ()
        opened: tuple[Open, ...] = ()
        if unique is not None:
            runs = yield from measure_runs(within=within).steps()
            opened = yield from count_open().steps()
        jobs: JobsUse | None = None
        stuck: tuple[Stuck, ...] = ()
        ((queued,),) = yield Statement("guard/has_queue")
        if queued:
            jobs = yield from _jobs()
            stuck = yield from _stuck(waiting)
        holders = yield Statement("doctor/horizons")
        tables = yield Statement("doctor/tables")
        indexes = yield Statement("doctor/indexes")
        missing, too_new = _steps_left(state)
        return Health(
            version=f"{server.version // 10_000}",
            server=server,
            unique_key=unique,
            runs=runs,
            open=opened,
            jobs=jobs,
            stuck=stuck,
            holders=tuple(_holder(*row) for row in holders),
            tables=tuple(TableUse(*row) for row in tables),
            indexes=tuple(_index(*row) for row in indexes),
            missing_steps=missing,
            too_new=too_new,
        )

    return Operation("read_health", steps)


def read_guard_health(dialect: str, *, within: timedelta = _WITHIN) -> Operation[Health]:
    """Of MySQL and SQLite, where the guard's tables alone can be."""

    def steps() -> Steps[Health]:
        version, *durable = yield from read_server().steps()
        unique = yield from has_unique_key().steps()
        runs: tuple[Runs, ...] = ()
        opened: tuple[Open, ...] = ()
        if unique is not None:
            runs = yield from measure_runs(within=within).steps()
            opened = yield from count_open().steps()
        return Health(
            dialect=dialect,
            version=version,
            durable=tuple(each for each in durable if each),
            unique_key=unique,
            runs=runs,
            open=opened,
        )

    return Operation("read_guard_health", steps)


def read_instant() -> Operation[float]:
    """The database's clock, as seconds since 1970; on each dialect."""

    def steps() -> Steps[float]:
        rows = yield Statement("guard/read_clock")
        return float(rows[0][0])

    return Operation("read_instant", steps, alone=True)


def _server() -> Steps[Server]:
    (row,) = yield Statement("doctor/server")
    return Server(
        version=row[0],
        fsync=row[1] == "on",
        synchronous_commit=row[2],
        full_page_writes=row[3] == "on",
        autovacuum=row[4] == "on",
        track_counts=row[5] == "on",
        is_replica=row[6],
        max_connections=row[7],
        reserved=row[8],
        connected=row[9],
        connected_semel=row[10],
        standbys=row[11],
        synchronous_standbys=row[12],
        sees_all=row[13],
    )


def _jobs() -> Steps[JobsUse]:
    (row,) = yield Statement("doctor/jobs")
    ((ahead, today, detaching),) = yield Statement("doctor/history")
    return JobsUse(
        failed=row[0],
        failed_last_day=row[1],
        failed_day_before=row[2],
        held=row[3],
        oldest_held=_seconds(row[4]),
        farthest=_seconds(row[5]),
        days_ahead=ahead,
        has_today=today,
        detaching=detaching,
    )


def _stuck(waiting: timedelta) -> Steps[tuple[Stuck, ...]]:
    rows = yield Statement("queue/find_stuck", {"age": waiting.total_seconds()})
    return tuple(
        Stuck(queue, int(expired), int(due), _seconds(longest) or timedelta(0))
        for queue, expired, due, longest in rows
    )


def _holder(kind: str, name: str, since: Any, transactions: Any, active: bool, wal: Any) -> Holder:
    return Holder(
        kind, name, _seconds(since), int(transactions or 0), active, None if wal is None else int(wal)
    )


def _index(name: str, table: str, valid: bool, unique: bool, columns: str) -> IndexUse:
    return IndexUse(name, table, valid, unique, frozenset(columns.split(",")) - {""})


def _seconds(value: Any) -> timedelta | None:
    return None if value is None else timedelta(seconds=max(float(value), 0.0))


def _steps_left(state: SchemaState) -> tuple[tuple[str, ...], int | None]:
    """The steps that are missing, and a newer version whose last step this code must not run on."""
    if state.applied is None:
        return (), None
    done = state.keys
    missing = tuple(str(step) for step in load_steps() if step.phase == "pre" and step.key not in done)
    newest = max((version for version, phase in done if phase == "post"), default=0)
    return missing, newest if newest > SCHEMA_VERSION else None
