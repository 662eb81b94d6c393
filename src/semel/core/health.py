"""What a database says of itself, as far as jobs and operations depend on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from semel.core.measured import Open, Runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """PostgreSQL's settings and connections."""

    version: int = 180_000
    """As ``server_version_num``."""
    fsync: bool = True
    synchronous_commit: str = "on"
    full_page_writes: bool = True
    autovacuum: bool = True
    track_counts: bool = True
    is_replica: bool = False
    max_connections: int = 100
    reserved: int = 3
    connected: int = 1
    connected_semel: int = 0
    standbys: int = 0
    synchronous_standbys: str = ""
    sees_all: bool = True
    """Whether this role sees other sessions' transactions."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who keeps dead rows from being removed."""

    kind: str
    """``session``, ``prepared``, ``slot`` or ``standby``."""
    name: str
    since: timedelta | None
    """None where that is not known."""
    transactions: int
    active: bool
    wal_bytes: int | None
    """Of a slot: what it keeps of the log."""


@dataclass(frozen=True, slots=True)
class TableUse:
    """One table."""

    name: str
    live: int
    dead: int
    table_bytes: int
    index_bytes: int
    options: str
    """``name=value`` with commas between."""


@dataclass(frozen=True, slots=True)
class IndexUse:
    """One index."""

    name: str
    table: str
    valid: bool
    unique: bool
    columns: frozenset[str]
    """All that key, predicate and expressions name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsUse:
    """The queue's jobs."""

    failed: int = 0
    failed_last_day: int = 0
    failed_day_before: int = 0
    held: int = 0
    oldest_held: timedelta | None = None
    farthest: timedelta | None = None
    """How far ahead the latest job is due."""
    days_ahead: int | None = 7
    """How many days of the history after today there are; None where there is none at all."""
    has_today: bool = True
    detaching: int = 0


@dataclass(frozen=True, slots=True)
class Stuck:
    """What waits in a queue although it should not."""

    queue: str
    expired: int
    due: int
    longest: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Everything that was read. What a dialect does not have is empty."""

    dialect: str = "postgresql"
    version: str = ""
    server: Server | None = None
    durable: tuple[str, ...] = ()
    """MySQL's innodb_flush_log_at_trx_commit and innodb_doublewrite."""
    unique_key: bool | None = True
    """Of the operations; None where the table is not there."""
    runs: tuple[Runs, ...] = ()
    open: tuple[Open, ...] = ()
    jobs: JobsUse | None = None
    stuck: tuple[Stuck, ...] = ()
    holders: tuple[Holder, ...] = ()
    tables: tuple[TableUse, ...] = ()
    indexes: tuple[IndexUse, ...] = field(default=())
    missing_steps: tuple[str, ...] = ()
    """Of the schema; empty too where only the guard's tables are there."""
    too_new: int | None = None
    """A schema version that this code does not know."""
