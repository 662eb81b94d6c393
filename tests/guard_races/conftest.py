"""A world on each database, and several processes that begin one operation at the same moment."""

from __future__ import annotations

from tests.guard_crash.conftest import make_database, mariadb, world

__all__ = ["make_database", "mariadb", "world"]
