"""Folders of a run's own; those of runs that were killed are removed by the next one."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SHORT: Final = Path("/tmp")  # noqa: S108  # a Unix socket's path is short; the folder is made by mkdtemp
"""Where a path is short enough for a Unix socket."""
_PREFIX: Final = "semel-replay-"
_LOCK: Final = "lock"


@contextmanager
def own_folder(parent: Path) -> Iterator[Path]:
    """A new folder; it is locked as long as this process lives, so that others can tell."""
    remove_left(parent)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=parent) as name:
        folder = Path(name).resolve()
        unlocked = folder / "unlocked"
        with unlocked.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            unlocked.rename(folder / _LOCK)
            yield folder


def remove_left(parent: Path) -> None:
    """Remove the folders of this user's whose process has ended without doing so."""
    for lock in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        if _is_own(lock.parent) and _is_left(lock):
            shutil.rmtree(lock.parent, ignore_errors=True)


def _is_own(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _is_left(lock: Path) -> bool:
    try:
        with lock.open() as file:
            return lock_now(file.fileno())
    except OSError:
        return False


def lock_now(file: int) -> bool:
    """Whether nobody else has the lock of an open file; if so, it is held until that is closed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
