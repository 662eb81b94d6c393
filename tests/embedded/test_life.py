"""A server's life: start, use, crash, stop, destroy."""

from __future__ import annotations

import os
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.servers import make_server

from semel.embedded import EmbeddedServer, default_directory
from semel.embedded.waiting import wait_until
from semel.errors import EmbeddedServerError


def value(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def test_the_url_leads_to_database_semel(running: EmbeddedServer) -> None:
    assert value(running.url(), "SELECT current_database() || ' ' || current_user") == "semel semel"
    assert value(running.url("postgres"), "SELECT current_database()") == "postgres"


def test_it_listens_on_its_socket_only(running: EmbeddedServer) -> None:
    assert value(running.url(), "SHOW listen_addresses") == ""


def test_tables_of_the_users_own_are_made_where_they_are_elsewhere(running: EmbeddedServer) -> None:
    """In public, though a schema has the user's name."""
    with psycopg.connect(running.url(), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS semel")
        connection.execute("CREATE TABLE payments (id int)")
    query = "SELECT string_agg(schemaname, ' ') FROM pg_tables WHERE tablename = 'payments'"
    assert value(running.url(), query) == "public"


def test_settings_are_the_callers(running: EmbeddedServer) -> None:
    assert value(running.url(), "SHOW fsync") == "off"


def test_where_it_listens_is_not_a_setting(tmp_path: Path) -> None:
    server = make_server(tmp_path / "pg", settings={"fsync": "off", "listen_addresses": "*"})
    try:
        assert value(server.start(), "SHOW listen_addresses") == ""
    finally:
        server.destroy()


def test_psql_runs(running: EmbeddedServer) -> None:
    command = [*running.psql_command(), "--no-align", "--tuples-only", "--command", "SELECT 41 + 1"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "42\n"


def test_its_files_are_private(running: EmbeddedServer) -> None:
    modes = {
        path: stat.S_IMODE(path.stat().st_mode) for path in (running.directory, running.directory / "data")
    }
    assert set(modes.values()) == {0o700}


def test_variables_of_other_servers_do_not_matter(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "PGPORT": "1",
        "PGDATA": "/nowhere",
        "PGOPTIONS": "-c nonsense",
        "LC_ALL": "xx_XX",
    }.items():
        monkeypatch.setenv(name, text)
    url = server.start()
    monkeypatch.delenv("PGOPTIONS")
    assert value(url, "SELECT 1") == 1


def test_the_status_follows_its_life(server: EmbeddedServer) -> None:
    assert server.status().state == "absent"
    server.start()
    ready = server.status()
    assert (ready.state, ready.running) == ("ready", True)
    assert ready.pid is not None
    assert ready.version is not None
    server.kill()
    crashed = server.status()
    assert (crashed.state, crashed.pid) == ("crashed", None)
    server.restart()
    server.stop()
    assert server.status().state == "stopped"
    server.destroy()
    assert server.status().state == "absent"
    assert not server.directory.exists()


def test_a_killed_server_comes_back_with_what_was_committed(server: EmbeddedServer) -> None:
    with psycopg.connect(server.start(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    assert value(server.restart(), "SELECT number FROM kept") == 7


def test_it_comes_back_while_a_busy_process_of_the_old_one_lives(server: EmbeddedServer) -> None:
    """Backends that outlive the postmaster for a moment hold its shared memory; the start waits for them."""
    with closing(psycopg.connect(server.start(), autocommit=True)) as connection:
        connection.pgconn.send_query(b"SELECT sum(number) FROM generate_series(1, 5000000) number")
        server.kill()
        assert value(server.restart(), "SELECT 1") == 1


def test_starting_twice_is_starting_once(server: EmbeddedServer) -> None:
    url = server.start()
    first = server.status().pid
    assert server.start() == url
    assert make_server(server.directory).start() == url
    assert server.status().pid == first


def test_whoever_asks_may_stop_it(server: EmbeddedServer) -> None:
    server.start(background=True)
    make_server(server.directory).stop()
    assert not server.status().running
    server.stop()


def test_a_long_path_is_no_hindrance(tmp_path: Path) -> None:
    with make_server(tmp_path / ("deep" * 20) / ("deeper" * 20)) as server:
        assert value(server.url(), "SELECT 1") == 1
    server.destroy()


def test_a_path_with_blanks_and_quotes_is_no_hindrance(tmp_path: Path) -> None:
    with make_server(tmp_path / 'it\'s a "home", %s & more é') as server:
        assert value(server.url(), "SELECT 1") == 1
    server.destroy()


def test_a_private_home_stays_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with make_server(home / ".local" / "share" / "postgres") as server:
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
    server.destroy()


def test_loopback_tcp_asks_for_the_password(tmp_path: Path, unused_port: int) -> None:
    server = make_server(tmp_path / "pg", port=unused_port)
    try:
        server.start()
        assert value(server.tcp_url(), "SHOW listen_addresses") == "127.0.0.1"
        assert value(server.url(), "SELECT 1") == 1
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(f"postgresql://semel@127.0.0.1:{unused_port}/semel", password="wrong")
    finally:
        server.destroy()


def test_without_a_port_there_is_no_tcp_url(server: EmbeddedServer) -> None:
    with pytest.raises(EmbeddedServerError, match="port"):
        server.tcp_url()


def test_an_interrupted_first_start_is_made_good(server: EmbeddedServer) -> None:
    server.start()
    server.stop()
    (server.directory / "data").rename(server.directory / "data.new")
    (server.directory / "data.new" / "PG_VERSION").unlink()
    assert value(server.start(), "SELECT 1") == 1
    assert not (server.directory / "data.new").exists()


def test_a_large_log_is_put_aside(server: EmbeddedServer) -> None:
    server.start()
    server.stop()
    log = server.status().log
    os.truncate(log, 17 * 1024 * 1024)
    server.start()
    assert log.stat().st_size < 1024 * 1024
    assert log.with_suffix(".log.1").stat().st_size == 17 * 1024 * 1024


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SEMEL_HOME": "/srv/semel", "XDG_DATA_HOME": "/data"}, "/srv/semel/postgres"),
        ({"XDG_DATA_HOME": "/data"}, "/data/semel/postgres"),
        ({"XDG_DATA_HOME": "relative"}, "/home/ada/.local/share/semel/postgres"),
        ({}, "/home/ada/.local/share/semel/postgres"),
    ],
)
def test_the_default_directory(
    variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SEMEL_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, text in {"HOME": "/home/ada", **variables}.items():
        monkeypatch.setenv(name, text)
    assert default_directory() == Path(expected)


def test_waiting_has_a_limit() -> None:
    assert not wait_until(lambda: False, 0.0)
    assert wait_until(lambda: True, 0.0)
