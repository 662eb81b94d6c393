"""What is checked of a database: pure functions over what it says of itself (docs/doctor.md has each code)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from semel.core.durations import describe
from semel.core.health import Health, Holder, JobsUse, Server, TableUse
from semel.core.operations import State
from semel.doctor import words
from semel.doctor.database_words import WORDS
from semel.doctor.finding import Finding

CLAIMED: Final = frozenset({"status", "attempts", "crashes", "locked_until", "claim", "worker", "meta"})
"""What a claim writes: no index on jobs may name any of it."""
_SETTINGS: Final = MappingProxyType(
    {
        "jobs": ("fillfactor=45", "autovacuum_vacuum_scale_factor=0", "autovacuum_vacuum_threshold=2000"),
        "operations": ("fillfactor=70",),
    }
)
_INDEXES: Final = MappingProxyType(
    {
        "jobs": ("jobs_live", "jobs_finished", "jobs_unique_key", "jobs_order"),
        "operations": ("operations_open", "operations_completed", "operations_job"),
    }
)
_LEAST: Final = MappingProxyType({"postgresql": (14,), "mysql": (8,), "sqlite": (3, 35)})
_TESTED: Final = range(15, 19)
_MIGRATION: Final = 3
"""The version of the schema whose indexes are listed above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """From where on something is found."""

    old: timedelta = timedelta(minutes=10)
    """A snapshot, or a prepared transaction."""
    transactions: int = 1_000_000
    """A standby's, or a slot's, horizon."""
    dead: int = 50_000
    bytes_: int = 256 * 1024 * 1024
    """A table smaller than that is not bloated."""
    bytes_per_row: int = 20_000
    stale: timedelta = timedelta(hours=1)
    held: timedelta = timedelta(days=1)
    waiting: timedelta = timedelta(minutes=10)
    skew: timedelta = timedelta(seconds=5)
    connected: float = 0.8
    growth: int = 10
    """Failures a day that count as growing, where they are over twice those of the day before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What runs, as somebody said."""

    workers: int = 0
    """Supervisors: each ``semel worker``."""
    children: int = 1
    transactions: int = 0
    """Attempts with ``transaction=True`` at a time, of a child."""
    clients: int = 0
    """Processes that enqueue."""

    @property
    def connections(self) -> int:
        """At most, as docs/production.md counts."""
        return self.workers * (4 + self.children * (2 + self.transactions)) + self.clients * 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseNumbers:
    """What was read, and what was told."""

    health: Health
    subject: str = "the database"
    skew: timedelta = timedelta(0)
    """How far this machine's clock is from the database's, less what the question took."""
    budget: Budget | None = None
    keep: timedelta = timedelta(days=90)
    """How long records are kept."""


def check_database(numbers: DatabaseNumbers, limits: Limits | None = None) -> list[Finding]:
    """All that is found of a database."""
    bounds = limits or Limits()
    health = numbers.health
    found = [*_version(numbers)]
    if health.server is not None:
        found += [*_server(numbers, health.server, bounds)]
    if health.durable and health.durable[0] != "1":
        found.append(
            _find("database-flush", numbers.subject, f"innodb_flush_log_at_trx_commit {health.durable[0]}")
        )
    if health.unique_key is None and health.jobs is None:
        return [*found, _find("database-no-tables", numbers.subject, "no table jobs, no table operations")]
    found += [*_schema(numbers), *_operations(health, bounds), *_clock(numbers, bounds)]
    for holder in health.holders:
        found += _holder(holder, bounds)
    for table in health.tables:
        found += _table(table, bounds)
    found += _indexes(health)
    if health.jobs is not None:
        found += [*_jobs(numbers, health.jobs, bounds)]
    return found


def _find(code: str, subject: str, figure: str) -> Finding:
    return words.find(WORDS, code, subject, figure)


def _version(numbers: DatabaseNumbers) -> Iterator[Finding]:
    health = numbers.health
    digits = health.version.partition("-")[0].split(".")
    version = tuple(int(each) for each in digits if each.isdigit())
    if version < _LEAST[health.dialect]:
        yield _find("database-version", numbers.subject, f"{health.dialect} {health.version}")
    elif health.dialect == "postgresql" and version[0] not in _TESTED:
        yield _find("database-version-untested", numbers.subject, f"PostgreSQL {health.version}")


def _server(numbers: DatabaseNumbers, server: Server, limits: Limits) -> Iterator[Finding]:
    subject = numbers.subject
    if server.is_replica:
        yield _find("database-replica", subject, "pg_is_in_recovery() is true")
    if not server.fsync:
        yield _find("database-fsync", subject, "fsync off")
    if not server.full_page_writes:
        yield _find("database-page-writes", subject, "full_page_writes off")
    if server.synchronous_commit == "off":
        yield _find("database-synchronous-commit", subject, "synchronous_commit off")
    waits = server.synchronous_standbys and server.synchronous_commit not in ("off", "local")
    if server.standbys and not waits:
        yield _find("database-asynchronous-standbys", subject, f"{server.standbys} standbys, none waited for")
    if not server.autovacuum or not server.track_counts:
        name = "track_counts" if server.autovacuum else "autovacuum"
        yield _find("database-autovacuum", subject, f"{name} off")
    if not server.sees_all:
        yield _find("database-not-visible", subject, "the role is no member of pg_read_all_stats")
    yield from _connections(numbers, server, limits)


def _connections(numbers: DatabaseNumbers, server: Server, limits: Limits) -> Iterator[Finding]:
    room = server.max_connections - server.reserved
    if numbers.budget is not None and numbers.budget.connections:
        needed, others = numbers.budget.connections, server.connected - server.connected_semel
        if needed + others > room:
            figure = f"semel needs up to {needed}, {others} others are connected, {room} fit"
            yield _find("database-connections", numbers.subject, figure)
    if server.connected >= room * limits.connected:
        figure = f"{server.connected} of {room} connected ({server.connected_semel} of semel)"
        yield _find("database-connections-full", numbers.subject, figure)


def _schema(numbers: DatabaseNumbers) -> Iterator[Finding]:
    health = numbers.health
    if health.jobs is not None and health.missing_steps:
        yield _find("database-schema-behind", numbers.subject, f"missing: {', '.join(health.missing_steps)}")
    if health.too_new is not None:
        yield _find("database-schema-ahead", numbers.subject, f"version {health.too_new}")
    if health.unique_key is False:
        yield _find("database-not-unique", "operations", "no unique index on (scope, job_type, key)")


def _operations(health: Health, limits: Limits) -> Iterator[Finding]:
    for runs in health.runs:
        if runs.past_lease:
            figure = (
                f"{runs.past_lease} of {runs.count} runs, by up to {describe(runs.longest_past_lease)}; the longest run took "
                f"{describe(runs.longest)}"
            )
            yield _find("database-lease-outlived", runs.job_type, figure)
    codes = {State.CLAIMED: ("database-stale", limits.stale), State.HELD: ("database-held", limits.held)}
    codes[State.RELEASED] = ("database-released", limits.stale)
    for each in health.open:
        code, bound = codes[each.state]
        if each.longest > bound:
            yield _find(
                code, each.job_type, f"{each.count} {each.state}, the oldest for {_about(each.longest)}"
            )


def _clock(numbers: DatabaseNumbers, limits: Limits) -> Iterator[Finding]:
    if abs(numbers.skew) > limits.skew:
        which = "ahead of" if numbers.skew > timedelta(0) else "behind"
        figure = f"this machine is {_about(abs(numbers.skew))} {which} the database"
        yield _find("database-clock", numbers.subject, figure)


def _holder(holder: Holder, limits: Limits) -> Iterator[Finding]:
    old = holder.since is not None and holder.since > limits.old
    figure = f"{holder.transactions} transactions back" + (
        "" if holder.since is None else f", for {_about(holder.since)}"
    )
    match holder.kind:
        case "session" if old:
            yield _find("database-old-session", holder.name, figure)
        case "prepared" if old:
            yield _find("database-old-prepared", holder.name, figure)
        case "slot" if not holder.active or holder.transactions > limits.transactions:
            kept = "" if holder.wal_bytes is None else f", {holder.wal_bytes // 2**20} MB of log kept"
            state = "active" if holder.active else "inactive"
            yield _find("database-slot", holder.name, f"{state}, {figure}{kept}")
        case "standby" if holder.transactions > limits.transactions:
            yield _find("database-standby", holder.name, figure)


def _table(table: TableUse, limits: Limits) -> Iterator[Finding]:
    if table.dead > max(limits.dead, 2 * table.live):
        yield _find("database-dead-rows", table.name, f"{table.dead} dead rows, {table.live} live")
    whole = table.table_bytes + table.index_bytes
    if whole > limits.bytes_ and whole > limits.bytes_per_row * max(table.live + table.dead, 1):
        yield _find("database-bloat", table.name, f"{whole // 2**20} MB for {table.live} rows")
    options = table.options.split(",")
    if "autovacuum_enabled=false" in options or "autovacuum_enabled=off" in options:
        yield _find("database-autovacuum", table.name, "autovacuum_enabled off")
    missing = [each for each in _SETTINGS.get(table.name, ()) if each not in options]
    if missing:
        yield _find("database-table-settings", table.name, f"not set: {', '.join(missing)}")


def _indexes(health: Health) -> Iterator[Finding]:
    for index in health.indexes:
        if not index.valid:
            yield _find("database-index-invalid", index.name, f"on {index.table}, not valid")
        written = sorted(index.columns & CLAIMED)
        if index.table == "jobs" and written:
            yield _find("database-index-not-hot", index.name, f"on jobs, names {', '.join(written)}")
    there = {index.name for index in health.indexes}
    tables = {table.name for table in health.tables}
    behind = health.jobs is not None and bool(health.missing_steps)  # then its steps make them
    for table, names in _INDEXES.items():
        missing = [name for name in names if name not in there]
        if table in tables and missing and not behind:
            yield _find("database-index-missing", table, f"missing: {', '.join(missing)}")


def _jobs(numbers: DatabaseNumbers, jobs: JobsUse, limits: Limits) -> Iterator[Finding]:
    for stuck in numbers.health.stuck:
        figure = f"{stuck.due} due, {stuck.expired} running past their lease, the oldest since {_about(stuck.longest)}"
        yield _find("database-jobs-stuck", f"queue {stuck.queue}", figure)
    if jobs.oldest_held is not None and jobs.oldest_held > limits.held:
        yield _find(
            "database-jobs-held", "jobs", f"{jobs.held} held, the oldest for {_about(jobs.oldest_held)}"
        )
    if jobs.failed_last_day >= limits.growth and jobs.failed_last_day > 2 * jobs.failed_day_before:
        figure = f"{jobs.failed_last_day} in 24 h, {jobs.failed_day_before} in the 24 h before, {jobs.failed} in all"
        yield _find("database-failures-grow", "jobs", figure)
    if jobs.farthest is not None and jobs.farthest > numbers.keep:
        figure = f"a job is due in {_about(jobs.farthest)}, records are kept for {describe(numbers.keep)}"
        yield _find("database-retention", "jobs", figure)
    yield from _history(jobs)


def _history(jobs: JobsUse) -> Iterator[Finding]:
    ahead = -1 if jobs.days_ahead is None else jobs.days_ahead
    if not jobs.has_today:
        yield _find("database-history-today", "jobs_done", "no partition for today")
    elif ahead < 5:
        yield _find("database-history-ahead", "jobs_done", f"{max(ahead, 0)} days ahead, 7 usually")
    if jobs.detaching:
        yield _find("database-history-detaching", "jobs_done", f"{jobs.detaching} days half detached")


def _about(duration: timedelta) -> str:
    """Rounded, to be read."""
    whole = duration.total_seconds()
    size = 86_400 if whole >= 5 * 86_400 else 60 if whole >= 600 else 1
    return describe(timedelta(seconds=round(whole / size) * size))
