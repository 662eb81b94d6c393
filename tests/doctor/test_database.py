"""What `semel doctor --database` finds: each thing on a real server, where it is and where it is not."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.docs.pages import ROOT
from tests.guard import mariadb as mariadb_servers
from tests.servers import execute, make_server

import semel
from semel.core.health import Health, Holder, Server
from semel.doctor.database import Budget, DatabaseNumbers, Limits, check_database
from semel.doctor.database_reading import read_database
from semel.doctor.database_words import WORDS
from semel.doctor.finding import Finding, Severity
from semel.embedded import EmbeddedServer
from semel.store.guard_tables import create_tables
from semel.store.migrate import migrate_database
from semel.store.own_connections import open_own
from semel.store.session import open_session

NOW = timedelta(seconds=-1)
SAFE = {
    "max_prepared_transactions": "5",
    "max_connections": "40",
    "wal_level": "logical",
    "max_wal_senders": "4",
    "autovacuum_naptime": "1d",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A server as one in production is set up, with a migrated template."""
    made = make_server(tmp_path_factory.mktemp("doctor") / "postgres", settings=SAFE)
    try:
        made.start()
        execute(made.url("postgres"), "CREATE DATABASE template_doctor TEMPLATE template0")
        migrate_database(made.url("template_doctor"))
        yield made
    finally:
        made.destroy()


@pytest.fixture
def url(server: EmbeddedServer) -> Iterator[str]:
    """A migrated database of this test's own on it."""
    name = f"doctor_{time.monotonic_ns()}"
    execute(server.url("postgres"), f"CREATE DATABASE {name} TEMPLATE template_doctor")
    yield server.url(name)
    execute(server.url("postgres"), f"DROP DATABASE {name} WITH (FORCE)")


def find(url: str, limits: Limits | None = None, **told: Any) -> list[Finding]:
    with open_session(url) as session:
        return check_database(read_database(session, limits=limits, **told), limits)


def codes(url: str, limits: Limits | None = None, **told: Any) -> set[str]:
    return {finding.code for finding in find(url, limits, **told)}


def test_what_is_well_set_up_has_no_findings(url: str) -> None:
    assert find(url) == []
    semel.Once(url).close()
    with semel.Once(url).claim("charge", 1):
        assert find(url) == [], "a claim within its lease is nothing to be mended"
    assert find(url, budget=Budget(workers=1, children=1)) == []


CHANGES: dict[str, str] = {
    "database-synchronous-commit": "ALTER DATABASE {name} SET synchronous_commit = off",
    "database-autovacuum": "ALTER DATABASE {name} SET track_counts = off",
    "database-autovacuum ": "ALTER TABLE semel.jobs SET (autovacuum_enabled = false)",
    "database-table-settings": "ALTER TABLE semel.jobs RESET (fillfactor)",
    "database-table-settings ": "ALTER TABLE semel.operations SET (fillfactor = 100)",
    "database-slot": "SELECT pg_create_physical_replication_slot('forgotten', true)",
    "database-schema-ahead": "INSERT INTO semel.migrations (version, step, name) VALUES (99, 'post', 'later')",
    "database-schema-behind": "DELETE FROM semel.migrations WHERE version = 3; DROP INDEX semel.jobs_order",
    "database-history-ahead": """DO $$ DECLARE day regclass; BEGIN FOR day IN SELECT inhrelid::regclass FROM pg_inherits
        WHERE inhparent = 'semel.jobs_done'::regclass ORDER BY inhrelid::regclass::text DESC LIMIT 5
        LOOP EXECUTE 'DROP TABLE ' || day; END LOOP; END $$""",
    "database-history-today": """DO $$ BEGIN EXECUTE 'DROP TABLE semel.jobs_done_'
        || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'); END $$""",
    "database-index-missing": "DROP INDEX semel.jobs_finished",
    "database-index-missing ": "DROP INDEX semel.operations_open",
    "database-index-not-hot": "CREATE INDEX theirs ON semel.jobs (status, queue)",
    "database-index-not-hot ": "CREATE INDEX theirs ON semel.jobs (queue) WHERE attempts > 1",
    "database-not-unique": "ALTER TABLE semel.operations DROP CONSTRAINT operations_once",
    "database-not-unique ": """ALTER TABLE semel.operations DROP CONSTRAINT operations_once;
        CREATE UNIQUE INDEX part ON semel.operations (scope, job_type, key) WHERE state = 'claimed'""",
    "database-jobs-stuck": "INSERT INTO semel.jobs (kind, run_at) VALUES ('late', now() - interval '1 hour')",
    "database-jobs-stuck ": """INSERT INTO semel.jobs (kind, run_at, status, locked_until)
        VALUES ('gone', now() - interval '1 hour', 'running', now() - interval '1 hour')""",
    "database-jobs-held": """INSERT INTO semel.jobs (kind, status, finished_at)
        VALUES ('held', 'held', now() - interval '2 days')""",
    "database-failures-grow": """INSERT INTO semel.jobs (kind, status, finished_at)
        SELECT 'bad', 'failed', now() - interval '1 hour' FROM generate_series(1, 12)""",
    "database-retention": "INSERT INTO semel.jobs (kind, run_at) VALUES ('far', now() + interval '100 days')",
}
HARMLESS: dict[str, str] = {
    "a job that is due now": "INSERT INTO semel.jobs (kind) VALUES ('due')",
    "a date within retention": "INSERT INTO semel.jobs (kind, run_at) VALUES ('far', now() + interval '80 days')",
    "a job for ever": "INSERT INTO semel.jobs (kind, run_at) VALUES ('never', 'infinity')",
    "held a moment ago": "INSERT INTO semel.jobs (kind, status) VALUES ('held', 'held')",
    "failures as on other days": """INSERT INTO semel.jobs (kind, status, finished_at)
        SELECT 'bad', 'failed', now() - make_interval(hours => hour) FROM generate_series(1, 40) AS hour""",
    "an index of theirs": "CREATE INDEX theirs ON semel.jobs (kind, created_at)",
    "a commit that waits for less": "ALTER DATABASE {name} SET synchronous_commit = local",
}


def change(url: str, statements: str) -> None:
    name = conninfo_to_dict(url)["dbname"]
    execute(url, statements.replace("{name}", str(name)))


@pytest.mark.parametrize("code", CHANGES)
def test_each_is_found_where_it_is(url: str, server: EmbeddedServer, code: str) -> None:
    change(url, CHANGES[code])
    try:
        assert codes(url) == {code.strip()}
    finally:
        execute(url, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


@pytest.mark.parametrize("what", HARMLESS)
def test_what_is_fine_is_not_found(url: str, what: str) -> None:
    change(url, HARMLESS[what])
    assert find(url) == []


def test_settings_of_a_server_that_may_lose_commits(database_url: str) -> None:
    """The server of the tests is such a one."""
    assert {"database-fsync", "database-page-writes"} <= codes(database_url)


def test_a_database_without_tables(server: EmbeddedServer) -> None:
    execute(server.url("postgres"), "CREATE DATABASE nothing TEMPLATE template0")
    try:
        assert codes(server.url("nothing")) == {"database-no-tables"}
        create_tables(server.url("nothing"))
        assert find(server.url("nothing")) == [], "the guard alone needs no queue"
    finally:
        execute(server.url("postgres"), "DROP DATABASE nothing")


def test_an_old_session_holds_the_horizon_back(url: str) -> None:
    with psycopg.connect(url, application_name="reporting") as old:
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT 1")
        assert find(url) == [], "not for long yet"
        (found,) = find(url, Limits(old=NOW))
        assert found.code == "database-old-session"
        assert "reporting" in found.subject
    assert find(url, Limits(old=NOW)) == []


def test_an_old_prepared_transaction_holds_it_back(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO semel.job_events (job_id, act, who, before) VALUES (1, 'x', 'x', 'x')"
        )
        connection.execute("PREPARE TRANSACTION 'forgotten'")
    try:
        assert find(url) == []
        assert {finding.subject for finding in find(url, Limits(old=NOW))} == {"forgotten"}
        assert codes(url, Limits(old=NOW)) == {"database-old-prepared"}
    finally:
        execute(url, "ROLLBACK PREPARED 'forgotten'")


@contextmanager
def standby(url: str, xmin: int) -> Iterator[None]:
    """Another server that follows this one, as far as the protocol shows: it asks for the log and feeds its horizon back."""
    parts = conninfo_to_dict(url) | {"replication": "true", "application_name": "follower"}
    connection = pq.PGconn.connect(make_conninfo(**parts).encode())
    assert connection.status == pq.ConnStatus.OK, connection.error_message
    identity = connection.exec_(b"IDENTIFY_SYSTEM")
    start = identity.get_value(0, 2)
    assert start is not None
    result = connection.exec_(b"START_REPLICATION PHYSICAL " + start)
    assert result.status == pq.ExecStatus.COPY_BOTH
    connection.put_copy_data(b"h" + struct.pack(">qIIII", 0, xmin, 0, 0, 0))
    connection.flush()
    try:
        yield
    finally:
        connection.finish()


def test_a_standby_that_is_not_waited_for_and_one_that_holds_the_horizon_back(url: str) -> None:
    (xmin,) = (
        psycopg.connect(url)
        .execute("SELECT CAST(CAST(txid_current() AS bigint) % 4294967296 AS bigint)")
        .fetchone()
    )  # type: ignore[misc]
    execute(url, "INSERT INTO semel.job_events (job_id, act, who, before) VALUES (1, 'x', 'x', 'x')")
    with standby(url, xmin):
        ends = time.monotonic() + 30
        while not execute_one(url, "SELECT count(*) FROM pg_stat_replication WHERE backend_xmin IS NOT NULL"):
            assert time.monotonic() < ends
            time.sleep(0.02)
        assert codes(url) == {"database-asynchronous-standbys"}
        assert codes(url, Limits(transactions=0)) == {"database-asynchronous-standbys", "database-standby"}
    ends = time.monotonic() + 30
    while execute_one(url, "SELECT count(*) FROM pg_stat_replication"):
        assert time.monotonic() < ends
        time.sleep(0.02)
    assert find(url, Limits(transactions=0)) == []


def execute_one(url: str, statement: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(statement.encode()).fetchone()
        return None if row is None else row[0]


def test_dead_rows_and_then_room_that_nobody_needs(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO semel.jobs (kind) SELECT 'j' FROM generate_series(1, 3000)")
        connection.execute("SELECT pg_stat_force_next_flush()")
        assert find(url, Limits(dead=100, bytes_=100_000)) == []
        connection.execute("DELETE FROM semel.jobs")
        connection.execute("SELECT pg_stat_force_next_flush()")
        connection.execute("SELECT 1")
        assert codes(url, Limits(dead=100)) == {"database-dead-rows"}
        connection.execute("VACUUM semel.jobs")
        connection.execute("SELECT pg_stat_force_next_flush()")
        connection.execute("SELECT 1")
    assert codes(url, Limits(dead=100, bytes_=100_000)) == {"database-bloat"}
    assert find(url, Limits(dead=100)) == [], "it is small"


def test_connections(url: str) -> None:
    """40, of which 3 are reserved."""
    assert codes(url, budget=Budget(workers=3, children=4)) == set(), "36, and this one"
    assert codes(url, budget=Budget(workers=3, children=4, clients=1)) == {"database-connections"}
    assert codes(url, budget=Budget(workers=1, children=2, transactions=20)) == {"database-connections"}
    assert codes(url, Limits(connected=0.01)) == {"database-connections-full"}


def test_an_invalid_index(url: str) -> None:
    execute(url, "INSERT INTO semel.jobs (kind) VALUES ('twice'), ('twice')")
    with pytest.raises(psycopg.errors.UniqueViolation):
        execute(url, "CREATE UNIQUE INDEX CONCURRENTLY theirs ON semel.jobs (kind)")
    assert codes(url) == {"database-index-invalid"}


def test_an_interrupted_detach(url: str) -> None:
    day = execute_one(
        url,
        "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'semel.jobs_done'::regclass"
        " ORDER BY inhrelid::regclass::text DESC LIMIT 1",
    )
    with psycopg.connect(url) as reader:
        reader.execute("SELECT count(*) FROM semel.jobs_done")
        with psycopg.connect(url, autocommit=True) as upkeep:
            upkeep.execute("SET lock_timeout = '200ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                upkeep.execute(f"ALTER TABLE semel.jobs_done DETACH PARTITION {day} CONCURRENTLY".encode())
    assert codes(url) == {"database-history-detaching"}


def test_operations_that_wait_and_leases_that_were_outlived(url: str) -> None:
    once = semel.Once(url)
    with once.claim("late", 1):
        execute(url, "UPDATE semel.operations SET lease_until = clock_timestamp() - interval '1 h'")
    assert codes(url) == {"database-lease-outlived"}
    (found,) = find(url)
    assert found.figure.startswith("1 of 1 runs, by up to 1 h")
    execute(url, "DELETE FROM semel.operations")
    with pytest.raises(OSError, match="lost"):
        with once.claim("unsure", 1):
            raise OSError("lost")
    with pytest.raises(semel.NotDone):
        with once.claim("undone", 1):
            raise semel.NotDone("refused")
    assert find(url) == [], "not for long yet"
    assert codes(url, Limits(stale=NOW)) == {"database-stale", "database-released"}
    with pytest.raises(semel.errors.Held):
        with once.claim("unsure", 1):
            pass
    once.close()
    assert find(url) == []
    assert codes(url, Limits(held=NOW)) == {"database-held"}


def test_a_clock_that_is_off(url: str) -> None:
    assert codes(url, clock=lambda: time.time() + 3600) == {"database-clock"}
    (found,) = find(url, clock=lambda: time.time() - 3600)
    assert "1 h behind" in found.figure
    assert find(url, clock=lambda: time.time() + 2) == []


def test_a_role_that_does_not_see_others(url: str, server: EmbeddedServer) -> None:
    execute(url, "CREATE ROLE watcher LOGIN")
    try:
        execute(
            url,
            "GRANT USAGE ON SCHEMA semel TO watcher; GRANT SELECT ON ALL TABLES IN SCHEMA semel TO watcher",
        )
        theirs = make_conninfo(**(conninfo_to_dict(url) | {"user": "watcher"}))
        assert codes(theirs) == {"database-not-visible"}
        execute(url, "GRANT pg_read_all_stats TO watcher")
        assert find(theirs) == []
    finally:
        execute(url, "DROP OWNED BY watcher; DROP ROLE watcher")


def test_nothing_is_written(url: str) -> None:
    """Not even by a statement that would: the transaction is read-only, and limits what it asks."""
    from semel.store.run import run
    from semel.store.statement import Operation, Statement, Steps

    def steps() -> Steps[tuple[str, str]]:
        yield Statement("doctor/begin")
        ((read_only, *_),) = yield Statement("doctor/begin")
        yield Statement("queue/reserve_ids", {"count": 1})
        return read_only, ""

    with open_session(url) as session, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        run(Operation("write", steps), session)


SERVER = Server()
PURE: dict[str, tuple[str, Health, Health]] = {
    "a server that is too old": (
        "database-version",
        Health(version="13", server=replace(SERVER, version=130_000)),
        Health(version="15", server=SERVER),
    ),
    "MariaDB that is": (
        "database-version",
        Health(dialect="mysql", version="5.7.44"),
        Health(dialect="mysql", version="10.6.1-MariaDB"),
    ),
    "SQLite that is": (
        "database-version",
        Health(dialect="sqlite", version="3.34.1"),
        Health(dialect="sqlite", version="3.40.1"),
    ),
    "a version that no test runs on": (
        "database-version-untested",
        Health(version="14"),
        Health(version="18"),
    ),
    "one that is too new for them": ("database-version-untested", Health(version="19"), Health(version="17")),
    "a replica": (
        "database-replica",
        Health(version="17", server=replace(SERVER, is_replica=True)),
        Health(version="17", server=SERVER),
    ),
    "autovacuum off": (
        "database-autovacuum",
        Health(version="17", server=replace(SERVER, autovacuum=False)),
        Health(version="17", server=SERVER),
    ),
    "a standby that is waited for": (
        "database-asynchronous-standbys",
        Health(version="17", server=replace(SERVER, standbys=1)),
        Health(version="17", server=replace(SERVER, standbys=1, synchronous_standbys="one")),
    ),
    "a slot that is far behind": (
        "database-slot",
        Health(version="17", holders=(Holder("slot", "s", None, 2_000_000, True, 10**9),)),
        Health(version="17", holders=(Holder("slot", "s", None, 2_000, True, 10**9),)),
    ),
}


@pytest.mark.parametrize("what", PURE)
def test_what_no_server_of_the_tests_has(what: str) -> None:
    code, bad, good = PURE[what]
    assert {finding.code for finding in check_database(DatabaseNumbers(health=bad))} == {code}
    assert check_database(DatabaseNumbers(health=good)) == []


@pytest.mark.parametrize("safe", [True, False])
def test_mariadb(safe: bool, request: pytest.FixtureRequest) -> None:
    from tests.support.keeping import run_directory

    if safe:
        made = mariadb_servers.own("--innodb-flush-log-at-trx-commit=1")
    else:
        made = mariadb_servers.shared(*run_directory(request))
    name = made.create_database()
    expected = set() if safe else {"database-flush"}
    try:
        assert _guard_codes(made.url(name)) == expected | {"database-no-tables"}
        create_tables(made.url(name))
        assert _guard_codes(made.url(name)) == expected
        _outlive(
            made.url(name),
            lambda statement: made.execute(f"UPDATE {name}.{statement}"),
            "UTC_TIMESTAMP(6) - INTERVAL 9 SECOND",
        )
        assert _guard_codes(made.url(name)) == expected | {"database-lease-outlived"}
        made.execute(f"ALTER TABLE {name}.semel_operations DROP INDEX semel_operations_once")
        assert _guard_codes(made.url(name)) == expected | {"database-lease-outlived", "database-not-unique"}
    finally:
        made.drop_database(name)


def test_sqlite(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "operations.db"
    create_tables(path)
    assert _guard_codes(str(path)) == set()
    connection = sqlite3.connect(path, isolation_level=None)
    _outlive(str(path), lambda statement: connection.execute(f"UPDATE {statement}"), "claimed_at - 1")
    assert _guard_codes(str(path)) == {"database-lease-outlived"}
    with pytest.raises(OSError, match="lost"):
        with semel.Once(str(path)).claim("unsure", 1):
            raise OSError("lost")
    assert _guard_codes(str(path), Limits(stale=NOW)) == {"database-lease-outlived", "database-stale"}


def _outlive(target: str, update: Callable[[str], Any], moment: str) -> None:
    with semel.Once(target).claim("late", 1):
        update(f"semel_operations SET lease_until = {moment}")


def _guard_codes(target: str, limits: Limits | None = None) -> set[str]:
    own = open_own(target)
    try:
        with own.session() as session:
            return {finding.code for finding in check_database(read_database(session, limits=limits), limits)}
    finally:
        own.close()


def test_every_code_has_its_line_and_is_used() -> None:
    text = (ROOT / "docs/doctor.md").read_text("utf-8")
    source = (ROOT / "src/semel/doctor/database.py").read_text("utf-8")
    assert [code for code in WORDS if f"`{code}`" not in text] == []
    assert [code for code in WORDS if f'"{code}"' not in source] == []


def test_the_worst_is_an_error() -> None:
    severe = {code for code, each in WORDS.items() if each.severity is Severity.ERROR}
    assert {
        "database-not-unique",
        "database-fsync",
        "database-lease-outlived",
        "database-retention",
    } <= severe
