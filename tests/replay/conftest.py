"""Databases and folders that replays run in."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.guard.conftest import make_database, mariadb

from semel.store.guard_tables import create_tables

__all__ = ["make_database", "mariadb"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of the test's own, with no project around it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sqlite(folder: Path) -> Path:
    """A SQLite file with the guard's tables."""
    path = folder / "guard.db"
    create_tables(path)
    return path
