"""The limits that keep the code readable: small files, classes and functions, and no mutable module state."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "semel"
FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))

FILE_LINES = 400
CLASS_LINES = 200
FUNCTION_LINES = 40

MUTABLE_LITERALS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_CALLS = frozenset(
    {"list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict"}
)

every_file = pytest.mark.parametrize("name", FILES)


def parsed(name: str) -> ast.Module:
    return ast.parse((SOURCE / name).read_text("utf-8"))


def code_lines(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` or ``class`` to the end, without the docstring."""
    assert node.end_lineno is not None
    lines = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node) is not None:
        docstring = node.body[0]
        assert docstring.end_lineno is not None
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def mutable_state(body: list[ast.stmt]) -> Iterator[str]:
    """The names bound to something that can be changed, also within ``if`` and ``try``."""
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try)):
            yield from mutable_state([*statement.body, *statement.orelse])
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and is_mutable(statement.value):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (ast.unparse(target) for target in targets if ast.unparse(target) != "__all__")


def is_mutable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in MUTABLE_CALLS
    return isinstance(value, MUTABLE_LITERALS)


@every_file
def test_a_file_is_small(name: str) -> None:
    assert len((SOURCE / name).read_text("utf-8").splitlines()) <= FILE_LINES


@every_file
def test_classes_and_functions_are_small(name: str) -> None:
    too_long = []
    for node in ast.walk(parsed(name)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            limit = CLASS_LINES if isinstance(node, ast.ClassDef) else FUNCTION_LINES
            if code_lines(node) > limit:
                too_long.append(
                    f"{node.name} (line {node.lineno}): {code_lines(node)} lines, {limit} at most"
                )
    assert too_long == []


@every_file
def test_no_module_holds_mutable_state(name: str) -> None:
    assert list(mutable_state(parsed(name).body)) == []


@pytest.mark.parametrize(
    "code",
    [
        "seen = []",
        "seen: dict[str, int] = {}",
        "if True:\n    seen = set()",
        "seen = collections.deque(maxlen=3)",
    ],
)
def test_mutable_state_is_noticed(code: str) -> None:
    assert list(mutable_state(ast.parse(code).body)) == ["seen"]


@pytest.mark.parametrize(
    "code",
    [
        "__all__ = ['App']",
        "LIMITS = MappingProxyType({'lease': 60})",
        "NAMES = frozenset({'a'})",
        "PAIR = (1, 2)",
    ],
)
def test_what_cannot_change_is_let_through(code: str) -> None:
    assert list(mutable_state(ast.parse(code).body)) == []


def test_a_docstring_does_not_count() -> None:
    (function,) = ast.parse('def one():\n    """First.\n\n    Second.\n    """\n    return 1\n').body
    assert isinstance(function, ast.FunctionDef)
    assert code_lines(function) == 2
