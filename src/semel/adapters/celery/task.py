"""The base class: ``@app.task(base=GuardedTask, once=once.operation(…))`` guards the function that it decorates."""

from __future__ import annotations

import inspect
from types import MethodType
from typing import Any, ClassVar

from celery import Task
from celery.utils.functional import head_from_fun

from semel.adapters.celery.guarding import check, wrap
from semel.errors import ConfigurationError


class GuardedTask(Task):  # type: ignore[misc]
    """A task whose ``run`` is guarded by ``once``, before Celery wraps it for ``autoretry_for``."""

    abstract = True
    once: ClassVar[Any] = None
    """What ``once.operation(…)`` returns."""

    def __init__(self) -> None:
        kind = type(self)
        if kind.once is None:
            raise ConfigurationError(
                f"The task {self.name or kind.__name__} has base=GuardedTask and no once=.",
                remedy='Say @app.task(base=GuardedTask, once=once.operation("…", key=…)).',
            )
        declared = inspect.getattr_static(kind, "run")
        bound = not isinstance(declared, staticmethod)
        function = declared if bound else declared.__func__
        guarded = wrap(check(kind.once), function, bound=bound)
        self.run = MethodType(guarded, self) if bound else guarded
        if hasattr(kind, "__header__"):  # Celery's check of arguments, without the operation
            self.__header__ = head_from_fun(guarded, bound=bound)
