"""Modules as their text says: what their names mean, which functions they have, and where a call leads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Module:
    """One file of Python."""

    name: str
    file: str
    tree: ast.Module

    @cached_property
    def names(self) -> dict[str, str]:
        """What imported names stand for, dotted."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name if alias.asname else alias.name.partition(".")[0]
                    found[alias.asname or top] = top
            elif isinstance(node, ast.ImportFrom):
                base = self._from(node)
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{base}.{alias.name}" if base else alias.name
        return found

    @cached_property
    def functions(self) -> dict[str, Function]:
        """The module's own functions by name; methods as ``Class.method``."""
        found: dict[str, Function] = {}
        for node in self.tree.body:
            if isinstance(node, Function):
                found[node.name] = node
            elif isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, Function):
                        found[f"{node.name}.{inner.name}"] = inner
        return found

    @cached_property
    def made(self) -> dict[str, ast.Call]:
        """Names of the module that are made by a call: ``app = Celery(…)``."""
        found: dict[str, ast.Call] = {}
        for node in self.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {each.id: node.value for each in targets if isinstance(each, ast.Name)}
        return found

    @cached_property
    def attributes(self) -> dict[str, ast.Call]:
        """What methods keep of a call: ``Class.session``, by ``self.session = requests.Session()``."""
        return {
            f"{name.partition('.')[0]}.{target.attr}": node.value
            for name, function in self.functions.items()
            if "." in name
            for node in ast.walk(function)
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
        }

    @property
    def runs(self) -> bool:
        """Whether it does something when it is run as a program."""
        return any(
            isinstance(node, ast.If)
            and "__name__" in ast.dump(node.test)
            and "__main__" in ast.dump(node.test)
            for node in self.tree.body
        )

    def meaning(self, node: ast.expr) -> str:
        """What an expression names, dotted; empty where it names nothing that can be told."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
            if isinstance(node, ast.Call):  # Gateway(…).charge
                node = node.func
        if not isinstance(node, ast.Name):
            return ""
        first = self.names.get(node.id)
        if first is None and (node.id in self.functions or node.id in self.made or node.id in self.classes):
            first = f"{self.name}.{node.id}"
        return ".".join([first or f"?{node.id}", *reversed(parts)])

    @cached_property
    def classes(self) -> frozenset[str]:
        """The names of its classes."""
        return frozenset(node.name for node in self.tree.body if isinstance(node, ast.ClassDef))

    def _from(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name.split(".")
        up = node.level - (1 if self.file.endswith("__init__.py") else 0)
        base = package[: len(package) - up] if up else package
        return ".".join([*base, *([node.module] if node.module else [])])


class Project:
    """All modules, so that a name can be followed from one to another."""

    def __init__(self, modules: list[Module]) -> None:
        self.modules = modules
        self._by_name = {module.name: module for module in modules}

    def function(self, dotted: str) -> tuple[Module, Function] | None:
        """The project's own function of that name."""
        for split in range(dotted.count("."), 0, -1):
            parts = dotted.split(".")
            module = self._by_name.get(".".join(parts[:split]))
            if module is not None:
                name = ".".join(parts[split:])
                found = module.functions.get(name)
                if found is not None:
                    return module, found
                return self._elsewhere(module, dotted, parts[split], parts[split + 1 :])
        return None

    def _elsewhere(
        self, module: Module, dotted: str, first: str, rest: list[str]
    ) -> tuple[Module, Function] | None:
        """Where the name is imported from, or a method of the class that makes it."""
        moved = (
            module.names.get(first)
            or (first in module.made and module.meaning(module.made[first].func))
            or ""
        )
        found = ".".join([moved, *rest])
        return self.function(found) if moved and found != dotted else None

    def maker(self, dotted: str) -> ast.Call | None:
        """The call that makes the name, wherever it is imported from."""
        home, _, name = dotted.rpartition(".")
        module = self._by_name.get(home)
        if module is None:
            return None
        moved = module.names.get(name)
        return module.made.get(name) or (self.maker(moved) if moved and moved != dotted else None)

    def returned(self, dotted: str) -> ast.Call | None:
        """The call that a function of the project returns."""
        own = self.function(dotted)
        for node in ast.walk(own[1]) if own else ():
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
                return node.value
        return None

    def made_by(self, *makers: str) -> Iterator[tuple[Module, str, ast.Call]]:
        """Names that are made by calling one of these, anywhere."""
        for module in self.modules:
            for name, call in module.made.items():
                if module.meaning(call.func) in makers:
                    yield module, name, call


def constant(call: ast.Call, name: str, place: int | None = None) -> str | None:
    """A text that is given as this keyword, or at this place."""
    node = keyword(call, name)
    if node is None and place is not None and len(call.args) > place:
        node = call.args[place]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """What is given as this keyword."""
    return next((each.value for each in call.keywords if each.arg == name), None)


def is_true(call: ast.Call, name: str) -> bool:
    """Whether this keyword is given as True."""
    node = keyword(call, name)
    return isinstance(node, ast.Constant) and node.value is True
