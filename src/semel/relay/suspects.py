"""Messages that may be what ends connections, for all that anybody can tell."""

from __future__ import annotations

from typing import Final

_MOST: Final = 1_000


class Suspects:
    """Counts how often each was alone on its way when a connection ended, by its job's id."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}

    def note(self, job_id: int, confirmed: int) -> int:
        """Once more; ``confirmed`` is how many messages have been so far. Answers with the times.

        Without another message confirmed since the last time, it is the broker that fails, and nothing is counted.
        """
        times, before = self._known.pop(job_id, (0, -1))
        times += confirmed > before
        self._known[job_id] = times, confirmed
        if len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        return times

    def forget(self, job_id: int) -> None:
        """It got through."""
        self._known.pop(job_id, None)
