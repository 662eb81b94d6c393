"""What the journal says of a worker that is getting ready: its wrapper writes there before replay knows of any delivery."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from semel.replay.events import Point
from semel.replay.journal import read_journal

POLLED: Final = "ReceiveMessage"
"""The name in a `Point.HIT` that says: this process asks its queue for messages, for the first time."""


def has_polled(environment: Mapping[str, str], processes: Collection[int]) -> bool:
    """Whether one of these processes has told that it asked its queue."""
    try:
        settings = json.loads(Path(environment["SEMEL_REPLAY"]).read_text("utf-8"))
        hits = [each for each in read_journal(Path(settings["journal"])) if each.point is Point.HIT]
    except (KeyError, OSError):
        return False
    return any(each.pid in processes and each.detail.get("name") == POLLED for each in hits)
