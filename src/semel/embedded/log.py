"""The server's log file: kept small, and read back when a start fails."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from semel.embedded.place import Place, disk_errors, disk_full
from semel.errors import EmbeddedServerError, PostgresStartFailed

LARGEST: Final = 16 * 1024 * 1024
LINES_SHOWN: Final = 12
FULL_BELOW: Final = 1024 * 1024


@dataclass(frozen=True)
class LogMark:
    """The end of the log before a start: what comes after it is that start's."""

    path: Path
    offset: int

    def written(self) -> str:
        """What was logged since."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                return file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def last_lines(self) -> str:
        """The last few lines logged since."""
        return last_lines(self.written())


def open_log(place: Place) -> LogMark:
    """Create the log if need be, put one that has grown large aside as ``server.log.1``, and mark its end."""
    with disk_errors(place):
        if place.log.exists() and place.log.stat().st_size > LARGEST:
            place.log.replace(place.log.with_suffix(".log.1"))
        place.log.touch(mode=0o600)
        return LogMark(place.log, place.log.stat().st_size)


def start_failure(place: Place, happened: str, printed: str) -> EmbeddedServerError:
    """The error for a program that failed: a full disk by its name, all else with what was printed last."""
    if "No space left on device" in printed or shutil.disk_usage(place.directory).free < FULL_BELOW:
        return disk_full(place, last_lines(printed))
    shown = last_lines(printed) or "(nothing was printed)"
    return PostgresStartFailed(
        f"{happened} It printed last:\n{shown}\n",
        holds="The data directory is kept as it is.",
        remedy=f"Mend what the lines name and start again; the whole log is {place.log}.",
    )


def last_lines(text: str) -> str:
    """At most the last dozen lines, indented."""
    return "\n".join(f"  {line}" for line in text.splitlines()[-LINES_SHOWN:])
