"""From a folder to its jobs: files are read one by one; those that cannot be read are left out."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from semel.errors import ConfigurationError
from semel.replay.finding.candidate import Candidate
from semel.replay.finding.modules import Module, Project
from semel.replay.finding.python import functions_of, jobs_of
from semel.replay.finding.ruby import ruby_jobs

_LEFT_OUT: Final = frozenset(
    {
        "node_modules",
        "site-packages",
        "__pycache__",
        "venv",
        "env",
        "build",
        "dist",
        "vendor",
        "tests",
        "test",
        "spec",
    }
)
_LARGEST: Final = 1_000_000
"""Bytes; a larger file was made by a program."""


def find_jobs(path: Path) -> list[Candidate]:
    """Every job in this folder or file, by files and lines. Raises `ConfigurationError` where it is not there."""
    files, root = _files_in(path), code_folder(path)
    found = list(jobs_of(_project(files, root)))
    for file in files:
        if file.suffix == ".rb":
            found += ruby_jobs(file.read_text("utf-8", errors="replace"), str(file.relative_to(root)), root)
    return found


def find_functions(path: Path, name: str) -> list[Candidate]:
    """Functions of Python that have this name, or one that ends so, whatever they are."""
    return list(functions_of(_project(_files_in(path), code_folder(path)), name))


def code_folder(path: Path) -> Path:
    """The folder that its modules are imported from."""
    given = path.resolve()
    root = given if given.is_dir() else given.parent
    while (root / "__init__.py").exists():  # a package is imported from the folder above
        root = root.parent
    return root


def _files_in(path: Path) -> list[Path]:
    if not path.exists():
        raise ConfigurationError(
            f"There is no {path}.", remedy="Name a folder or a file with the job's code."
        )
    given = path.resolve()
    return sorted(_files(given)) if given.is_dir() else [given]


def _project(files: list[Path], root: Path) -> Project:
    return Project([module for file in files if file.suffix == ".py" for module in _parsed(file, root)])


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir():
            if path.name not in _LEFT_OUT and not (path / "pyvenv.cfg").exists():
                yield from _files(path)
        elif path.suffix in (".py", ".rb") and path.stat().st_size <= _LARGEST:
            yield path


def _parsed(file: Path, root: Path) -> Iterator[Module]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of somebody else's code
            tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return
    yield Module(_dotted(file, root), str(file.relative_to(root)), tree)


def _dotted(file: Path, root: Path) -> str:
    """The module's name as its own code imports it: from the first folder upwards that is no package."""
    parts = list(file.relative_to(root).with_suffix("").parts)
    while (
        len(parts) > 1
        and parts[0] in ("src", "lib", "app")
        and not (root / parts[0] / "__init__.py").exists()
    ):
        root, parts = root / parts[0], parts[1:]
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)
