"""Several processes and one server: who starts it, who may use it, and what is left when one of them dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from semel.embedded import EmbeddedServer
from semel.embedded.lock import locked
from semel.embedded.place import (
    Place,
    make_directory,
    make_ours,
    refuse_foreign,
    remove_directory,
    remove_runtime,
)
from semel.embedded.postmaster import is_alive
from semel.embedded.waiting import wait_until

ENSURE = """
import os
from semel.embedded import EmbeddedServer, ensure_running
url = ensure_running()
print(url, EmbeddedServer().status().pid)
"""

OWN = """
import sys
from semel.embedded import THROWAWAY_SETTINGS, EmbeddedServer
server = EmbeddedServer(sys.argv[1], settings=THROWAWAY_SETTINGS)
server.start()
print(server.status().pid, flush=True)
sys.stdin.read()
"""

WHOLE_LIFE = """
import json, os, subprocess, sys
from semel.embedded import EmbeddedServer, ensure_running

def ask(question):
    command = [*server.psql_command(), "--no-align", "--tuples-only", "--command", question]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

url = ensure_running()
server = EmbeddedServer()
seen = {"user": os.geteuid(), "directory": str(server.directory)}
ask("CREATE TABLE kept AS SELECT 7 AS number")
server.kill()
seen["after the kill"] = server.status().state
server.start()
seen["kept"] = ask("SELECT number FROM kept")
server.stop()
seen["after the stop"] = server.status().state
server.destroy()
seen["left"] = server.directory.exists()
print(json.dumps(seen))
"""

LISTED_USER = 65534
UNLISTED_USER = 12345


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A value for SEMEL_HOME whose server is gone after the test."""
    yield tmp_path
    EmbeddedServer(tmp_path / "postgres").destroy()


def python(code: str, home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "SEMEL_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_that_ask_at_once_get_one_server(home: Path) -> None:
    askers = [python(ENSURE, home) for _ in range(4)]
    answers = {asker.communicate(timeout=90)[0] for asker in askers}
    assert len(answers) == 1
    url, pid = answers.pop().split()
    assert EmbeddedServer(home / "postgres").status().pid == int(pid), "it outlives those who asked"
    assert url == EmbeddedServer(home / "postgres").url()


def test_a_directory_in_the_making_or_unmaking_is_never_foreign(tmp_path: Path) -> None:
    place = Place.at(tmp_path / "postgres")
    over = Event()

    def make_and_remove() -> None:
        for _ in range(300):
            make_ours(place)
            place.log.write_text("", "utf-8")
            remove_directory(place)
        over.set()

    with ThreadPoolExecutor() as pool:
        maker = pool.submit(make_and_remove)
        while not over.is_set() and not maker.done():
            refuse_foreign(place)
        maker.result()


def test_a_directory_is_made_while_others_remove_it(tmp_path: Path) -> None:
    place = Place.at(tmp_path / "postgres")
    over = Event()

    def remove() -> None:
        while not over.is_set():
            with suppress(FileNotFoundError):
                place.directory.rmdir()

    with ThreadPoolExecutor() as pool:
        removers = [pool.submit(remove) for _ in range(2)]
        usual = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for _ in range(5_000):
                make_directory(place)
        finally:
            sys.setswitchinterval(usual)
            over.set()
        for remover in removers:
            remover.result()


def test_what_a_killed_destroy_leaves_can_be_destroyed(tmp_path: Path) -> None:
    place = Place.at(tmp_path / "postgres")
    make_ours(place)
    place.password.unlink()
    EmbeddedServer(tmp_path / "postgres").destroy()
    assert not place.directory.exists()


def test_those_who_destroy_at_once_destroy_once(tmp_path: Path) -> None:
    for _ in range(50):
        make_ours(Place.at(tmp_path / "postgres"))
        with ThreadPoolExecutor(4) as pool:
            for destroyed in [pool.submit(EmbeddedServer(tmp_path / "postgres").destroy) for _ in range(4)]:
                destroyed.result()


def test_a_lock_is_one_holders_while_its_directory_comes_and_goes(tmp_path: Path) -> None:
    place = Place.at(tmp_path / "postgres")
    inside: list[int] = []

    def hold_and_remove(number: int) -> None:
        for _ in range(100):
            with locked(place):
                inside.append(number)
                assert inside == [number]
                inside.clear()
                remove_runtime(place)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(hold_and_remove, range(4)))
    assert not place.runtime.exists()


def test_an_owned_server_ends_with_its_process(tmp_path: Path) -> None:
    directory = tmp_path / "postgres"
    owner = python(OWN, tmp_path, str(directory))
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.communicate()
    assert wait_until(lambda: not is_alive(pid), 30)
    assert EmbeddedServer(directory).status().state == "stopped"
    EmbeddedServer(directory).destroy()


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(child.pid)
    child.wait()
    assert not is_alive(child.pid)
    assert is_alive(os.getpid())


def test_the_whole_life_as_this_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert whole_life(tmp_path, ()) == expected_life(tmp_path, os.geteuid())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("user", [LISTED_USER, UNLISTED_USER])
def test_the_whole_life_as_an_ordinary_user_with_a_private_home(user: int) -> None:
    become = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--")
    importable = subprocess.run(
        [*become, sys.executable, "-c", "import semel.embedded"], check=False, cwd="/"
    )
    if importable.returncode != 0:
        pytest.skip(f"another user cannot read this Python or this checkout ({sys.executable})")
    with tempfile.TemporaryDirectory(prefix="semel-home-") as name:
        home = Path(name)
        os.chown(home, user, user)
        assert whole_life(home, become) == expected_life(home, user)
        assert home.stat().st_mode & 0o777 == 0o700


def whole_life(home: Path, become: tuple[str, ...]) -> object:
    environment = {
        name: text for name, text in os.environ.items() if name not in ("SEMEL_HOME", "XDG_DATA_HOME")
    }
    done = subprocess.run(
        [*become, sys.executable, "-c", WHOLE_LIFE],
        env={**environment, "HOME": str(home)},
        cwd=home,
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


def expected_life(home: Path, user: int) -> object:
    return {
        "user": user,
        "directory": str(home / ".local/share/semel/postgres"),
        "after the kill": "crashed",
        "kept": "7",
        "after the stop": "stopped",
        "left": False,
    }
