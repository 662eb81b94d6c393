"""One replay at a time where two would meddle: a guard's table that one puts aside, a queue that both serve."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from semel.errors import ConfigurationError
from semel.replay.folders import lock_now

_log = logging.getLogger("semel.replay")
_LOOK: Final = 0.2
_PATIENCE: Final = 3600.0


class Turns:
    """What one run has taken, for as long as it lasts; its versions of the code share it.

    Locks are of files in the machine's temporary folder, so they end with their process, whatever becomes of it.
    """

    def __init__(self, folder: Path, patience: float) -> None:
        self._folder = folder
        self._patience = patience
        self._files: dict[str, int] = {}

    def take(self, targets: Iterable[str]) -> None:
        """Wait until no other replay on this machine has one of them. Raises `ConfigurationError` after an hour."""
        for each in sorted(set(targets) - self._files.keys()):
            self._files[each] = self._open(each)
            if not lock_now(self._files[each]):
                _log.warning("Another replay runs on %s: this one waits for its end.", each)
                self._wait(each)

    def end(self) -> None:
        """Let the next one have them."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def _open(self, target: str) -> int:
        name = hashlib.sha256(target.encode()).hexdigest()[:16]
        path = self._folder / f"semel-replay-{name}.lock"
        try:
            return os.open(path, os.O_RDONLY | os.O_CREAT, 0o644)
        except PermissionError:
            return os.open(
                path, os.O_RDONLY
            )  # another user's, in everybody's folder: to be locked all the same

    def _wait(self, target: str) -> None:
        end = time.monotonic() + self._patience
        while not lock_now(self._files[target]):
            if time.monotonic() > end:
                raise ConfigurationError(
                    f"Another replay has been on {target} for {self._patience:g} s.",
                    holds="Nothing was sent.",
                    remedy="Wait for its end, or end it.",
                )
            time.sleep(_LOOK)


@contextmanager
def open_turns(folder: Path | None = None, *, patience: float = _PATIENCE) -> Iterator[Turns]:
    """A run's turns; they end with the block."""
    turns = Turns(folder or Path(tempfile.gettempdir()), patience)
    try:
        yield turns
    finally:
        turns.end()
