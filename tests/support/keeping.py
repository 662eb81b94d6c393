"""Servers of a whole test run: each ends with the process that leads the run, however that ends."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.conftest import DIRECTORY, keeper_key

OUTPUT = "out"
"""What the server writes, in its directory."""
KEEPER = """
import os, shutil, signal, subprocess, sys, time
leader, directory, command, after = int(sys.argv[1]), sys.argv[2], eval(sys.argv[3]), eval(sys.argv[4])
with open(os.path.join(directory, "out"), "ab") as out:
    server = subprocess.Popen(command, cwd="/", stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
def leads():
    try:
        os.kill(leader, 0)
    except ProcessLookupError:
        return False
    return not os.path.exists("/proc") or open(f"/proc/{leader}/stat").read().rpartition(")")[2].split()[0] != "Z"
try:
    while server.poll() is None and leads() and os.path.exists(directory):
        time.sleep(0.2)
finally:
    try:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass
    try:
        os.killpg(server.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    server.wait()
    while leads() and os.path.exists(directory):  # it ended by itself: what it wrote says why
        time.sleep(0.2)
    if after:
        subprocess.run(after, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(directory, ignore_errors=True)
"""

ENDS_WITH = 'while kill -s 0 "$1" && kill -s 0 -- "-$2"; do sleep 0.2; done; kill -s KILL -- "-$2"'


def run_directory(request: pytest.FixtureRequest) -> tuple[Path, int]:
    """The run's directory, and the process that leads it."""
    told = getattr(request.config, "workerinput", {}).get(DIRECTORY)
    if told:
        return Path(told), os.getppid()
    return request.config.stash[keeper_key].directory, os.getpid()


def keep(
    leader: int,
    directory: Path,
    command: Sequence[str],
    *,
    after: Sequence[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Start a server by a keeper, in a session of its own, which ends it with its leader or with its directory, then removes
    that; ``after`` is run when it has ended.
    """
    given = None if after is None else list(after)
    subprocess.Popen(
        [sys.executable, "-c", KEEPER, str(leader), str(directory), repr(list(command)), repr(given)],
        env={**os.environ, **(environment or {})},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def ending_with_us(group: int) -> Iterator[None]:
    """Inside, a process group that we have started is killed once this process is gone, however it ends."""
    watcher = subprocess.Popen(
        ["sh", "-c", ENDS_WITH, "sh", str(os.getpid()), str(group)],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        watcher.kill()
        watcher.wait()


def read_output(directory: Path) -> str:
    """The end of what a server wrote."""
    output = directory / OUTPUT
    return output.read_text(errors="replace")[-3000:] if output.exists() else ""


def free_port() -> int:
    """One that nobody has; below those that the kernel gives to connections, which might have it before its server does."""
    while True:
        port = random.randint(20_000, 32_000)
        with socket.socket() as taken, suppress(OSError):
            taken.bind(("127.0.0.1", port))
            return port
