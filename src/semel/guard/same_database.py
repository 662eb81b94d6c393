"""A `Row()` on a caller's connection is refused where that leads to another database than the guard has its records in.

Otherwise one operation could act once in each. What the caller's library tells is enough where it is the same; only where it
differs, both sides are asked, once for a connection.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Callable
from typing import Any

from semel.errors import UnsafeClaim
from semel.guard.flow import Ask, Call, Flow
from semel.store.origins import Home, Origin, origin_of
from semel.store.same_database import (
    drop_sign,
    find_file_with_tables,
    find_main_file,
    find_sign,
    identify,
    take_sign,
)
from semel.store.statement import Operation

Apart = Callable[[Operation[Any]], Any]
"""Asks on a connection of the guard's own."""


class SameDatabase:
    """What one guard knows of its callers' connections."""

    def __init__(self, home: Home, dialect: str) -> None:
        self._home = home
        self._require = {"postgresql": self._postgresql, "mysql": self._mysql, "sqlite": self._sqlite}[
            dialect
        ]
        self._proven: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        """Connections that lead to the guard's server, with the name of its database."""

    def require(self, job_type: str, session: Any, apart: Apart) -> Flow[None]:
        """Raise UnsafeClaim unless the caller's session is in the guard's database; the flow's asks go to that session."""
        origin = yield Call(lambda: origin_of(session))
        other = yield from self._require(origin, apart)
        if other is not None:
            raise UnsafeClaim(
                f"A Row() of {job_type} was called on a connection to another database than its Once has ({other}): "
                "one operation could act once in each.",
                holds="Nothing was claimed and nothing done.",
                remedy="Give on(…) a connection to the database of the Once, or make a Once over this one.",
            )

    def _postgresql(self, origin: Origin, apart: Apart) -> Flow[str | None]:
        """What differs, in words; None: nothing does."""
        if self._found(origin) is not None:
            return None
        if not self._home.knows(origin):
            here = yield Ask(identify())
            there = yield Call(lambda: apart(identify()))
            if here != there:
                return _differ(here[0], there[0])
        self._keep(origin, "")
        return None

    def _mysql(self, origin: Origin, apart: Apart) -> Flow[str | None]:
        """The server of a connection is proven once; which of its databases is in use is asked each time."""
        (here,) = yield Ask(identify())
        if here and self._found(origin) == here:
            return None
        (there,) = yield Call(lambda: apart(identify()))
        if here != there or not (self._home.knows(origin) or (yield from _on_one_server(apart))):
            return _differ(here, there)
        self._keep(origin, here)
        return None

    def _sqlite(self, origin: Origin, apart: Apart) -> Flow[str | None]:
        if self._home.knows(origin):
            return None
        file: str | None = yield Ask(find_main_file())
        if self._home.has_file(file or ""):
            return None
        file = yield Ask(find_file_with_tables())
        if file is None or self._home.has_file(file):  # without tables: what follows says so
            return None
        return f"{file or 'in memory'}; {self._home.file}"

    def _found(self, origin: Origin) -> str | None:
        try:
            return self._proven.get(origin.driver)
        except TypeError:  # a connection of a kind that cannot be kept track of is asked each time
            return None

    def _keep(self, origin: Origin, name: str) -> None:
        try:
            self._proven[origin.driver] = name
        except TypeError:
            pass


def _on_one_server(apart: Apart) -> Flow[bool]:
    """Whether the guard's own connection sees a lock that the caller's takes: copies of a server share every number."""
    sign = f"semel_{secrets.token_hex(16)}"
    if not (yield Ask(take_sign(sign))):
        return False
    try:
        seen = yield Call(lambda: apart(find_sign(sign)))
    except GeneratorExit:  # nobody drives this flow any more: the lock ends with the connection
        raise
    except BaseException:
        yield Ask(drop_sign(sign))
        raise
    yield Ask(drop_sign(sign))
    return bool(seen)


def _differ(here: str, there: str) -> str:
    if here == there:
        return f"both are called {here}, on two servers"
    return f"{here or 'none'}; {there or 'none'}"
