"""A MariaDB server for the run: its own directory and socket, started by the first process that needs it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pymysql
import pytest
from tests.support.keeping import keep, read_output

SETTINGS = (
    "--skip-networking",
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=64M",
    "--max-connections=300",
)


@dataclass(frozen=True)
class MariaDB:
    """The running server."""

    socket: Path

    def url(self, database: str) -> str:
        return f"mysql://root@localhost/{database}?unix_socket={self.socket}"

    def connect(self, database: str | None = None, **options: object) -> pymysql.Connection:
        return pymysql.connect(unix_socket=str(self.socket), user="root", database=database, **options)

    def execute(self, statement: str) -> None:
        with self.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def create_database(self) -> str:
        name = f"test_{uuid.uuid4().hex[:16]}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {name}")


def connect_to(url: str, **options: object) -> pymysql.Connection:
    """A plain connection to what `MariaDB.url` gave."""
    server, name = server_of(url)
    return server.connect(name, **options)


def server_of(url: str) -> tuple[MariaDB, str]:
    """The server and the database's name that `MariaDB.url` made a URL of."""
    parts = urlsplit(url)
    return MariaDB(Path(parse_qs(parts.query)["unix_socket"][0])), parts.path.lstrip("/")


def program(name: str) -> str | None:
    """Where a program of MariaDB's is; Debian keeps the server outside an ordinary PATH."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def shared(run_directory: Path, leader: int) -> MariaDB:
    """The server of the whole run, started by whoever asks first. Skips where there is none; under CI that is a failure."""
    _require()
    directory = Path(f"/tmp/semel-mariadb-{run_directory.name}")
    directory.mkdir(mode=0o755, exist_ok=True)
    with (directory / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = MariaDB(directory / "socket")
        if not (directory / "data").exists():
            _start(directory, leader)
        _wait(server)
    return server


def own(*settings: str) -> MariaDB:
    """A server of this process's own, with settings of its own; it ends with the process."""
    _require()
    directory = Path(tempfile.mkdtemp(prefix="semel-mariadb-own-"))
    directory.chmod(0o755)
    _start(directory, os.getpid(), settings)
    server = MariaDB(directory / "socket")
    _wait(server)
    return server


def _require() -> None:
    if program("mariadbd") is None or program("mariadb-install-db") is None:
        if os.environ.get("CI"):
            pytest.fail("MariaDB is not installed: apt-get install mariadb-server")
        pytest.skip("MariaDB is not installed (Debian: apt-get install mariadb-server)")


def _start(directory: Path, leader: int, settings: tuple[str, ...] = ()) -> None:
    as_root = ["--user=mysql"] if os.geteuid() == 0 else []
    if as_root:
        shutil.chown(directory, "mysql")
    subprocess.run(
        [
            str(program("mariadb-install-db")),
            "--no-defaults",
            *as_root,
            f"--datadir={directory / 'data'}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ],
        check=True,
        capture_output=True,
    )
    command = [
        str(program("mariadbd")),
        "--no-defaults",
        *as_root,
        f"--datadir={directory / 'data'}",
        f"--socket={directory / 'socket'}",
        f"--pid-file={directory / 'pid'}",
        *SETTINGS,
        *settings,
    ]
    keep(leader, directory, command)


def _wait(server: MariaDB) -> None:
    ends = time.monotonic() + 60
    while True:
        try:
            server.execute("SELECT 1")
        except pymysql.Error:
            if time.monotonic() > ends:
                told = read_output(server.socket.parent)
                raise RuntimeError(f"MariaDB did not start:\n{told}") from None
            time.sleep(0.05)
        else:
            return
