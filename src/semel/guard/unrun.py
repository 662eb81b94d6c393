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

    It is an error like any other: the function itself has run, and one that counts as acting from its start may have acted
    before it returned this.
    """
    _drop(result)
    raise ConfigurationError(
        f"{handle.declaration.job_type} returned a {type(result).__name__}, which is still to be run.",
        holds="It was not completed.",
        remedy="Guard an async def, or return the result itself.",
    )


def _drop(result: Any) -> None:
    """Close or cancel it; an asynchronous generator has not begun, and one that has not needs no closing."""
    if inspect.iscoroutine(result) or inspect.isgenerator(result):
        result.close()
    elif not inspect.isasyncgen(result):
        cancel = getattr(result, "cancel", None)
        if callable(cancel):
            cancel()
