"""Start the server on a data directory that is there, and wait until it takes connections."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from semel.embedded.cluster import Cluster, clean_environment
from semel.embedded.log import LogMark, open_log, start_failure
from semel.embedded.place import disk_errors
from semel.embedded.postmaster import find_postmaster, remove_remains
from semel.embedded.process import ServerProcess, start_in_background, start_owned
from semel.embedded.settings import as_options, server_settings
from semel.embedded.waiting import wait_until

ORPHANS_REMAIN: Final = "is still in use"
RETRY_PAUSE: Final = 0.1
ABANDON_SECONDS: Final = 15.0


def launch(
    cluster: Cluster, settings: Mapping[str, str], port: int | None, *, background: bool, seconds: float
) -> ServerProcess:
    """Start it and return once it is ready; call this under the server's lock, with no server running.

    Processes that outlived a killed server for a moment make PostgreSQL refuse to start: it is tried again.
    """
    place = cluster.place
    limit = time.monotonic() + seconds
    options = as_options(server_settings(str(place.runtime), port, settings))
    command = cluster.command("postgres", "-D", str(place.data), *options)
    cluster.identity.own(place.runtime)
    while True:
        remove_remains(place)
        mark = open_log(place)
        start = start_in_background if background else start_owned
        with disk_errors(place):
            process = start(command, place.log, clean_environment())
        if _becomes_ready(cluster, process, limit - time.monotonic()):
            return process
        if ORPHANS_REMAIN not in mark.written() or time.monotonic() >= limit:
            raise _failure(cluster, process, mark, seconds)
        time.sleep(RETRY_PAUSE)


def _becomes_ready(cluster: Cluster, process: ServerProcess, seconds: float) -> bool:
    """Whether it takes connections in time; False at once when it ends."""

    def ready() -> bool:
        running = find_postmaster(cluster.place.data)
        return running is not None and running.pid == process.pid and running.ready

    return wait_until(lambda: ready() or process.ended(), seconds) and not process.ended()


def _failure(cluster: Cluster, process: ServerProcess, mark: LogMark, seconds: float) -> Exception:
    if process.ended():
        return start_failure(cluster.place, "PostgreSQL ended while it was starting.", mark.written())
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGQUIT)
    wait_until(process.ended, ABANDON_SECONDS)
    return start_failure(
        cluster.place, f"PostgreSQL was not ready within {seconds:.0f} s and was ended again.", mark.written()
    )
