"""semel's guard, from outside: past the commit of a claim and of a completion; and blinded, for the control."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import secrets
from collections.abc import Callable, Iterator
from types import MappingProxyType, ModuleType
from typing import Any

from .reporting import LostConnection, Reporter
from .unconstrained import hook as drop_conflicts

_POINTS = MappingProxyType(
    {
        ("committed", "guard_begin_new"): "claimed",
        ("before", "guard/complete"): "completing",
        ("committed", "guard_complete"): "completed",
    }
)


def hooks(
    reporter: Reporter, *, blind: bool, unconstrained: bool
) -> Iterator[tuple[str, Callable[[ModuleType], object]]]:
    """The module to wait for, and what is done to it."""
    yield "semel.store.own_connections", functools.partial(_watch, reporter)
    yield "semel.guard.delivery", functools.partial(_report_looks, reporter)
    if blind:
        yield "semel.guard.declaration", _blind
    if unconstrained:
        yield "semel.sql", drop_conflicts


def _watch(reporter: Reporter, module: ModuleType) -> None:
    own = module.OwnSessions
    make = own.__init__

    @functools.wraps(make)
    def make_watched(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        inner = self.watch

        def watch(moment: str, name: str) -> None:
            if inner is not None:
                inner(moment, name)
            point = _POINTS.get((moment, name))
            if point is not None:
                _ask(reporter, point)

        self.watch = watch

    own.__init__ = make_watched


def _report_looks(reporter: Reporter, module: ModuleType) -> None:
    """A point between a look-up's answer and what is written of it."""
    deliver = module.deliver

    @functools.wraps(deliver)
    def deliver_reported(*args: Any, find: Any, **kwargs: Any) -> Any:
        return deliver(*args, find=None if find is None else _reported(reporter, find), **kwargs)

    module.deliver = deliver_reported  # type: ignore[attr-defined]


def _reported(reporter: Reporter, find: Any) -> Any:
    async def answered_async(answer: Any) -> Any:
        found = await answer
        await asyncio.to_thread(reporter.ask, "looked")
        return found

    def look(reference: str) -> Any:
        answer = find(reference)
        if inspect.isawaitable(answer):
            return answered_async(answer)
        reporter.ask("looked")
        return answer

    return look


def _ask(reporter: Reporter, point: str) -> None:
    """A cut is raised as the driver's error comes out of the store."""
    try:
        reporter.ask(point)
    except LostConnection as cut:
        from semel.errors import DatabaseUnreachable

        raise DatabaseUnreachable(str(cut)) from cut


def _blind(module: ModuleType) -> None:
    """Every delivery gets a key of its own: whatever the guard does, it recognises none."""
    declaration = module.Declaration
    request = declaration._request

    @functools.wraps(request)
    def request_blinded(self: Any, *args: Any, **kwargs: Any) -> Any:
        return dataclasses.replace(request(self, *args, **kwargs), key=secrets.token_hex(32), label=None)

    declaration._request = request_blinded
