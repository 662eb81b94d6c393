"""How a job lies in Sidekiq's Redis."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def push_commands(
    job: Mapping[str, Any], *, at: float, namespace: str | None
) -> tuple[tuple[str, str, str], ...]:
    """The commands of Redis, for one transaction, by which Sidekiq's own client pushes ``job`` to its queue."""
    prefix, queue = "" if namespace is None else f"{namespace}:", str(job["queue"])
    return (
        ("SADD", f"{prefix}queues", queue),
        ("LPUSH", f"{prefix}queue:{queue}", json.dumps({**job, "enqueued_at": at})),
    )
