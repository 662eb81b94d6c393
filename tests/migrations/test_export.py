"""Each exported file is run as its tool runs it, up and down; a job then goes through plain SQL."""

from __future__ import annotations

import io
import re
import subprocess
import textwrap
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from semel.errors import ConfigurationError
from semel.sql.script import split
from semel.store.export import export
from semel.store.migrate import check_schema, migrate_database, read_state

SCHEMAS = ["semel", "jobs_of_50_percent"]
CLAIM = (
    "UPDATE {s}.jobs SET status = 'running' WHERE id = (SELECT id FROM {s}.jobs WHERE status = 'pending' "
    "AND run_at <= now() LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
)


def psql(url: str, script: str) -> None:
    """Run a script as a person would; psql takes it apart by itself."""
    subprocess.run(
        ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", f"--dbname={url}"],
        input=script,
        text=True,
        check=True,
        capture_output=True,
    )


def assert_works(url: str, schema: str) -> None:
    """The schema is what `semel migrate` makes, and a job goes through it by plain SQL."""
    check_schema(read_state(url, schema=schema))
    assert migrate_database(url, schema=schema) == []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"""INSERT INTO {schema}.jobs (kind, payload) VALUES ('mail', '{{"to": "a%b:c"}}')"""
        )
        assert connection.execute(CLAIM.format(s=schema)).fetchone() is not None
        connection.execute(f"UPDATE {schema}.jobs SET status = 'done'")
        rows = connection.execute(
            f"SELECT status, payload, finished_at IS NULL FROM {schema}.jobs"
        ).fetchall()
        assert rows == [("done", {"to": "a%b:c"}, False)]
        with pytest.raises(psycopg.errors.CheckViolation, match="cannot go from done to running"):
            connection.execute(f"UPDATE {schema}.jobs SET status = 'running'")
        connection.execute(f"CREATE TABLE {schema}.jobs_done_20200101 (LIKE {schema}.jobs_done)")


def assert_empty(url: str, schema: str) -> None:
    with psycopg.connect(url) as connection:
        left = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = %(s)s::regnamespace UNION ALL "
            "SELECT proname FROM pg_proc WHERE pronamespace = %(s)s::regnamespace",
            {"s": schema},
        ).fetchall()
    assert left == []
    assert migrate_database(url, schema=schema) != []


@pytest.mark.parametrize("schema", SCHEMAS)
def test_sql(empty_database_url: str, schema: str) -> None:
    psql(empty_database_url, export("sql", schema))
    assert_works(empty_database_url, schema)
    psql(empty_database_url, export("sql", schema, down=True))
    assert_empty(empty_database_url, schema)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "asyncpg"])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_alembic(empty_database_url: str, tmp_path: Path, driver: str, schema: str) -> None:
    run_alembic(empty_database_url, tmp_path, driver, export("alembic", schema), "upgrade", "head")
    assert_works(empty_database_url, schema)
    run_alembic(empty_database_url, tmp_path, driver, export("alembic", schema), "downgrade", "base")
    assert_empty(empty_database_url, schema)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "asyncpg"])
def test_alembic_offline(empty_database_url: str, tmp_path: Path, driver: str) -> None:
    text = export("alembic")
    up = run_alembic(empty_database_url, tmp_path, driver, text, "upgrade", "head", offline=True)
    psql(empty_database_url, up)
    assert_works(empty_database_url, "semel")


ENVIRONMENT = """
from alembic import context
from sqlalchemy import create_engine, make_url
from sqlalchemy.ext.asyncio import create_async_engine
import asyncio

url = context.config.get_main_option("sqlalchemy.url")

def go(connection):
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()

async def go_async():
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        await connection.run_sync(go)
        await connection.commit()
    await engine.dispose()

if context.is_offline_mode():
    context.configure(url=url, literal_binds=True)
    with context.begin_transaction():
        context.run_migrations()
elif "asyncpg" in url:
    asyncio.run(go_async())
else:
    with create_engine(url).connect() as connection:
        go(connection)
"""


def run_alembic(
    url: str, directory: Path, driver: str, text: str, verb: str, revision: str, *, offline: bool = False
) -> str:
    """Run one revision with alembic's own commands; offline answers the SQL that it prints."""
    from alembic import command
    from alembic.config import Config

    (directory / "versions").mkdir(exist_ok=True)
    (directory / "env.py").write_text(ENVIRONMENT)
    (directory / "versions" / "0001_semel.py").write_text(text)
    parts = conninfo_to_dict(url)
    host = f"host={parts['host']}" + (f"&port={parts['port']}" if "port" in parts else "")
    printed = io.StringIO()
    config = Config(output_buffer=printed)
    config.set_main_option("script_location", str(directory))
    user = parts.get("user", "postgres")
    config.set_main_option("sqlalchemy.url", f"postgresql+{driver}://{user}@/{parts['dbname']}?{host}")
    getattr(command, verb)(config, revision, sql=offline)
    return printed.getvalue()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_django(empty_database_url: str, tmp_path: Path, schema: str) -> None:
    """In a process of its own: Django's settings can be made only once in one."""
    app = tmp_path / "shop"
    (app / "migrations").mkdir(parents=True)
    (app / "__init__.py").touch()
    (app / "migrations" / "__init__.py").touch()
    (app / "migrations" / "0001_semel.py").write_text(export("django", schema))
    parts = conninfo_to_dict(empty_database_url)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts.get("user", "postgres"),
        "HOST": parts["host"],
        "PORT": parts.get("port", ""),
    }
    (tmp_path / "settings.py").write_text(
        f"DATABASES = {{'default': {database!r}}}\nINSTALLED_APPS = ['shop']\n"
    )

    def django(*words: str) -> str:
        return subprocess.run(
            ["python", "-m", "django", *words, "--settings=settings", "--pythonpath=."],
            cwd=tmp_path,
            env=environment(),
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    printed = django("sqlmigrate", "shop", "0001")
    django("migrate")
    assert_works(empty_database_url, schema)
    django("migrate", "shop", "zero")
    assert_empty(empty_database_url, schema)
    assert "$function$" in printed
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
    psql(empty_database_url, printed)
    assert_works(empty_database_url, schema)


def environment() -> dict[str, str]:
    import os
    import sys

    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def goose_statements(text: str, direction: str) -> list[str]:
    """As goose's parser: a block is one statement, and outside one a line that ends with ';' ends it."""
    statements, lines, active, block = [], [], False, False
    for line in text.splitlines():
        mark = re.fullmatch(r"-- \+goose (\w+)", line)
        if mark is None:
            if active and (block or not line.startswith("--")) and (block or line.strip()):
                lines.append(line)
            if active and not block and line.rstrip().endswith(";"):
                statements.append("\n".join(lines))
                lines = []
            continue
        if mark[1] in ("Up", "Down"):
            active = mark[1] == direction
        elif active and mark[1] == "StatementBegin":
            block = True
        elif active and mark[1] == "StatementEnd":
            block = False
            statements.append("\n".join(lines))
            lines = []
    assert not lines
    return statements


def heredocs(text: str, method: str) -> list[str]:
    """What Rails would execute: the <<~ documents of one method, their common margin taken off."""
    body = re.search(rf"^  def {method}\n(.*?)^  end$", text, re.DOTALL | re.MULTILINE)
    assert body is not None
    found = re.findall(r"^    execute <<~'SQL'\n(.*?)^    SQL$", body[1], re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(one) for one in found]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize(
    ("tool", "take", "up", "down"),
    [("goose", goose_statements, "Up", "Down"), ("rails", heredocs, "up", "down")],
    ids=["goose", "rails"],
)
def test_one_by_one(empty_database_url: str, schema: str, tool: str, take, up: str, down: str) -> None:
    text = export(tool, schema)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        for statement in take(text, up):
            connection.execute(statement, prepare=True)  # a prepared one is refused if it is two
        assert_works(empty_database_url, schema)
        for statement in take(text, down):
            connection.execute(statement, prepare=True)
    assert_empty(empty_database_url, schema)


@pytest.mark.parametrize("tool", ["sql", "alembic", "django", "goose", "rails"])
def test_a_file_goes_on_from_a_version(tmp_path: Path, tool: str) -> None:
    (tmp_path / "0001_a.pre.sql").write_text("SELECT 1;")
    (tmp_path / "0002_b.pre.sql").write_text("SELECT 'second';")
    text = export(tool, since=1, directory=tmp_path)
    assert "SELECT 'second'" in text
    assert "SELECT 1" not in text
    assert "DROP TABLE" not in text
    if tool in ("alembic", "django"):
        compile(text, tool, "exec")


def test_what_cannot_be_exported_is_said() -> None:
    with pytest.raises(ConfigurationError, match="'flyway' is not a format"):
        export("flyway")
    with pytest.raises(ConfigurationError, match="no schema version after 99"):
        export("sql", since=99)
    with pytest.raises(ConfigurationError, match="not a usable name"):
        export("sql", 'x"; DROP TABLE users; --')


def test_the_splitter_knows_strings_comments_and_bodies() -> None:
    script = """-- a; b
    SELECT 'it''s; ok', "odd;name" /* c; d */;
    CREATE FUNCTION f() AS $x$ BEGIN; $y$ ; $y$ END; $x$;;
    -- trailing; comment
    """
    assert [re.sub(r"\s+", " ", one) for one in split(script)] == [
        """-- a; b SELECT 'it''s; ok', "odd;name" /* c; d */""",
        "CREATE FUNCTION f() AS $x$ BEGIN; $y$ ; $y$ END; $x$",
    ]
