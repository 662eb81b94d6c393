"""Operations in every state, on each of the guard's databases, made by the guard's own statements."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import bare, clean_environment, process
from tests.guard.conftest import mariadb
from tests.guard.mariadb import MariaDB

from semel.core.effects import Effect, Hold
from semel.core.operation_report import OperationRecord
from semel.guard.declaration import make_reference, to_message
from semel.store.guard_begin import begin_known, begin_new
from semel.store.guard_end import complete, release
from semel.store.guard_request import Request
from semel.store.guard_tables import create_tables
from semel.store.guard_views import find_operation
from semel.store.own_connections import OwnSessions, open_own
from semel.store.run import run

__all__ = ["bare", "clean_environment", "mariadb", "process"]

DIALECTS = ("postgresql", "mysql", "sqlite")
_TABLES = {"postgresql": "semel.operation", "mysql": "semel_operation", "sqlite": "semel_operation"}
_EARLIER = {
    "postgresql": "{column} - make_interval(secs => {seconds})",
    "mysql": "{column} - INTERVAL {seconds} SECOND",
    "sqlite": "{column} - {seconds}",
}
ME = "ann@desk"
STATES = ("claimed", "stale", "held", "released", "unclaimed", "completed")
numbers = itertools.count(1)


@dataclass(frozen=True)
class Inbox:
    """Operations on one database."""

    url: str
    own: OwnSessions

    @property
    def dialect(self) -> str:
        return self.own.dialect

    def run(self, operation: Any) -> Any:
        with self.own.session() as session:
            return run(operation, session)

    def act(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        with self.own.session() as session:
            return function(session, *args, **options)

    def request(
        self, *, message: str | None = "default", effect: Effect | None = None, **more: Any
    ) -> Request:
        kept = to_message("elsewhere", id="m-1") if message == "default" else message
        return Request(
            **{
                "scope": "",
                "job_type": "charge",
                "key": secrets.token_hex(32),
                "token": secrets.token_hex(16),
                "reference": make_reference(),
                "effect": effect or Hold(),
                "lease": timedelta(seconds=60),
                "longest_run": timedelta(seconds=10),
                "label": f"order-{next(numbers)}",
                "message": kept,
                "dialect": self.dialect,
            }
            | more
        )

    def make(self, state: str, **options: Any) -> tuple[int, Request]:
        """An operation in a state; its id, and the request of the attempt that had it."""
        request = self.request(**options)
        assert self.run(begin_new(request)) is not None
        made = self.id_of(request)
        if state in ("stale", "held"):
            self.shift(made, "lease_until", 760)
        if state == "held":
            self.run(begin_known(self.again(request)))
        elif state in ("released", "unclaimed"):
            self.run(release(request, error="declined"))
        elif state == "completed":
            assert self.run(complete(request, result='"ch_1"', result_dropped=False))
        if state == "unclaimed":
            self.shift(made, "changed_at", 700)
        return made, request

    def again(self, request: Request) -> Request:
        """A further delivery of the same."""
        from dataclasses import replace

        return replace(request, token=secrets.token_hex(16), lease=timedelta(seconds=60))

    def id_of(self, request: Request) -> int:
        from semel.core.operation_report import OperationFilter
        from semel.store.guard_views import list_operations

        page = self.run(list_operations(OperationFilter(key=request.key)))
        return int(page.operations[0].id)

    def find(self, operation_id: int) -> OperationRecord | None:
        found: OperationRecord | None = self.run(find_operation(operation_id))
        return found

    def get(self, operation_id: int) -> OperationRecord:
        found = self.find(operation_id)
        assert found is not None
        return found

    def events(self, operation_id: int) -> list[tuple[str, str | None, str | None]]:
        return [(event.event, event.who, event.why) for event in self.get(operation_id).events]

    def shift(self, operation_id: int, column: str, seconds: int, table: str = "operations") -> None:
        """Make a time so much earlier."""
        name = _TABLES[self.dialect] + ("s" if table == "operations" else "_events")
        which = "id" if table == "operations" else "operation_id"
        earlier = _EARLIER[self.dialect].format(column=column, seconds=seconds)
        self.text(f"UPDATE {name} SET {column} = {earlier} WHERE {which} = {operation_id}")

    def text(self, statement: str) -> None:
        with self.own.session() as session, session.transaction():
            session.run_text(statement)


@pytest.fixture(params=DIALECTS)
def inbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Inbox]:
    """An empty inbox, on each database."""
    dialect = request.param
    if dialect == "postgresql":
        url = request.getfixturevalue("database_url")
    elif dialect == "sqlite":
        url = f"sqlite:///{tmp_path}/guard.db"
        create_tables(url)
    else:
        url = request.getfixturevalue("mysql_url")
        create_tables(url)
    own = open_own(url)
    yield Inbox(url, own)
    own.close()


@pytest.fixture
def beside(database_url: str) -> Iterator[Inbox]:
    """An inbox on PostgreSQL, with the queue beside it."""
    own = open_own(database_url)
    yield Inbox(database_url, own)
    own.close()


@pytest.fixture
def mysql_url(mariadb: MariaDB) -> Iterator[str]:
    """A database of this test's own on the run's MariaDB."""
    name = mariadb.create_database()
    yield mariadb.url(name)
    mariadb.drop_database(name)
