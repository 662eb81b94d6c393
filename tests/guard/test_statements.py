"""The folder of statements: the same names in every dialect, and texts that every driver and language takes."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

import pytest
from tests.guard.conftest import make_request
from tests.guard.mariadb import MariaDB

from semel.errors import ConfigurationError, SchemaMismatch
from semel.sql import Catalogue
from semel.store.guard_begin import read
from semel.store.guard_tables import DIALECTS, create_statements, create_tables, drop_statements
from semel.store.own_connections import open_own
from semel.store.run import run

FOLDER = resources.files("semel.sql") / "guard"
SHARED = (
    *("act", "claim", "complete", "complete_late", "complete_row", "event", "extend", "hold", "hold_mine"),
    *(
        "insert",
        "insert_row",
        "look_later",
        "miss",
        "read",
        "read_locked",
        "read_only",
        "read_payload",
        "release",
        "renew",
    ),
    *("take_over", "take_over_to_look", "uncertain"),
)
FILES = [
    (dialect, each.name.removesuffix(".sql"))
    for dialect in DIALECTS
    for each in (FOLDER / dialect).iterdir()
    if each.name != "tables.sql"
]


def raw(dialect: str, name: str) -> str:
    return (FOLDER / dialect / f"{name}.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_every_statement(dialect: str) -> None:
    names = {name for each, name in FILES if each == dialect}
    assert set(SHARED) <= names


@pytest.mark.parametrize(("dialect", "name"), FILES)
def test_a_text_is_taken_by_every_driver(dialect: str, name: str) -> None:
    text = raw(dialect, name)
    assert "%" not in text
    assert "::" not in text
    assert text.startswith("-- "), "a head comment says who calls it and what it locks"
    assert "Caller:" in text
    assert "INSERT IGNORE" not in text


@pytest.mark.parametrize(("dialect", "name"), FILES)
def test_every_parameter_is_cast(dialect: str, name: str) -> None:
    bare = Catalogue("semel", dialect).text(f"guard/{name}", mark="semel_x").bare
    for found in re.finditer(r":[a-z_]+", bare.partition("*/")[2]):
        before = bare[: bare.index("*/") + 2 + found.start()]
        assert before.rstrip().endswith(("CAST(", "CONVERT(")), (name, found.group())


@pytest.mark.parametrize("name", SHARED)
def test_dialects_take_the_same_parameters(name: str) -> None:
    """PostgreSQL alone asks whether a claim of a `Row()` is in a savepoint."""
    parameters = {
        dialect: set(Catalogue("semel", dialect).text(f"guard/{name}").numbered[1]) - {"in_savepoint"}
        for dialect in DIALECTS
    }
    assert parameters["postgresql"] == parameters["mysql"] == parameters["sqlite"]


@pytest.fixture(params=DIALECTS)
def empty(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """A target without the guard's tables."""
    if request.param == "postgresql":
        yield request.getfixturevalue("empty_database_url")
    elif request.param == "mysql":
        server: MariaDB = request.getfixturevalue("mariadb")
        name = server.create_database()
        yield server.url(name)
        server.drop_database(name)
    else:
        yield str(tmp_path / "empty.db")


def test_tables_are_made_once_and_removed(empty: Any) -> None:
    own = open_own(empty)
    request = make_request(own.dialect)
    for _ in range(2):
        with own.session() as session, pytest.raises(SchemaMismatch):
            run(read(request), session)
        create_tables(empty)
        create_tables(empty)
        with own.session() as session:
            assert run(read(request), session) is None
            for statement in drop_statements(own.dialect):
                session.run_text(statement)
    own.close()


def test_an_unknown_dialect_is_refused() -> None:
    for function in (create_statements, drop_statements):
        with pytest.raises(ConfigurationError):
            function("oracle")
