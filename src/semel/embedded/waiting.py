"""Wait for something that sends no signal: look often, with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PAUSE: Final = 0.01


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true within the time; it is looked at once at least."""
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= limit:
            return False
        time.sleep(PAUSE)
    return True
