"""The watched call: wrapped where it is defined, so that whoever imports its name later gets the wrapped one."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import sys
import threading
import time
from types import ModuleType
from typing import Any

from .digests import digest_of, without_addresses
from .reporting import Reporter


class Watched:
    """One dotted name: ``package.module.function``, ``package.module.Class.method``, or a method of an object there.

    A colon may stand before the name.
    """

    def __init__(self, name: str, reporter: Reporter) -> None:
        self.name = name.replace(":", ".")
        self._reporter = reporter
        self._originals: list[Any] = []
        self._wrappers: list[Any] = []
        self._told: set[str] = set()
        self._lock = threading.Lock()
        reporter.at_first.append(self.tell_escapes)

    @property
    def modules(self) -> list[str]:
        """Every module that may be the one: each beginning of the name."""
        parts = self.name.split(".")
        return [".".join(parts[:length]) for length in range(1, len(parts))]

    def wrap(self, module: ModuleType) -> None:
        """Wrap it, if this module has it."""
        *owners, last = self.name[len(module.__name__) + 1 :].split(".")
        owner: Any = module
        for each in owners:
            owner = getattr(owner, each, None)
        if owner is None or inspect.ismodule(getattr(owner, last, None)):
            return
        owner = _definer(owner, last)
        plain = inspect.getattr_static(owner, last, None)
        function = plain.__func__ if isinstance(plain, (staticmethod, classmethod)) else plain
        if not callable(function) or function in self._wrappers:
            return
        is_method = inspect.isclass(owner) and not isinstance(plain, staticmethod)
        wrapper = self._wrapper(function, 1 if is_method else 0)
        self._originals.append(function)
        self._wrappers.append(wrapper)
        made = type(plain)(wrapper) if isinstance(plain, (staticmethod, classmethod)) else wrapper
        setattr(owner, last, made)
        self._reporter.ask("hit", "", name=self.name)

    def _wrapper(self, function: Any, first: int) -> Any:
        """``first`` is the place of the first argument that is the caller's own: a method's receiver is not."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                digest = await asyncio.to_thread(self._enter, args[first:], kwargs)
                return await self._awaited(function(*args, **kwargs), digest, time.monotonic())

            return call_async

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            digest = self._enter(args[first:], kwargs)
            began = time.monotonic()
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                self._reporter.ask("raised", digest=digest, error=repr(error)[:200])
                raise
            if inspect.iscoroutine(result):
                return self._awaited(result, digest, began)
            if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
                self._reporter.ask("escaped", name=f"what {self.name} answers before it has its effect")
            time.sleep(max(0.0, self._reporter.dwell - (time.monotonic() - began)))
            self._reporter.ask("return", digest=digest)
            return result

        return call

    async def _awaited(self, answer: Any, digest: str, began: float) -> Any:
        try:
            result = await answer
        except BaseException as error:
            self._reporter.ask("raised", digest=digest, error=repr(error)[:200])
            raise
        await asyncio.sleep(max(0.0, self._reporter.dwell - (time.monotonic() - began)))
        await asyncio.to_thread(self._reporter.ask, "return", digest=digest)
        return result

    def _enter(self, args: Any, kwargs: Any) -> str:
        digest: str = digest_of(args, kwargs)
        self._reporter.ask("entry", digest=digest)
        return digest

    def tell_escapes(self) -> None:
        """Report who holds the call from before it was wrapped; each name once."""
        for name in self._escapes():
            with self._lock:
                if name in self._told:
                    continue
                self._told.add(name)
            self._reporter.ask("escaped", name=name)

    def _escapes(self) -> list[str]:
        modules = {
            id(module.__dict__): name
            for name, module in list(sys.modules.items())
            if hasattr(module, "__dict__")
        }
        return [name for original in self._originals for name in _held(original, modules)]


def _definer(owner: Any, name: str) -> Any:
    """For an object that has the method from its class, that class: there it is wrapped, with its receiver."""
    if inspect.isclass(owner) or name in getattr(owner, "__dict__", {}):
        return owner
    return next((each for each in type(owner).__mro__ if name in vars(each)), owner)


def _held(value: Any, modules: dict[int, str]) -> list[str]:
    """Where it is held, by names that are the same in each process."""
    found = []
    for holder in gc.get_referrers(value):
        if isinstance(holder, dict):
            place = modules.get(id(holder)) or _place_of(holder, modules)
            names = [key for key, each in list(holder.items()) if each is value]
            found += [f"{place}.{name}" for name in names if name != "__wrapped__"]
        elif isinstance(holder, (staticmethod, classmethod)):
            found += _held(holder, modules)
        elif isinstance(holder, functools.partial):
            found.append(without_addresses(repr(holder))[:120])
    return found


def _place_of(holder: dict[Any, Any], modules: dict[int, str]) -> str:
    """The name of a dictionary in a module, where it has one; a class is its own."""
    for each in gc.get_referrers(holder):
        if isinstance(each, type):
            return f"{each.__module__}.{each.__qualname__}"
        if isinstance(each, dict) and id(each) in modules:
            names = [str(key) for key, value in list(each.items()) if value is holder]
            return f"{modules[id(each)]}.{names[0]}" if names else "a dictionary"
    return "a dictionary"
