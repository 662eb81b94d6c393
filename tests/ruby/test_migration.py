"""The exported migration of the guard, run by the migrator of Rails."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.guard.conftest import mariadb as mariadb  # a fixture
from tests.ruby.test_specs import run_specs

from semel.store.export import export_guard


@pytest.mark.parametrize("dialect", ["postgresql", "mysql", "sqlite"])
def test_rails_runs_it(dialect: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "migrate").mkdir()
    script = tmp_path / "migrate" / "20240310120000_semel_schema_guard.rb"
    script.write_text(export_guard("rails", dialect), "utf-8")
    url = f"sqlite3:///{tmp_path / 'empty.db'}"
    if dialect == "postgresql":
        url = request.getfixturevalue("empty_database_url")
    if dialect == "mysql":
        server = request.getfixturevalue("mariadb")
        name = server.create_database()
        request.addfinalizer(lambda: server.drop_database(name))
        url = server.url(name)
    printed = run_specs(
        ["spec/rails"], {"SEMEL_SPEC_EMPTY": url, "SEMEL_SPEC_MIGRATIONS": str(script.parent)}
    )
    assert "1 example, 0 failures" in printed
