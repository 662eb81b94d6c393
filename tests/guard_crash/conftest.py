"""A world on each database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.guard.conftest import DIALECTS, make_database, mariadb
from tests.guard.stored import Stored
from tests.guard_crash.recorder import run_recorder
from tests.guard_crash.world import World

import semel

__all__ = ["make_database", "mariadb"]


@pytest.fixture(scope="module", params=DIALECTS)
def world(request: pytest.FixtureRequest, make_database: Callable[[str], Any]) -> Iterator[World]:
    yield from make_world(request.param, make_database)


def make_world(dialect: str, make_database: Callable[[str], Any]) -> Iterator[World]:
    where = make_database(dialect)
    target = where[0].url(where[1]) if dialect == "mysql" else str(where)
    looked = Stored.at(dialect, where)
    if dialect == "sqlite":
        looked.ask("PRAGMA journal_mode = WAL")
    looked.ask("CREATE TABLE effects (name varchar(200))")
    looked.close()
    once = semel.Once(target)
    with run_recorder() as (recorder, port):
        yield World(dialect, target, where, recorder, port, once)
    once.close()
