"""What a loop that receives messages says of its queue and of their bodies."""

from __future__ import annotations

import ast
from typing import Final

from semel.replay.finding.effects import calls_of
from semel.replay.finding.modules import Function, Module, Project, constant, keyword

_OF_SQS: Final = frozenset(
    {
        "Messages",
        "Body",
        "ReceiptHandle",
        "MessageId",
        "MD5OfBody",
        "Attributes",
        "MessageAttributes",
        "QueueUrl",
    }
)


def queue_of(module: Module, call: ast.Call) -> str:
    """The queue's address, where it is written in the code or read from the environment."""
    given = constant(call, "QueueUrl")
    node = keyword(call, "QueueUrl")
    if given is None and isinstance(node, ast.Name):
        node = next((value for name, value in _assigned(module) if name == node.id), node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            given = node.value
    if given is not None:
        return given
    variable = _variable(module, node)
    return f"${{{variable}}}" if variable else "TODO: the address of a queue on staging"


def fields_of(project: Project, module: Module, function: Function) -> tuple[str, ...]:
    """Texts by which the loop, and what it calls in the project, read their messages' bodies."""
    found = dict.fromkeys(_read_by(function))
    for _, name in calls_of(module, function):
        own = project.function(name) if name else None
        if own is not None:
            found |= dict.fromkeys(_read_by(own[1]))
    return tuple(found)


def _read_by(function: Function) -> list[str]:
    found = []
    for node in ast.walk(function):
        name: ast.expr | None = None
        if isinstance(node, ast.Subscript):
            name = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            name = node.args[0] if node.args else None
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and _is_field(name.value):
            found.append((name.lineno, name.col_offset, name.value))
    return [name for _, _, name in sorted(found)]


def _is_field(name: str) -> bool:
    return name not in _OF_SQS and name.isidentifier() and not name.isupper()


def _assigned(module: Module) -> list[tuple[str, ast.expr]]:
    return [
        (target.id, node.value)
        for node in module.tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def _variable(module: Module, node: ast.expr | None) -> str | None:
    """The variable of ``os.environ["NAME"]`` and its like."""
    if isinstance(node, ast.Subscript) and module.meaning(node.value) == "os.environ":
        inner: ast.expr | None = node.slice
    elif isinstance(node, ast.Call) and module.meaning(node.func) in ("os.getenv", "os.environ.get"):
        inner = node.args[0] if node.args else None
    else:
        return None
    return inner.value if isinstance(inner, ast.Constant) and isinstance(inner.value, str) else None
