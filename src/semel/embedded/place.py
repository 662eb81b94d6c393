"""The directory that one server lives in, its private directory under /tmp, and whose they are.

::

    directory/            0700
      semel-postgres      the marker: this directory is ours, and may be destroyed
      data/               PostgreSQL's data directory
      data.new/           one that is being made; a left-over of an interrupted start
      password            for loopback TCP; the Unix socket needs none
      server.log
    /tmp/semel-UID-HASH/  0700; a socket's path must be short (107 bytes), whatever the directory's is
      .s.PGSQL.5432
      lock                held while a process starts, stops or destroys the server
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from semel.errors import DiskFull, EmbeddedServerError, ForeignDirectory

NOBODY: Final = 65534
MARKER_TEXT: Final = "A PostgreSQL server that semel started. Stop it with 'semel db stop'.\n"


@dataclass(frozen=True)
class Place:
    """All paths of one server; nothing is created by asking for them."""

    directory: Path

    @classmethod
    def at(cls, directory: Path | str | None) -> Place:
        """The place of a directory (without one: the default), with links and ``~`` resolved."""
        chosen = default_directory() if directory is None else Path(directory)
        return cls(chosen.expanduser().resolve())

    @property
    def data(self) -> Path:
        """PostgreSQL's own data directory."""
        return self.directory / "data"

    @property
    def data_in_making(self) -> Path:
        """Renamed to ``data`` once it is whole."""
        return self.directory / "data.new"

    @property
    def marker(self) -> Path:
        """Its presence says that semel made the directory."""
        return self.directory / "semel-postgres"

    @property
    def log(self) -> Path:
        """What the server prints."""
        return self.directory / "server.log"

    @property
    def password(self) -> Path:
        """The password of user semel, for TCP."""
        return self.directory / "password"

    @property
    def runtime(self) -> Path:
        """The short, private directory of the socket and the lock: the same in every process of this user."""
        digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:12]
        return Path(f"/tmp/semel-{os.geteuid()}-{digest}")  # noqa: S108 (checked by make_runtime)

    @property
    def lock(self) -> Path:
        """Serialises starts and stops between processes."""
        return self.runtime / "lock"


def default_directory() -> Path:
    """``$SEMEL_HOME/postgres``, else ``semel/postgres`` in ``$XDG_DATA_HOME`` or ``~/.local/share``."""
    home = os.environ.get("SEMEL_HOME")
    if home:
        return Path(home) / "postgres"
    data_home = os.environ.get("XDG_DATA_HOME", "")
    shared = Path(data_home) if Path(data_home).is_absolute() else _home() / ".local" / "share"
    return shared / "semel" / "postgres"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise EmbeddedServerError(
            "This user has no home directory to keep a server in.", remedy="Set SEMEL_HOME to a directory."
        ) from error


def is_ours(place: Place) -> bool:
    """Whether semel made the directory."""
    with disk_errors(place):
        return place.marker.is_file()


def refuse_foreign(place: Place) -> None:
    """Raise ForeignDirectory unless the directory is ours, empty or not there yet; nothing is touched."""
    with disk_errors(place):
        _refuse_foreign(place)


def _refuse_foreign(place: Place) -> None:
    """Another process may be making or destroying the directory meanwhile: the marker comes first and goes last."""
    directory = place.directory
    try:
        found = directory.stat()
        if not stat.S_ISDIR(found.st_mode):
            raise _foreign(f"{directory} is a file, not a directory.")
        if found.st_uid != os.geteuid() and not (os.geteuid() == 0 and found.st_uid == NOBODY):
            raise _foreign(
                f"{directory} belongs to the user with number {found.st_uid}, and this is {os.geteuid()}."
            )
        entries = sorted(path.name for path in directory.iterdir())
    except FileNotFoundError:
        return
    if place.marker.name in entries:
        return
    if "PG_VERSION" in entries:
        raise _foreign(f"{directory} is a PostgreSQL data directory that semel did not make.")
    if entries:
        raise _foreign(f"{directory} is not empty and was not made by semel; it holds {_some(entries)}.")


def make_directory(place: Place) -> None:
    """Create the directory with its parents; nothing in it says yet that it is ours."""
    with disk_errors(place), suppress(FileExistsError):
        place.directory.mkdir(mode=0o700, parents=True)


def make_ours(place: Place) -> None:
    """Make the directory private and mark it as ours; call refuse_foreign first, and hold the lock."""
    make_directory(place)
    with disk_errors(place):
        place.directory.chmod(0o700)
        _write_once(place.marker, MARKER_TEXT)
        _write_once(place.password, secrets.token_urlsafe(24))


def remove_directory(place: Place) -> None:
    """Delete the directory, the marker last: a destroy that is killed leaves what can be destroyed again."""
    with disk_errors(place):
        for path in place.directory.iterdir():
            if path == place.marker:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        place.marker.unlink()
        place.directory.rmdir()


def make_runtime(place: Place) -> bool:
    """Create the private directory under /tmp, or take the one there, if no other user planted it.

    False where a destroy removed it at the same moment: try again.
    """
    runtime = place.runtime
    with suppress(FileExistsError):
        runtime.mkdir(mode=0o700)
    try:
        found = runtime.lstat()
    except FileNotFoundError:
        return False
    owned = found.st_uid == os.geteuid() or (os.geteuid() == 0 and found.st_uid == NOBODY)
    if not stat.S_ISDIR(found.st_mode) or not owned or stat.S_IMODE(found.st_mode) & 0o077:
        raise EmbeddedServerError(
            f"{runtime} is another user's or open to others, so the server's socket would not be safe there.",
            holds="Nothing was started.",
            remedy=f"Remove {runtime}, or choose another directory for the server.",
        )
    return True


def remove_runtime(place: Place) -> None:
    """Delete the private directory; hold the lock. The lock's file goes last, and who makes the next keeps it."""
    for path in place.runtime.iterdir():
        if path != place.lock:
            path.unlink()
    place.lock.unlink()
    try:
        place.runtime.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            raise


@contextmanager
def disk_errors(place: Place) -> Iterator[None]:
    """Turn what the system refuses in the body (no space, no permission …) into errors that say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(place) from error
        raise EmbeddedServerError(
            f"The directory {place.directory} cannot be used: {error.strerror} ({error.filename}).",
            holds="Nothing was started.",
            remedy="Set SEMEL_HOME to a directory that you may write to.",
        ) from error


def disk_full(place: Place, log: str = "") -> DiskFull:
    """The error for a full disk, with the log's last lines where there are any."""
    shown = f" The log ends with:\n{log}" if log else ""
    return DiskFull(
        f"The disk that holds {place.directory} is full, so PostgreSQL cannot start.{shown}",
        holds="The data already there is kept as it is.",
        remedy="Free some space (a new server needs about 60 MB) and start again.",
    )


def _foreign(happened: str) -> ForeignDirectory:
    return ForeignDirectory(
        happened,
        holds="Nothing in it was touched.",
        remedy="Choose an empty or new directory (SEMEL_HOME), "
        "or, if a server runs on that data, give semel its URL (SEMEL_DATABASE_URL).",
    )


def _some(entries: list[str]) -> str:
    shown = ", ".join(entries[:3])
    return f"{shown} and {len(entries) - 3} more" if len(entries) > 3 else shown


def _write_once(path: Path, text: str) -> None:
    """Write a private file, unless it has text already; an empty one is a left-over of a full disk."""
    if path.exists() and path.stat().st_size > 0:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
