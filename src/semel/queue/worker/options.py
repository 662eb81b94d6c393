"""What `semel worker` is told on its command line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How one supervisor and its children run. None: as the application's settings say."""

    app: str
    """Where the application is: ``module:attribute``."""
    database: str | None = None
    schema: str | None = None
    children: int = 1
    concurrency: int | None = None
    """Jobs at a time in each child."""
    queues: tuple[str, ...] | None = None
    """None: every queue."""
    drain: bool = False
    """End as soon as nothing is due."""
    log_format: str = "text"
    """``text`` or ``json``."""
    log_level: str = "INFO"
    lease: timedelta | None = None
    stop_grace: timedelta | None = None
