"""What can go wrong with a server's directory: each case has its own error, and the data is kept."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.servers import make_server

from semel.embedded import EmbeddedServer
from semel.embedded.place import Place
from semel.embedded.postmaster import is_alive
from semel.errors import (
    DiskFull,
    EmbeddedServerError,
    ForeignDirectory,
    PostgresStartFailed,
    PostgresVersionChanged,
)

AS_ROOT = os.geteuid() == 0


def store(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")


def stored(url: str) -> object:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT number FROM kept").fetchone()


def everything(directory: Path) -> list[tuple[str, int, int, int]]:
    """Each path under a directory with what a careless program would change."""
    paths = [directory, *sorted(directory.rglob("*"))]
    found = [(str(path), path.lstat()) for path in paths]
    return [(path, status.st_mode, status.st_uid, status.st_mtime_ns) for path, status in found]


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with PostgreSQL."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        yield process
        process.communicate()


def test_a_dead_servers_number_that_another_process_has_now(
    server: EmbeddedServer, bystander: subprocess.Popen[bytes]
) -> None:
    store(server.start())
    server.kill()
    pid_file = server.directory / "data" / "postmaster.pid"
    lines = pid_file.read_text("utf-8").splitlines()
    pid_file.write_text("\n".join([str(bystander.pid), *lines[1:]]) + "\n", "utf-8")
    assert server.status().state == "crashed"
    server.stop()
    assert is_alive(bystander.pid)
    assert stored(server.start()) == (7,)
    server.stop()
    assert is_alive(bystander.pid)


@pytest.mark.parametrize("content", ["", "not a number\n", "999999999\n"])
def test_a_pid_file_that_says_nothing(server: EmbeddedServer, content: str) -> None:
    store(server.start())
    server.kill()
    (server.directory / "data" / "postmaster.pid").write_text(content, "utf-8")
    assert stored(server.start()) == (7,)


@pytest.mark.parametrize("what", ["files", "cluster", "file"])
def test_a_foreign_directory_is_not_touched(tmp_path: Path, what: str) -> None:
    foreign = tmp_path / "foreign"
    if what == "file":
        foreign.write_text("mine", "utf-8")
    else:
        foreign.mkdir(mode=0o755)
        (foreign / ("PG_VERSION" if what == "cluster" else "thesis.tex")).write_text("18\n", "utf-8")
    before = everything(tmp_path)
    server = make_server(foreign)
    with pytest.raises(ForeignDirectory, match="Nothing in it was touched"):
        server.start()
    with pytest.raises(ForeignDirectory):
        server.destroy()
    server.stop()
    assert server.status().state == "absent"
    assert everything(tmp_path) == before


@pytest.mark.skipif(not AS_ROOT, reason="only root can make a directory of another user's")
def test_another_users_directory_is_not_touched(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(ForeignDirectory, match="12345"):
        make_server(tmp_path).start()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_directory_may_be_used(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    store(server.start())
    assert stored(server.url()) == (7,)
    server.destroy()


def test_data_of_another_version_is_kept(server: EmbeddedServer) -> None:
    store(server.start())
    server.stop()
    version = server.directory / "data" / "PG_VERSION"
    right = version.read_text("utf-8")
    version.write_text("13\n", "utf-8")
    with pytest.raises(PostgresVersionChanged) as caught:
        server.start()
    assert "PostgreSQL 13" in caught.value.happened
    assert "SEMEL_PG_BIN" in caught.value.remedy
    version.write_text(right, "utf-8")
    assert stored(server.start()) == (7,)


def test_data_of_the_systems_version_goes_on_with_its_programs(tmp_path: Path) -> None:
    system = Path("/usr/lib/postgresql/15/bin")
    if not system.is_dir() or os.environ.get("SEMEL_TEST_PG_BIN"):
        pytest.skip(f"this needs two versions: the wheel's and {system}")
    older = EmbeddedServer(tmp_path / "pg", bin_directory=system, settings={"fsync": "off"})
    store(older.start())
    older.stop()
    with pytest.raises(PostgresVersionChanged):
        make_server(tmp_path / "pg").start()
    assert stored(older.start()) == (7,)
    older.destroy()


def test_half_a_data_directory_is_kept(server: EmbeddedServer) -> None:
    server.start()
    server.stop()
    (server.directory / "data" / "PG_VERSION").unlink()
    with pytest.raises(PostgresStartFailed, match="PG_VERSION"):
        server.start()
    assert (server.directory / "data" / "base").is_dir()


@pytest.mark.parametrize("background", [False, True])
def test_a_failed_start_shows_what_postgresql_said(tmp_path: Path, background: bool) -> None:
    store(make_server(tmp_path / "pg").start())
    make_server(tmp_path / "pg").stop()
    wrong = make_server(tmp_path / "pg", settings={"shared_buffers": "plenty"})
    with pytest.raises(PostgresStartFailed, match='invalid value for parameter "shared_buffers": "plenty"'):
        wrong.start(background=background)
    assert stored(make_server(tmp_path / "pg").start()) == (7,)
    make_server(tmp_path / "pg").destroy()


def test_a_port_that_is_taken_is_named(tmp_path: Path, running: EmbeddedServer, unused_port: int) -> None:
    with make_server(tmp_path / "one", port=unused_port) as first:
        second = make_server(tmp_path / "two", port=unused_port)
        with pytest.raises(PostgresStartFailed, match="Address already in use"):
            second.start()
        second.destroy()
    first.destroy()


def test_a_start_that_takes_too_long_is_ended(server: EmbeddedServer) -> None:
    store(server.start())
    server.stop()
    impatient = make_server(server.directory, start_seconds=0.0)
    with pytest.raises(PostgresStartFailed, match="not ready within 0 s"):
        impatient.start()
    assert not impatient.status().running
    assert stored(server.start()) == (7,)


def test_a_socket_directory_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    server = make_server(tmp_path / "pg")
    runtime = Place.at(tmp_path / "pg").runtime
    runtime.mkdir(mode=0o755)
    runtime.chmod(0o755)
    with pytest.raises(EmbeddedServerError, match="open to others"):
        server.start()
    runtime.rmdir()


@contextmanager
def small_disk(directory: Path, megabytes: int) -> Iterator[Path]:
    """A file system with little room; skips the test where it cannot be had."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(directory)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False) if AS_ROOT else None
    if done is None or done.returncode != 0:
        pytest.skip(f"a full disk needs root and mount: {done.stderr if done else 'this is not root'}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def fill(directory: Path) -> Path:
    """A file that takes all the room that is left."""
    path = directory / "filler"
    with path.open("wb", buffering=0) as file:
        with pytest.raises(OSError, match="No space left"):
            while True:
                file.write(bytes(65536))
    return path


@pytest.mark.parametrize("megabytes", [0, 20])
def test_a_disk_with_no_room_for_a_server(tmp_path: Path, megabytes: int) -> None:
    with small_disk(tmp_path / "disk", 20) as disk:
        filler = None if megabytes else fill(disk)
        server = make_server(disk / "pg")
        with pytest.raises(DiskFull, match="Free some space"):
            server.start()
        assert server.status().state == "absent"
        if filler is not None:
            filler.unlink()
        server.destroy()


@pytest.mark.parametrize("background", [False, True])
def test_a_disk_that_filled_up_keeps_the_data(tmp_path: Path, background: bool) -> None:
    with small_disk(tmp_path / "disk", 120) as disk, ExitStack() as stack:
        server = make_server(disk / "pg")
        stack.callback(server.destroy)
        store(server.start())
        server.stop()
        filler = fill(disk)
        with pytest.raises(DiskFull, match="Free some space"):
            server.start(background=background)
        assert not server.status().running
        filler.unlink()
        assert stored(server.start(background=background)) == (7,)


def test_a_server_in_a_foreign_directory_is_left_alone(tmp_path: Path, server: EmbeddedServer) -> None:
    """Even if it is laid out as ours are, but for the marker."""
    server.start()
    marker = server.directory / "semel-postgres"
    marker.rename(tmp_path / "marker")
    assert server.status().pid is None
    server.stop()
    server.kill()
    with pytest.raises(ForeignDirectory):
        server.start()
    (tmp_path / "marker").rename(marker)
    assert server.status().state == "ready"


def test_a_running_server_gets_no_other_port(server: EmbeddedServer, unused_port: int) -> None:
    url = server.start()
    with pytest.raises(EmbeddedServerError, match=f"not on port {unused_port}"):
        make_server(server.directory, port=unused_port).start()
    server.stop()
    with make_server(server.directory, port=unused_port) as other:
        assert server.url() == other.url() != url


def test_a_directory_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddedServerError, match="cannot be used: Not a directory"):
        make_server(tmp_path / "file" / "pg").start()


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_a_directory_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(EmbeddedServerError, match="cannot be used: Permission denied"):
        make_server(tmp_path / "pg").start()
