"""One embedded PostgreSQL server: start, stop, look, destroy."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Self
from urllib.parse import quote

from semel.embedded.binaries import Binaries, find_binaries
from semel.embedded.cluster import Cluster
from semel.embedded.identity import choose_identity
from semel.embedded.launch import launch
from semel.embedded.lock import locked
from semel.embedded.place import (
    Place,
    is_ours,
    make_directory,
    make_ours,
    refuse_foreign,
    remove_directory,
    remove_runtime,
)
from semel.embedded.postmaster import Postmaster, find_postmaster, has_stale_pid_file
from semel.embedded.process import ServerProcess
from semel.embedded.settings import DATABASE, DEFAULT_PORT, USER
from semel.embedded.waiting import wait_until
from semel.errors import EmbeddedServerError

FAST_STOP_SECONDS: Final = 30.0
IMMEDIATE_STOP_SECONDS: Final = 15.0
NO_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True)
class ServerStatus:
    """What is there. ``state``: absent, stopped, crashed, starting, ready or stopping."""

    state: str
    directory: Path
    log: Path
    url: str
    pid: int | None = None
    version: str | None = None

    @property
    def running(self) -> bool:
        """Whether a server process is there, ready or not."""
        return self.pid is not None


class EmbeddedServer:
    """A PostgreSQL server that lives in one directory (see place.py) and listens on a private Unix socket.

    ``settings`` go before postgresql.conf. With ``port`` it also listens on 127.0.0.1, with a password.
    Several processes may use one directory: starts and stops take a lock, and a running server is reused.
    As a context manager it is started as a child on entry and stopped on exit.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        bin_directory: Path | str | None = None,
        settings: Mapping[str, str] = NO_SETTINGS,
        port: int | None = None,
        start_seconds: float = 60.0,
    ) -> None:
        self._place = Place.at(directory)
        self._bin_directory = bin_directory
        self._settings = MappingProxyType(dict(settings))
        self._port = port
        self._start_seconds = start_seconds
        self._process: ServerProcess | None = None

    @property
    def directory(self) -> Path:
        """The server's directory, with links resolved."""
        return self._place.directory

    def start(self, *, background: bool = False) -> str:
        """Start the server, if none runs on the directory, and return the URL of database ``semel``.

        It is a child of this process and ends with it; in the background it stays until it is stopped.
        The first start makes the data directory (about a second). One that runs already keeps its settings.
        """
        running = self._running()
        if running is None or not running.ready:
            refuse_foreign(self._place)
            binaries = find_binaries(self._bin_directory)
            make_directory(self._place)
            with locked(self._place):
                self._start_under_lock(binaries, background=background)
        self._check_port()
        return self.url()

    def _start_under_lock(self, binaries: Binaries, *, background: bool) -> None:
        running = self._running()
        if running is not None and self._becomes_ready(running):
            return
        self._reap()
        refuse_foreign(self._place)
        make_ours(self._place)
        cluster = Cluster(self._place, binaries, choose_identity(self._place, binaries))
        cluster.ensure(durable=self._settings.get("fsync") != "off")
        self._process = launch(
            cluster, self._settings, self._port, background=background, seconds=self._start_seconds
        )

    def _becomes_ready(self, running: Postmaster) -> bool:
        """Whether a server that another process started or stops comes up in the end; False: it ended."""
        found: Postmaster | None = running

        def settled() -> bool:
            nonlocal found
            found = self._running()
            return found is None or found.ready

        if wait_until(settled, self._start_seconds):
            return found is not None
        raise EmbeddedServerError(
            f"The server in {self.directory} (process {running.pid}) has been {running.state} "
            f"for over {self._start_seconds:.0f} s.",
            holds="It was left alone, and its data is kept.",
            remedy=f"See its log, {self._place.log}; 'semel db stop' ends it.",
        )

    def stop(self) -> None:
        """End the server, whoever started it; open transactions are rolled back. Without one, do nothing."""
        if is_ours(self._place):
            with locked(self._place):
                self._stop_under_lock()

    def _stop_under_lock(self) -> None:
        running = self._running()
        if running is None:
            self._reap()
            return
        for number, seconds in ((signal.SIGINT, FAST_STOP_SECONDS), (signal.SIGQUIT, IMMEDIATE_STOP_SECONDS)):
            running.send(number)
            if running.ended_within(seconds):
                self._reap()
                return
        raise EmbeddedServerError(
            f"The server in {self.directory} (process {running.pid}) did not stop.",
            holds="Its data is kept.",
            remedy=f"See its log, {self._place.log}.",
        )

    def kill(self) -> None:
        """End the server as a crash would (SIGKILL): for tests of what survives. ``start`` recovers it."""
        running = self._running()
        if running is not None:
            running.send(signal.SIGKILL)
            running.ended_within(IMMEDIATE_STOP_SECONDS)
        self._reap()

    def restart(self) -> str:
        """Stop the server and start it as a child of this process; after ``kill`` this is the recovery."""
        self.stop()
        return self.start()

    def destroy(self) -> None:
        """Stop the server and delete its directory, data and all; refuses one that semel did not make."""
        refuse_foreign(self._place)
        if not is_ours(self._place):
            return
        with locked(self._place):
            if is_ours(self._place):
                self._stop_under_lock()
                remove_directory(self._place)
            remove_runtime(self._place)

    def status(self) -> ServerStatus:
        """What is there now; changes nothing and needs no PostgreSQL programs."""
        running = self._running()
        version_file = self._place.data / "PG_VERSION"
        if running is not None:
            state = running.state
        elif not version_file.exists():
            state = "absent"
        else:
            state = "crashed" if has_stale_pid_file(self._place.data) else "stopped"
        return ServerStatus(
            state=state,
            directory=self.directory,
            log=self._place.log,
            url=self.url(),
            pid=running.pid if running else None,
            version=version_file.read_text("utf-8").strip() if version_file.exists() else None,
        )

    def url(self, database: str = DATABASE) -> str:
        """The URL of a database over the Unix socket, which asks for no password; known while it is down."""
        running = self._running()
        port = running.port if running else self._port or DEFAULT_PORT
        return f"postgresql://{USER}@/{quote(database, safe='')}?host={self._place.runtime}&port={port}"

    def tcp_url(self, database: str = DATABASE) -> str:
        """The URL over loopback TCP, with its password, for tools without Unix sockets; needs ``port``."""
        if self._port is None:
            raise EmbeddedServerError(
                "The server was not given a port, so it listens on its Unix socket only.",
                remedy="EmbeddedServer(directory, port=...) listens on 127.0.0.1 as well.",
            )
        password = quote(self._place.password.read_text("utf-8"), safe="")
        return f"postgresql://{USER}:{password}@127.0.0.1:{self._port}/{quote(database, safe='')}"

    def psql_command(self, database: str = DATABASE) -> list[str]:
        """The command line of psql for a database."""
        return [find_binaries(self._bin_directory).program("psql"), self.url(database)]

    def _running(self) -> Postmaster | None:
        """The server's process; one of a directory that is not ours is none of our business."""
        return find_postmaster(self._place.data) if is_ours(self._place) else None

    def _check_port(self) -> None:
        running = self._running()
        if self._port is not None and running is not None and running.port != self._port:
            raise EmbeddedServerError(
                f"The server in {self.directory} runs already, and not on port {self._port}.",
                holds="It was left as it is.",
                remedy="Stop it first ('semel db stop'), then start it with the port.",
            )

    def _reap(self) -> None:
        if self._process is not None and self._process.ended():
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def ensure_running(directory: Path | str | None = None) -> str:
    """The URL of the server in the directory (without one: the user's own); starts it if none runs.

    It runs in the background and stays when this process ends; every process of this user gets the same one.
    """
    return EmbeddedServer(directory).start(background=True)
