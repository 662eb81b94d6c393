"""The one PostgreSQL cluster and the Redis of a run: made for it, on loopback, ended with it."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg
import redis

from benchmarks.processes import processor_seconds, started, tree
from semel.embedded import EmbeddedServer
from semel.embedded.binaries import find_binaries

SQL = Path(__file__).parent / "sql"
SETTINGS = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "max_wal_size",
    "max_connections",
    "autovacuum",
)


class Cluster:
    """The databases of a run, one a contestant. Settings are PostgreSQL's defaults."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        self.log = server.status().log
        self._admin = psycopg.connect(server.tcp_url("postgres"), autocommit=True)

    def close(self) -> None:
        self._admin.close()

    def url(self, database: str) -> str:
        return self.server.tcp_url(database)

    def connect(self, database: str) -> psycopg.Connection[Any]:
        """In autocommit."""
        return psycopg.connect(self.url(database), autocommit=True)

    def fresh(self, database: str) -> None:
        """An empty database of this name; one that is there goes."""
        self._admin.execute(sql(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)'))
        self._admin.execute(sql(f'CREATE DATABASE "{database}"'))

    def drop(self, database: str) -> None:
        self._admin.execute(sql(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)'))

    def lay(self, database: str, statement: str, count: int) -> None:
        """Rows that are there beforehand, by a statement in sql/."""
        with self.connect(database) as connection:
            connection.execute((SQL / f"{statement}.sql").read_bytes(), (count,))

    def settle_down(self, database: str) -> None:
        """So that every drain starts alike."""
        with self.connect(database) as connection:
            connection.execute("VACUUM (ANALYZE)")
            connection.execute("CHECKPOINT")

    def set(self, name: str, value: str) -> None:
        """A setting of the whole cluster, at once."""
        self._admin.execute(sql(f"ALTER SYSTEM SET {name} = '{value}'"))
        self._admin.execute("SELECT pg_reload_conf()")
        while self.ask(f"SHOW {name}") != value:
            time.sleep(0.01)

    def ask(self, query: str, database: str | None = None) -> Any:
        """The one value that a query answers."""
        if database is None:
            row = self._admin.execute(sql(query)).fetchone()
        else:
            with self.connect(database) as connection:
                row = connection.execute(sql(query)).fetchone()
        assert row is not None
        return row[0]

    def processor_seconds(self) -> float:
        """What the server has used, all its processes together."""
        server = self.server.status().pid
        return 0.0 if server is None else processor_seconds(tree(server))

    def written_ahead(self) -> int:
        """Bytes of WAL so far."""
        return int(self.ask("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"))

    def run_file(self, database: str, statement: str) -> None:
        """A statement in sql/."""
        with self.connect(database) as connection:
            connection.execute((SQL / f"{statement}.sql").read_bytes())

    @contextmanager
    def held_snapshot(self, database: str) -> Iterator[None]:
        """Nothing that is deleted meanwhile can be cleaned away."""
        with self.connect(database) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            connection.execute("SELECT count(*) FROM pg_class")
            yield
            connection.execute("ROLLBACK")

    def log_statements(self, database: str, *, on: bool = True) -> None:
        """Whoever connects to it from now on has every statement in the server's log, with its duration, or not."""
        how = 0 if on else -1
        self._admin.execute(sql(f'ALTER DATABASE "{database}" SET log_min_duration_statement = {how}'))

    def logged(self) -> list[str]:
        """The log's lines that begin a statement; a prepared one is there once it is executed."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [line for line in lines if " ms  statement: " in line or " ms  execute " in line]

    def settings(self) -> dict[str, str]:
        return {name: str(self.ask(f"SHOW {name}")) for name in SETTINGS}


def sql(text: str) -> LiteralString:
    """Statements here are made of our own words."""
    return cast("LiteralString", text)  # type: ignore[redundant-cast]


def program(name: str) -> str:
    """One of PostgreSQL's own programs, such as pgbench."""
    return find_binaries().program(name)


@contextmanager
def running_cluster(directory: Path, **settings: str) -> Iterator[Cluster]:
    """fsync and synchronous_commit are on, as they are by default."""
    server = EmbeddedServer(directory / "postgres", port=free_port(), settings=settings)
    try:
        server.start()
        cluster = Cluster(server)
        try:
            yield cluster
        finally:
            cluster.close()
    finally:
        server.destroy()


@contextmanager
def running_redis(directory: Path) -> Iterator[str | None]:
    """Its URL; None where there is no redis-server. At its defaults, with which it never fsyncs a job."""
    found = shutil.which("redis-server")
    if found is None:
        yield None
        return
    place = directory / "redis"
    place.mkdir()
    port = free_port()
    command = [found, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(place), "--daemonize", "no"]
    with started(command, {}, directory / "redis.log") as processes:
        client = redis.Redis(port=port)
        limit = time.monotonic() + 10
        while not _answers(client):
            if processes[0].poll() is not None or time.monotonic() > limit:
                raise SystemExit(f"redis-server did not start: {(directory / 'redis.log').read_text()}")
            time.sleep(0.02)
        client.close()
        yield f"redis://127.0.0.1:{port}/0"


def redis_version() -> str:
    found = shutil.which("redis-server")
    if found is None:
        return ""
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    return said.partition("v=")[2].split()[0]


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def free_port() -> int:
    """One that nobody has; below those that the kernel gives to connections, which might have it before its server does."""
    while True:
        port = random.randint(20_000, 32_000)
        with socket.socket() as taken, suppress(OSError):
            taken.bind(("127.0.0.1", port))
            return port
