"""What a relay has done with one queue, for its log, for ``--json`` and for metrics."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final

_FRESH: Final = 180.0
"""Seconds without another refusal after which a key is no longer called blocked: another relay may have sent it."""


@dataclass(slots=True)
class Figures:
    """Counted since the relay started."""

    sent: int = 0
    """Messages that the broker confirmed; more than there are jobs, where some were sent again."""
    refused: int = 0
    """Times that the broker, or the making of a message, refused one."""
    failed: int = 0
    """Messages that became dead letters."""
    lost: int = 0
    """Claims that others took over."""
    connections: int = 0
    """Times that the broker was connected to."""
    oldest: float | None = None
    """Seconds that the oldest due message has waited; None where nothing waits, or nobody looked."""
    _blocked: dict[str, tuple[int, str, float]] = field(default_factory=dict)

    @property
    def blocked(self) -> dict[str, int]:
        """Ordering keys that a refused message keeps waiting, with its job's id."""
        since = time.monotonic() - _FRESH
        self._blocked = {key: one for key, one in self._blocked.items() if one[2] >= since}
        return {key: job_id for key, (job_id, _, _) in self._blocked.items()}

    def block(self, key: str, job_id: int, why: str) -> bool:
        """Note that a key waits for this job; answers whether that is news."""
        known = self._blocked.get(key)
        self._blocked[key] = (job_id, why, time.monotonic())
        return known is None or known[0] != job_id

    def unblock(self, key: str) -> bool:
        """Note that a key goes on; answers whether it was blocked."""
        return self._blocked.pop(key, None) is not None

    def report(self) -> dict[str, Any]:
        """As it is printed."""
        names = ("sent", "refused", "failed", "lost", "connections", "oldest")
        return {name: getattr(self, name) for name in names} | {"blocked": self.blocked}
