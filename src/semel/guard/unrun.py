"""Results that are still to be run: what a guarded function returns must be there when it returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from semel.errors import ConfigurationError
from semel.guard.operation import Handle


def refuse_generators(job_type: str, function: Callable[..., Any]) -> None:
    """Nothing of a generator function runs when it is called: completing it would record what never happened."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(
            f"{job_type} guards a generator function: nothing of it would run within the claim.",
            remedy="Guard a def or an async def that returns its result.",
        )


def refuse_unrun(handle: Handle, result: Any) -> NoReturn:
    """Refuse what a ``def`` returned to be run later, and see to it that it never is.

    Where nothing of it has begun the claim is released, unless ``op.acting()`` was entered; of a future or a task nobody
    knows how far it came.
    """
    if _drop(result):
        handle.passed = handle._acted  # noqa: SLF001
    raise ConfigurationError(
        f"{handle.declaration.job_type} returned a {type(result).__name__}, which is still to be run.",
        holds="It was not completed.",
        remedy="Guard an async def, or return the result itself.",
    )


def _drop(result: Any) -> bool:
    """Close or cancel it; whether nothing of it had begun."""
    if inspect.iscoroutine(result):
        begun = inspect.getcoroutinestate(result) != inspect.CORO_CREATED
        result.close()
    elif inspect.isgenerator(result):
        begun = inspect.getgeneratorstate(result) != inspect.GEN_CREATED
        result.close()
    elif inspect.isasyncgen(result):  # a def does not begin one, and one that has not begun needs no closing
        begun = False
    else:
        begun = True
        cancel = getattr(result, "cancel", None)
        if callable(cancel):
            cancel()
    return not begun
