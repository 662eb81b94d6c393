"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest
from tests.servers import SharedServer

APPLICATION = """
import psycopg, pytest
from semel import App

app = App()

@app.job
def charge(order: int) -> str:
    return f"charged {order}"
"""


@pytest.fixture
def on_server(shared_server: SharedServer, monkeypatch: pytest.MonkeyPatch) -> SharedServer:
    """Sub-runs make their databases on the run's shared server."""
    monkeypatch.setenv("SEMEL_TEST_DATABASE_URL", shared_server.server.url("postgres"))
    monkeypatch.delenv("SEMEL_DATABASE_URL", raising=False)
    return shared_server


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """No PostgreSQL to be had."""
    monkeypatch.delenv("SEMEL_TEST_DATABASE_URL", raising=False)
    monkeypatch.setenv("SEMEL_PG_BIN", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def databases(server: SharedServer) -> set[str]:
    with psycopg.connect(server.server.url("postgres")) as connection:
        rows = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'semel_test_%'")
        return {row[0] for row in rows}


def test_each_test_has_a_database_of_its_own(pytester, on_server):
    pytester.makepyfile(
        APPLICATION
        + """
@pytest.mark.parametrize("number", range(3))
def test_one(semel_app, semel_database_url, number):
    copy = semel_app(app, lease="5 s")
    assert copy.url == semel_database_url
    assert copy.settings.lease.total_seconds() == 5
    assert copy.jobs["charge"].enqueue(7).id == 1
    with psycopg.connect(semel_database_url) as connection:
        assert connection.execute("SELECT count(*) FROM semel.jobs").fetchone() == (1,)
"""
    )
    before = databases(on_server)
    pytester.runpytest_subprocess("-W", "error", "-p", "no:cacheprovider").assert_outcomes(passed=3)
    assert databases(on_server) <= before


def test_an_application_can_be_pointed_to_the_database_in_place(pytester, on_server):
    pytester.makepyfile(
        APPLICATION
        + """
from semel import ConfigurationError
from semel.testing import assert_enqueued, drain

@pytest.mark.parametrize("number", range(2))
def test_in_place(semel_app, semel_database_url, number):
    assert semel_app(app, in_place=True) is app
    assert charge.enqueue(number).id == 1
    assert app.url == semel_database_url
    assert drain(app).outcomes[0].result == f"charged {number}"

def test_settings_are_refused_in_place(semel_app):
    with pytest.raises(ConfigurationError, match="in place"):
        semel_app(app, in_place=True, lease=5)

def test_afterwards_it_is_as_before(monkeypatch):
    monkeypatch.setenv("SEMEL_DATABASE_URL", "postgresql://elsewhere.invalid/x")
    assert app.url == "postgresql://elsewhere.invalid/x"
"""
    )
    pytester.runpytest_subprocess("-W", "error").assert_outcomes(passed=4)


def test_an_event_loop_s_connections_do_not_outlive_their_database(pytester, on_server):
    pytester.makepyfile(
        APPLICATION
        + """
import asyncio
from semel.testing import enqueued, pointed_to

def test_one_loop_two_databases(semel_server):
    urls = [semel_server.create(), semel_server.create()]

    async def enqueue_on_both():
        for url in urls:
            with pointed_to(app, url):
                assert (await charge.aenqueue(1)).id == 1
        await app.aclose()

    asyncio.run(enqueue_on_both())
    for url in urls:
        with psycopg.connect(url) as connection:
            assert len(enqueued(connection)) == 1
"""
    )
    pytester.runpytest_subprocess("-W", "error").assert_outcomes(passed=1)


def test_the_template_carries_the_application_s_own_tables_and_schema(pytester, on_server):
    pytester.makeconftest(
        """
import psycopg, pytest

@pytest.fixture(scope="session")
def semel_schema():
    return "jobs"

@pytest.fixture(scope="session")
def semel_prepare():
    def prepare(url):
        left_open = psycopg.connect(url, autocommit=True)
        left_open.execute("CREATE TABLE accounts (id int PRIMARY KEY)")
        prepare.connections = [left_open]
    return prepare
"""
    )
    pytester.makepyfile(
        """
import psycopg

def test_tables(semel_database_url):
    with psycopg.connect(semel_database_url) as connection:
        connection.execute("INSERT INTO accounts VALUES (1)")
        connection.execute("SELECT FROM jobs.jobs")

def test_they_are_empty_again(semel_database_url):
    with psycopg.connect(semel_database_url) as connection:
        assert connection.execute("SELECT count(*) FROM accounts").fetchone() == (0,)
"""
    )
    before = databases(on_server)
    pytester.runpytest_subprocess().assert_outcomes(passed=2)
    assert databases(on_server) <= before


def test_a_database_in_use_is_dropped_all_the_same(pytester, on_server):
    pytester.makepyfile(
        """
import psycopg
connections = []

def test_left_open(semel_database_url):
    connections.append(psycopg.connect(semel_database_url))
"""
    )
    before = databases(on_server)
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
    assert databases(on_server) <= before


def test_a_server_of_its_own_is_started_and_removed(pytester, monkeypatch):
    monkeypatch.delenv("SEMEL_TEST_DATABASE_URL", raising=False)
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("temporary")))
    pytester.makepyfile(
        """
import psycopg

def test_one(semel_database_url, semel_server):
    assert "host=/tmp/semel-" in semel_server.url
    with psycopg.connect(semel_database_url) as connection:
        assert connection.execute("SELECT count(*) FROM semel.jobs").fetchone() == (0,)

def test_two(semel_database_url): ...
"""
    )
    pytester.runpytest_subprocess("-n", "2").assert_outcomes(passed=2)
    assert list((pytester.path / "temporary").glob("semel-test-*")) == []


@pytest.mark.usefixtures("nothing_installed")
def test_nothing_is_started_where_no_fixture_is_used(pytester):
    pytester.makepyfile("def test_plain(): ...")
    result = pytester.runpytest_subprocess("-W", "error", "-v")
    result.assert_outcomes(passed=1)
    assert "semel" not in str(result.stdout).replace("plugins:", "").partition("collected")[2]
    assert result.stderr.lines == []


@pytest.mark.usefixtures("nothing_installed")
def test_a_missing_postgresql_fails_the_tests_that_need_it(pytester, tmp_path):
    pytester.makepyfile("def test_one(semel_database_url): ...\ndef test_plain(): ...")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(
        ["*This test needs a PostgreSQL.*", "*pip install 'semel?embedded?', or set SEMEL_TEST_DATABASE_URL*"]
    )
    assert "Traceback" not in str(result.stdout)
    assert "plugin.py" not in str(result.stdout)
    assert list(tmp_path.glob("semel-test-*")) == []


@pytest.mark.usefixtures("nothing_installed")
def test_a_missing_postgresql_skips_on_request(pytester):
    pytester.makeini("[pytest]\nsemel_missing_server = skip")
    pytester.makepyfile("def test_one(semel_app): ...\ndef test_plain(): ...")
    result = pytester.runpytest_subprocess("-rs")
    result.assert_outcomes(skipped=1, passed=1)
    result.stdout.fnmatch_lines(["SKIPPED*This test needs a PostgreSQL.*"])


@pytest.mark.usefixtures("nothing_installed")
def test_another_wish_is_refused(pytester):
    pytester.makeini("[pytest]\nsemel_missing_server = ignore")
    pytester.makepyfile("def test_one(semel_app): ...")
    result = pytester.runpytest_subprocess()
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*semel_missing_server is 'ignore': give fail or skip*"])


def test_a_server_that_does_not_answer_fails_the_test(pytester, monkeypatch):
    monkeypatch.setenv("SEMEL_TEST_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    pytester.makepyfile("def test_one(semel_database_url): ...")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*Could not connect to the database*"])


def test_importing_the_plugin_imports_no_helper_and_prints_nothing():
    """It is imported in every run of pytest; `semel` loads its names when one is asked for."""
    code = (
        "import sys; before = set(sys.modules); import semel.testing.plugin; "
        "print(sorted(name for name in set(sys.modules) - before if name.startswith('semel')))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert done.stdout == "['semel', 'semel.testing', 'semel.testing.plugin', 'semel.version']\n"
    assert done.stderr == ""


def test_every_public_name_can_be_imported():
    import semel.testing

    for name in semel.testing.__all__:
        assert getattr(semel.testing, name) is not None
    with pytest.raises(AttributeError, match="drian"):
        _ = semel.testing.drian
