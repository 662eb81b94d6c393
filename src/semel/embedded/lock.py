"""One process at a time starts, stops or destroys a server."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from semel.embedded.place import Place, make_runtime
from semel.embedded.waiting import wait_until
from semel.errors import EmbeddedServerError

WAIT_SECONDS: Final = 150.0


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold the server's lock; the kernel frees it should this process die."""
    held: list[int] = []
    if not wait_until(lambda: _take(place, held), WAIT_SECONDS):
        raise EmbeddedServerError(
            f"Another process has been starting or stopping the server in {place.directory} "
            f"for {WAIT_SECONDS:.0f} s.",
            holds="Nothing was changed.",
            remedy=f"See what that process waits for ({place.log}); it holds {place.lock}.",
        )
    try:
        yield
    finally:
        os.close(held[0])


def _take(place: Place, held: list[int]) -> bool:
    """Try once; a lock whose file was removed by a destroy in the meantime does not count."""
    if not make_runtime(place):
        return False
    try:
        descriptor = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        return False
    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if place.lock.stat().st_ino == os.fstat(descriptor).st_ino:
            held.append(descriptor)
            return True
    os.close(descriptor)
    return False
