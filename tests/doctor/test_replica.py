"""A server that takes no writes, as a replica is: `semel doctor` says so, and reads all the same."""

from __future__ import annotations

from pathlib import Path

from tests.servers import make_server

from semel.doctor.database import check_database
from semel.doctor.database_reading import read_database
from semel.store.migrate import migrate_database
from semel.store.session import open_session


def test_a_replica(tmp_path: Path) -> None:
    server = make_server(tmp_path / "postgres", settings={"max_connections": "30"})
    try:
        url = server.start()
        migrate_database(url)
        with open_session(url) as session:
            assert check_database(read_database(session)) == []
        server.stop()
        _data(tmp_path / "postgres").joinpath("standby.signal").touch()
        with open_session(server.start()) as session:
            codes = {finding.code for finding in check_database(read_database(session))}
        assert codes == {"database-replica"}
    finally:
        server.destroy()


def _data(directory: Path) -> Path:
    """The data directory: where its configuration is."""
    return next(file.parent for file in directory.rglob("postgresql.conf"))
