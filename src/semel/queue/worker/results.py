"""What a handler gave back, before it counts as done."""

from __future__ import annotations

import inspect
from typing import Any

from semel.core.results import is_unrun
from semel.errors import ConfigurationError


def unrun(result: Any) -> ConfigurationError | None:
    """The error for a result that is work not done: a coroutine that nobody awaited, a generator that nobody ran.

    A ``def`` around an ``async def``, or a decorator that forgets the await, would otherwise be done without having run.
    """
    if not is_unrun(result):
        return None
    if inspect.iscoroutine(result):
        result.close()  # nothing of it runs, and nothing warns at its collection
    return ConfigurationError(
        f"The handler returned a {type(result).__name__}: nothing of it ran.",
        remedy="Await it: write async def, or run it to its end.",
    )
