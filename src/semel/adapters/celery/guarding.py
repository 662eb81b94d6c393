"""The decorator: right above the function, below ``@app.task``, so that nothing of Celery's sees the guard's answers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, overload

from celery import Task, current_task

from semel.adapters.celery.answers import translate
from semel.adapters.celery.message import ADAPTER, keep
from semel.errors import ConfigurationError, SemelError
from semel.guard.declaration import to_message
from semel.guard.guarded import Guarded, Guarding
from semel.guard.operation import Operation

P = ParamSpec("P")
R = TypeVar("R")
_GUARDED = "semel_guarded"


class GuardDecorator:
    """What `guard` returns."""

    def __init__(self, guarding: object, bind: bool | None) -> None:
        self._guarding = check(guarding)
        self._bind = bind

    @overload
    def __call__(
        self, function: Callable[Concatenate[Task, Operation, P], R]
    ) -> Callable[Concatenate[Task, P], R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Operation, P], R]) -> Callable[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Callable[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The guarded function, for Celery to make a task of."""
        bound = _takes_self(function) if self._bind is None else self._bind
        return wrap(self._guarding, function, bound=bound)


def guard(guarding: Callable[..., Guarded[..., Any]], *, bind: bool | None = None) -> GuardDecorator:
    """Guard a task's function: ``@app.task`` above, then ``@guard(once.operation(…))``, then the function.

    The function takes the operation first; with ``bind=True`` of Celery's the task, then the operation. ``bind`` says so here
    where the first parameter is not called ``self``. Senders do not see the operation, and Celery's check of arguments does
    not either.
    """
    return GuardDecorator(guarding, bind)


def check(guarding: object) -> Guarding:
    """What ``once.operation(…)`` returned, or an error that says so."""
    if not isinstance(guarding, Guarding):
        raise ConfigurationError(
            f"A Celery task was given {guarding!r} to be guarded by.",
            remedy='Give what once.operation("…", key=…, effect=…) returns.',
        )
    return guarding


def wrap(guarding: Guarding, function: Callable[..., Any], *, bound: bool) -> Callable[..., Any]:
    """The function that Celery runs: takes what a message brings, the task before it where it is bound."""
    if inspect.iscoroutinefunction(function):
        raise ConfigurationError(
            f"{function.__qualname__} is an async def, which no worker of Celery runs.", remedy="Write def."
        )
    inner = _turn(function) if bound and guarding.takes_operation else function
    guarded = guarding.guard(inner, filled_in=int(bound))

    def run(*args: Any, **kwargs: Any) -> Any:
        return deliver(guarded, _task_of(guarded), args, kwargs, ())

    def run_bound(task: Task, /, *args: Any, **kwargs: Any) -> Any:
        return deliver(guarded, task, args, kwargs, (task,))

    chosen: Any = run_bound if bound else run
    functools.update_wrapper(chosen, function)
    leading = list(inspect.signature(function).parameters.values())[: int(bound)]
    signature = guarded.signature.replace(parameters=[*leading, *guarded.signature.parameters.values()])
    chosen.__signature__ = signature
    named = {*signature.parameters, "return"}
    chosen.__annotations__ = {k: v for k, v in function.__annotations__.items() if k in named}
    setattr(chosen, _GUARDED, guarded)
    return cast("Callable[..., Any]", chosen)


def deliver(guarded: Guarded[..., Any], task: Any, args: Any, kwargs: Any, leading: tuple[Any, ...]) -> Any:
    """One delivery. A call that is no message's, or runs eagerly, gets the guard's answers as they are."""
    request = task.request if task else None
    if request is None or request.called_directly or request.is_eager:
        return guarded.run(args, kwargs, leading=leading)
    kept = keep(task)
    message = None if kept is None else to_message(ADAPTER, **kept)
    try:
        return guarded.run(args, kwargs, message=message, leading=leading)
    except SemelError as error:
        if error.nested:  # of another operation, that the function asked for: an exception of the function
            raise
        translate(task, error, kept)


def _task_of(guarded: Guarded[..., Any]) -> Any:
    """The task that runs this function for a message; None where the code of another task called it."""
    if not current_task:
        return None
    found = find_guarded(current_task)
    if found is None and not any(find_guarded(each) is guarded for each in current_task.app.tasks.values()):
        return current_task  # a decorator without functools.wraps hides it
    return current_task if found is guarded else None


def find_guarded(task: Task) -> Guarded[..., Any] | None:
    """What guards a task, if anything does."""
    function: Any = task.run
    while function is not None:
        found = getattr(function, _GUARDED, None)
        if found is not None:
            return cast("Guarded[..., Any]", found)
        function = getattr(function, "__wrapped__", None)
    return None


def _takes_self(function: Callable[..., Any]) -> bool:
    return next(iter(inspect.signature(function).parameters), None) == "self"


def _turn(function: Callable[..., Any]) -> Callable[..., Any]:
    """Celery gives the task first, the guard the operation."""
    signature = inspect.signature(function)
    task, operation, *rest = [*signature.parameters.values(), None, None]
    if task is None or operation is None:
        raise ConfigurationError(
            f"{function.__qualname__} takes no operation behind its task.",
            remedy="Write def charge(self, op: semel.Operation, …), or declare with_operation=False.",
        )

    @functools.wraps(function)
    def turned(operation: Operation, task: Task, /, *args: Any, **kwargs: Any) -> Any:
        return function(task, operation, *args, **kwargs)

    first = [each.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for each in (operation, task)]
    turned.__signature__ = signature.replace(
        parameters=[*first, *[each for each in rest if each is not None]]
    )
    return turned
