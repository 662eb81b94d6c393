"""Steps are applied once, in order, by however many at once; and a schema tells who may run on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.errors import DivisionByZero

from semel.errors import ConfigurationError, SchemaMismatch
from semel.sql import SCHEMA_VERSION, Catalogue
from semel.store.connect import connect_async
from semel.store.jobs import Fence, claim, settle
from semel.store.migrate import (
    check_schema,
    load_steps,
    migrate_database,
    read_state,
    schema_state,
)
from semel.store.run import run, run_async
from semel.store.session import open_session

REAL = [step.key for step in load_steps()]
NEXT = SCHEMA_VERSION + 1
LAST = SCHEMA_VERSION + 2
SYNTHETIC = [(NEXT, "pre"), (NEXT, "post"), (LAST, "pre")]
FILES = {
    f"{NEXT:04}_notes.pre.sql": "ALTER TABLE {schema}.jobs ADD COLUMN note text;",
    f"{NEXT:04}_notes.post.sql": "ALTER TABLE {schema}.jobs DROP COLUMN last_error CASCADE;",
    f"{LAST:04}_words.pre.sql": """CREATE TABLE {schema}.words (word text);
                             INSERT INTO {schema}.words VALUES ('a%b; :c');""",
    "README.md": "not a step",
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The real versions, and two that follow them and were never released."""
    for step in load_steps():
        (tmp_path / f"{step.version:04}_{step.name}.{step.phase}.sql").write_text(step.raw)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def keys(steps: list) -> list[tuple[int, str]]:
    return [step.key for step in steps]


def test_all_steps_run_in_order_and_once(empty_database_url: str, directory: Path) -> None:
    wanted = REAL + SYNTHETIC
    dry = migrate_database(empty_database_url, dry_run=True, directory=directory)
    assert keys(dry) == wanted
    assert read_state(empty_database_url).applied is None
    assert keys(migrate_database(empty_database_url, directory=directory)) == wanted
    assert migrate_database(empty_database_url, directory=directory) == []
    assert read_state(empty_database_url).version == LAST
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT * FROM semel.words").fetchall() == [("a%b; :c",)]


@pytest.mark.parametrize("isolation", ["read committed", "serializable"])
def test_ten_at_once_apply_each_step_once(empty_database_url: str, directory: Path, isolation: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}'")
    with ThreadPoolExecutor(10) as pool:
        answers = list(
            pool.map(lambda _: migrate_database(empty_database_url, directory=directory), range(10))
        )
    applied = sorted(key for answer in answers for key in keys(answer))
    assert applied == sorted(REAL + SYNTHETIC)


def test_ten_at_once_make_each_day_of_the_history_once(database_url: str) -> None:
    def make(_: int) -> int:
        with psycopg.connect(database_url, autocommit=True) as connection:
            made = connection.execute(
                "SELECT count(*) FILTER (WHERE semel.make_history_day(current_date + day)) "
                "FROM generate_series(10, 30) AS day"
            ).fetchone()
            assert made is not None
            return int(made[0])

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(make, range(10))) == 21


def test_two_schemas_in_one_database(empty_database_url: str) -> None:
    migrate_database(empty_database_url, schema="one")
    migrate_database(empty_database_url, schema="two")
    for schema in ("one", "two"):
        check_schema(read_state(empty_database_url, schema=schema))
    with pytest.raises(SchemaMismatch, match=r"There is no table semel\.migrations"):
        check_schema(read_state(empty_database_url))


def test_a_missing_schema_says_which_command_makes_it(empty_database_url: str) -> None:
    with pytest.raises(SchemaMismatch, match="Run: semel migrate"):
        check_schema(read_state(empty_database_url))


def test_a_schema_without_a_step_that_the_code_needs_is_too_old(
    empty_database_url: str, directory: Path
) -> None:
    migrate_database(empty_database_url)
    check_schema(read_state(empty_database_url))
    with pytest.raises(SchemaMismatch, match=rf"too old: step {NEXT:04} notes \(pre\).*Run: semel migrate"):
        check_schema(read_state(empty_database_url), steps=load_steps(directory), version=NEXT)


def test_an_old_worker_runs_on_a_schema_with_newer_pre_steps(
    empty_database_url: str, directory: Path
) -> None:
    migrate_database(empty_database_url, step="pre", directory=directory)
    state = read_state(empty_database_url)
    assert state.version == LAST
    check_schema(state)
    with open_session(empty_database_url) as session:
        session.connection.execute("INSERT INTO semel.jobs (kind) VALUES ('old')")
        claims = run(claim(worker=1, limit=5, lease=timedelta(60), max_crashes=3, queues=None), session)
        (job,) = claims.taken
        fence = Fence(job.id, job.claim, job.worker)
        assert run(settle([fence], [], remember=timedelta(1)), session) == {(job.id, job.claim)}


def test_old_code_must_not_run_where_a_newer_post_step_ran(empty_database_url: str, directory: Path) -> None:
    migrate_database(empty_database_url, directory=directory)
    with pytest.raises(SchemaMismatch, match=r"too new.*pip install -U semel"):
        check_schema(read_state(empty_database_url))
    check_schema(read_state(empty_database_url), steps=load_steps(directory), version=LAST)


def test_a_post_step_waits_for_its_pre_step(empty_database_url: str, directory: Path) -> None:
    migrate_database(empty_database_url)
    with pytest.raises(SchemaMismatch, match=rf"Step {NEXT:04} notes \(pre\) has not been applied"):
        migrate_database(empty_database_url, step="post", directory=directory)
    assert keys(migrate_database(empty_database_url, step="pre", directory=directory)) == [
        (NEXT, "pre"),
        (LAST, "pre"),
    ]
    assert keys(migrate_database(empty_database_url, step="post", directory=directory)) == [(NEXT, "post")]


def test_a_step_that_fails_leaves_nothing_of_itself(empty_database_url: str, directory: Path) -> None:
    broken = directory / f"{LAST:04}_words.pre.sql"
    good = broken.read_text()
    broken.write_text(good + " SELECT 1 / 0;")
    with pytest.raises(DivisionByZero):
        migrate_database(empty_database_url, directory=directory)
    assert read_state(empty_database_url).version == NEXT
    broken.write_text(good)
    assert keys(migrate_database(empty_database_url, directory=directory)) == [(LAST, "pre")]


def test_a_role_that_may_not_create_is_told_so(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        role = f"nobody_{connection.info.dbname}"
        connection.execute(f"CREATE ROLE {role}")
        try:
            url = make_conninfo(empty_database_url, options=f"-c role={role}")
            with pytest.raises(ConfigurationError, match="does not let this role apply 0001 queue"):
                migrate_database(url)
        finally:
            connection.execute(f"DROP ROLE {role}")


def test_two_files_of_one_number_are_refused(directory: Path) -> None:
    (directory / f"{NEXT:04}_other.pre.sql").write_text("SELECT 1;")
    with pytest.raises(ConfigurationError, match="same number"):
        load_steps(directory)


def test_an_async_worker_reads_the_same_state(create_database: Callable[[], str]) -> None:
    url = create_database()

    async def look() -> object:
        session = await connect_async(url, Catalogue("semel"))
        try:
            return await run_async(schema_state(), session)
        finally:
            await session.connection.close()

    assert asyncio.run(look()) == read_state(url)
