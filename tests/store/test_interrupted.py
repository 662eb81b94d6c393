"""A statement that is interrupted from outside, between its sending and its answer: nobody is given that answer later."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest
from tests.guard.conftest import make_database, mariadb

from semel.store.measures import has_unique_key
from semel.store.own_connections import open_own
from semel.store.run import run

__all__ = ["make_database", "mariadb"]


class SoftLimit(Exception):
    """As Celery's, which is raised wherever the task is."""


@pytest.fixture(params=[KeyboardInterrupt, SoftLimit])
def interrupting(request: pytest.FixtureRequest) -> Iterator[type[BaseException]]:
    def interrupt(*_: object) -> None:
        raise request.param

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield request.param
    signal.signal(signal.SIGUSR1, before)


def test_the_next_statement_has_its_own_answer(
    make_database: Callable[[str], Any], interrupting: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, name = make_database("mysql")
    own = open_own(server.url(name))
    connection = pymysql.connections.Connection
    real = connection._write_bytes

    def then_interrupted(self: Any, data: bytes) -> None:
        real(self, data)
        monkeypatch.setattr(connection, "_write_bytes", real)
        signal.raise_signal(signal.SIGUSR1)

    with own.session() as session:
        monkeypatch.setattr(connection, "_write_bytes", then_interrupted)
        with pytest.raises(interrupting):
            session.run_text("UPDATE semel_operations SET claim = claim WHERE id = -1")
    with own.session() as session:
        assert run(has_unique_key(), session) is True
    own.close()
