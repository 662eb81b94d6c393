"""What `semel worker` is told on its command line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How one supervisor and its children run. None: as the application's settings say."""

    app: str
    """Where the application is: ``module:attribute``."""
    database: str | None
    schema: str | None
    children: int
    concurrency: int | None
    """Jobs at a time in each child."""
    queues: tuple[str, ...] | None
    """None: every queue."""
    drain: bool
    """End as soon as nothing is due."""
    log_format: str
    """``text`` or ``json``."""
    log_level: str
    lease: timedelta | None
    stop_grace: timedelta | None
