"""semel's guard, from outside: past the commit of a claim and of a completion; and blinded, for the control."""

from __future__ import annotations

import dataclasses
import functools
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
