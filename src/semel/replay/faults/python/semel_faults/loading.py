"""What is done to a module as soon as it has been imported: before anybody can import a name from it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from . import guard, queues, watching
from .reporting import Reporter

Hooks = dict[str, list[Callable[[ModuleType], object]]]


def install(path: str) -> Reporter:
    """Read what this replay wants, and hook the imports that matter to it; who reports for this process."""
    with open(path, encoding="utf-8") as file:
        told = json.load(file)
    reporter = Reporter(told)
    reporter.follow()
    os.register_at_fork(after_in_child=reporter.follow)
    hooks: Hooks = {}
    for name in told.get("watch", []):
        watched = watching.Watched(name, reporter)
        for module in watched.modules:
            hooks.setdefault(module, []).append(watched.wrap)
    for module, hook in _all_hooks(reporter, told):
        hooks.setdefault(module, []).append(hook)
    sys.meta_path.insert(0, _Finder(hooks))
    return reporter


def _all_hooks(reporter: Reporter, told: dict[str, Any]) -> Iterator[queues.Hook]:
    yield from queues.hooks(reporter)
    yield from guard.hooks(
        reporter, blind=bool(told.get("blind")), unconstrained=bool(told.get("unconstrained"))
    )


class _Finder(importlib.abc.MetaPathFinder):
    """Finds what the others find, and has the hooks called after it has run."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._looking: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._hooks or fullname in self._looking:
            return None
        self._looking.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._looking.discard(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._hooks[fullname])
        return spec


class _Loader(importlib.abc.Loader):
    """A loader that calls hooks when the module is whole."""

    def __init__(self, inner: Any, hooks: list[Callable[[ModuleType], object]]) -> None:
        self._inner = inner
        self._hooks = hooks

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._inner.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        for hook in self._hooks:
            hook(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
