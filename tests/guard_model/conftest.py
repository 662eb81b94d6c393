"""The guard's databases, for the state machine."""

from __future__ import annotations

from tests.guard.conftest import make_database, mariadb

__all__ = ["make_database", "mariadb"]
