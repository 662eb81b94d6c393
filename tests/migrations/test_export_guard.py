"""The guard's tables alone, on each database: each exported file is run as its tool runs it, up and down."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.guard.conftest import mariadb as mariadb  # a fixture
from tests.guard.mariadb import MariaDB
from tests.migrations.test_export import ENVIRONMENT, environment, goose_statements, heredocs, psql

import semel
from semel.errors import ConfigurationError
from semel.store.export import export_guard
from semel.store.migrate import migrate_database

EXPECTED = {
    "postgresql": {"operations", "operation_events"},
    "mysql": {"semel_operations", "semel_operation_events"},
    "sqlite": {"semel_operations", "semel_operation_events"},
}


@dataclass(frozen=True)
class Place:
    """An empty database of one dialect, and the ways that tools go to it."""

    dialect: str
    target: str
    """For the guard."""
    sqlalchemy: str
    django: dict[str, Any]
    run: Callable[[str], None]
    """Runs a script, as a person would."""
    connect: Callable[[], Any]

    def ask(self, statement: str) -> set[str]:
        connection = self.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return {str(row[0]) for row in cursor.fetchall()} if cursor.description else set()
        finally:
            connection.close()

    def tables(self) -> set[str]:
        listing = {
            "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = 'semel'",
            "mysql": "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
            "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
        }
        return {name for name in self.ask(listing[self.dialect]) if "operation" in name}

    def assert_works(self) -> None:
        assert self.tables() == EXPECTED[self.dialect]
        acted = []
        once = semel.Once(self.target)

        @once.operation("charge", key="order", acting="explicit")
        def charge(op: semel.Operation, order: int) -> str:
            with op.acting():
                acted.append(order)
            return op.done("ch_1")

        assert [charge(7), charge(7)] == ["ch_1", "ch_1"]
        assert acted == [7]
        once.close()

    def assert_empty(self) -> None:
        assert self.tables() == set()


def _postgresql(request: pytest.FixtureRequest, directory: Path) -> Place:
    url = request.getfixturevalue("empty_database_url")
    parts = conninfo_to_dict(url)
    host = f"host={parts['host']}" + (f"&port={parts['port']}" if "port" in parts else "")
    return Place(
        "postgresql",
        url,
        f"postgresql+psycopg://{parts.get('user', 'postgres')}@/{parts['dbname']}?{host}",
        {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts["dbname"],
            "USER": parts.get("user", "postgres"),
            "HOST": parts["host"],
            "PORT": str(parts.get("port", "")),
        },
        lambda script: psql(url, script),
        lambda: psycopg.connect(url, autocommit=True),
    )


def _mysql(request: pytest.FixtureRequest, directory: Path) -> Place:
    server: MariaDB = request.getfixturevalue("mariadb")
    name = server.create_database()
    request.addfinalizer(lambda: server.drop_database(name))
    client = shutil.which("mariadb") or "mysql"

    def run(script: str) -> None:
        command = [client, "--no-defaults", f"--socket={server.socket}", "--user=root", name]
        subprocess.run(command, input=script, text=True, check=True, capture_output=True)

    url = server.url(name)
    return Place(
        "mysql",
        url,
        url.replace("mysql://", "mysql+pymysql://"),
        {
            "ENGINE": "django.db.backends.mysql",
            "NAME": name,
            "USER": "root",
            "OPTIONS": {"unix_socket": str(server.socket)},
        },
        run,
        lambda: server.connect(name, autocommit=True),
    )


def _sqlite(request: pytest.FixtureRequest, directory: Path) -> Place:
    path = directory / "guard.db"

    def run(script: str) -> None:
        connection = sqlite3.connect(path)
        connection.executescript(script)
        connection.close()

    return Place(
        "sqlite",
        str(path),
        f"sqlite:///{path}",
        {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)},
        run,
        lambda: sqlite3.connect(path, isolation_level=None),
    )


@pytest.fixture(params=["postgresql", "mysql", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty database of each dialect in its turn."""
    return {"postgresql": _postgresql, "mysql": _mysql, "sqlite": _sqlite}[request.param](request, tmp_path)


def test_sql(place: Place) -> None:
    place.run(export_guard("sql", place.dialect))
    place.assert_works()
    place.run(export_guard("sql", place.dialect, down=True))
    place.assert_empty()


def test_alembic(place: Place, tmp_path: Path) -> None:
    from alembic import command
    from alembic.config import Config

    (tmp_path / "versions").mkdir()
    (tmp_path / "env.py").write_text(ENVIRONMENT)
    (tmp_path / "versions" / "0001_guard.py").write_text(export_guard("alembic", place.dialect))
    config = Config()
    config.set_main_option("script_location", str(tmp_path))
    config.set_main_option("sqlalchemy.url", place.sqlalchemy)
    command.upgrade(config, "head")
    place.assert_works()
    command.downgrade(config, "base")
    place.assert_empty()


def test_django(place: Place, tmp_path: Path) -> None:
    migrations = tmp_path / "shop" / "migrations"
    migrations.mkdir(parents=True)
    (tmp_path / "shop" / "__init__.py").touch()
    (migrations / "__init__.py").touch()
    (migrations / "0001_guard.py").write_text(export_guard("django", place.dialect))
    mysql = "import pymysql\npymysql.install_as_MySQLdb()\n" if place.dialect == "mysql" else ""
    settings = f"{mysql}DATABASES = {{'default': {place.django!r}}}\nINSTALLED_APPS = ['shop']\n"
    (tmp_path / "settings.py").write_text(settings)

    def django(*words: str) -> None:
        command = ["python", "-m", "django", *words, "--settings=settings", "--pythonpath=."]
        subprocess.run(command, cwd=tmp_path, env=environment(), check=True, capture_output=True, text=True)

    django("migrate")
    place.assert_works()
    django("migrate", "shop", "zero")
    place.assert_empty()


@pytest.mark.parametrize(
    ("tool", "take", "up", "down"),
    [("goose", goose_statements, "Up", "Down"), ("rails", heredocs, "up", "down")],
    ids=["goose", "rails"],
)
def test_one_by_one(place: Place, tool: str, take: Callable[..., list[str]], up: str, down: str) -> None:
    text = export_guard(tool, place.dialect)
    for statement in take(text, up):
        place.ask(statement)
    place.assert_works()
    for statement in take(text, down):
        place.ask(statement)
    place.assert_empty()


def test_the_queue_can_follow_the_guard(empty_database_url: str) -> None:
    psql(empty_database_url, export_guard("sql"))
    steps = migrate_database(empty_database_url)
    assert [step.version for step in steps] == [1, 2, 3, 4]


def test_what_cannot_be_exported_is_said() -> None:
    with pytest.raises(ConfigurationError, match="'flyway' is not a format"):
        export_guard("flyway")
    with pytest.raises(
        ConfigurationError, match="'oracle' is not a database that the guard keeps records in"
    ):
        export_guard("sql", "oracle")
