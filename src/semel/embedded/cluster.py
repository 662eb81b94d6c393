"""The data directory itself: made once and whole, and never opened by another major version."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Final

from semel.embedded.binaries import Binaries
from semel.embedded.identity import Identity
from semel.embedded.log import start_failure
from semel.embedded.place import Place, disk_errors
from semel.embedded.settings import DATABASE, USER
from semel.errors import EmbeddedServerError, PostgresStartFailed, PostgresVersionChanged

INIT_SECONDS: Final = 120


@dataclass(frozen=True)
class Cluster:
    """A place, the programs for it and as whom they run."""

    place: Place
    binaries: Binaries
    identity: Identity

    def command(self, program: str, *arguments: str) -> list[str]:
        """A program of PostgreSQL's with what must go before it."""
        return [*self.identity.prefix, self.binaries.program(program), *arguments]

    def ensure(self, *, durable: bool) -> None:
        """Make the data directory unless it is there; refuse one of another major version."""
        if self.place.data.exists():
            check_version(self.place, self.binaries)
        else:
            self._make(durable=durable)

    def _make(self, *, durable: bool) -> None:
        """Made beside its final name and renamed, so that an interrupted start leaves nothing half made."""
        making = self.place.data_in_making
        shutil.rmtree(making, ignore_errors=True)
        try:
            with disk_errors(self.place):
                making.mkdir(mode=0o700)
                self.identity.own(making, self.place.password)
                self._run_initdb(durable=durable)
                self._create_database()
                making.rename(self.place.data)
        except EmbeddedServerError:
            shutil.rmtree(making, ignore_errors=True)
            raise

    def _run_initdb(self, *, durable: bool) -> None:
        self._run(
            self.command(
                "initdb",
                f"--pgdata={self.place.data_in_making}",
                f"--username={USER}",
                "--auth-local=trust",
                "--auth-host=scram-sha-256",
                f"--pwfile={self.place.password}",
                "--no-locale",
                "--encoding=UTF8",
                *(() if durable else ("--no-sync",)),
            )
        )

    def _create_database(self) -> None:
        single = ("--single", "-D", str(self.place.data_in_making), "-c", "exit_on_error=on", "postgres")
        self._run(self.command("postgres", *single), f"CREATE DATABASE {DATABASE}\n")

    def _run(self, command: list[str], typed: str = "") -> None:
        happened = "A new data directory could not be made."
        try:
            self._run_in_time(command, typed, happened)
        except subprocess.TimeoutExpired as error:
            printed = (error.output or b"").decode("utf-8", "replace")
            raise start_failure(self.place, f"{happened[:-1]} within {INIT_SECONDS} s.", printed) from error

    def _run_in_time(self, command: list[str], typed: str, happened: str) -> None:
        done = subprocess.run(  # noqa: S603
            command,
            input=typed,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            env=clean_environment(),
            cwd=self.place.directory,
            timeout=INIT_SECONDS,
        )
        if done.returncode != 0:
            raise start_failure(self.place, happened, done.stdout)


def check_version(place: Place, binaries: Binaries) -> None:
    """Raise unless the data is of the programs' major version."""
    try:
        found = (place.data / "PG_VERSION").read_text("utf-8").strip()
    except FileNotFoundError:
        raise PostgresStartFailed(
            f"{place.data} has no PG_VERSION, so it is no whole data directory.",
            holds="It is kept as it is.",
            remedy="Put it back from a copy, or move it away and start again with an empty one.",
        ) from None
    if found == binaries.major:
        return
    raise PostgresVersionChanged(
        f"The data in {place.directory} is of PostgreSQL {found}; "
        f"the programs in {binaries.directory} ({binaries.source}) are {binaries.version}.",
        holds="The data is kept as it is.",
        remedy=f"To go on with it, set SEMEL_PG_BIN to the bin directory of a PostgreSQL {found}. "
        f"To move it to {binaries.major}, start it so, run pg_dump, start an empty server in another "
        f"SEMEL_HOME and load the dump there. To do without it, move {place.directory} away.",
    )


def clean_environment() -> dict[str, str]:
    """The caller's environment without what would bend PostgreSQL's programs: PG* variables and language."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C"}
