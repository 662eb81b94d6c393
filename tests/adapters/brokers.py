"""A Redis and a RabbitMQ for the run, on loopback, each started by the first process that needs it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.keeping import free_port, keep, read_output

RABBIT = "/usr/lib/rabbitmq/bin/rabbitmq-server"
"""The packaged one in /usr/sbin becomes another user; this one runs as whoever calls."""
ASK = (
    'Node = list_to_atom(os:getenv("ASKED_NODE")), '
    'Ask = fun(Self) -> case io:get_line("") of eof -> halt(0); Line -> '
    "Name = list_to_binary(string:trim(Line)), "
    'Found = case rpc:call(Node, rabbit_amqqueue, lookup, [{resource, <<"/">>, queue, Name}]) of '
    "{ok, Queue} -> rpc:call(Node, rabbit_amqqueue, info, [Queue, [messages]]); _ -> [{messages, 0}] end, "
    'case Found of [{messages, N}] -> io:format("~w~n", [N]); _ -> io:format("-1~n") end, '
    "Self(Self) end end, Ask(Ask)."
)
"""A small Erlang node that answers how many messages a queue has, with those that nobody acknowledged yet."""


@dataclass(frozen=True)
class Redis:
    """The running server."""

    port: int

    def url(self, number: int) -> str:
        """One of its many databases: what is unacknowledged is kept for a whole database, so each test has its own."""
        return f"redis://127.0.0.1:{self.port}/{number}"

    def new_url(self) -> str:
        """The URL of a database that nobody had."""
        import redis

        with redis.Redis(port=self.port) as client:
            return self.url(int(client.incr("databases")))


@dataclass(frozen=True)
class Rabbit:
    """The running server."""

    port: int
    directory: Path
    environment: dict[str, str]

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    @contextmanager
    def counting(self) -> Iterator[Callable[[str], int]]:
        """Counts a queue's messages: waiting, and given to somebody who did not acknowledge them yet."""
        cookie = (self.directory / ".erlang.cookie").read_text().strip()
        asker = subprocess.Popen(
            [
                *("erl", "-noshell", "-hidden", "-setcookie", cookie),
                *("-sname", f"ask{os.getpid()}x{time.monotonic_ns()}@localhost", "-eval", ASK),
            ],
            env={**self.environment, "ASKED_NODE": self.environment["RABBITMQ_NODENAME"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert asker.stdin is not None
        assert asker.stdout is not None

        def count(queue: str) -> int:
            assert asker.stdin is not None
            assert asker.stdout is not None
            asker.stdin.write(f"{queue}\n")
            asker.stdin.flush()
            return int(asker.stdout.readline())

        try:
            yield count
        finally:
            asker.stdin.close()
            asker.wait(30)


def shared_redis(run_directory: Path, leader: int) -> Redis:
    """The Redis of the whole run."""
    if shutil.which("redis-server") is None:
        _missing("redis-server")
    directory = Path(f"/tmp/semel-redis-{run_directory.name}")

    def start() -> dict[str, Any]:
        port = free_port()
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory)]
        command += ["--save", "", "--appendonly", "no", "--databases", "5000"]
        keep(leader, directory, command)
        return {"port": port}

    told = _once(directory, start)
    wait_for_port(told["port"], directory)
    return Redis(told["port"])


def shared_rabbit(run_directory: Path, leader: int, *, consumer_timeout: float | None = None) -> Rabbit:
    """The RabbitMQ of the whole run; one that takes back what is not acknowledged in time is another one."""
    if not Path(RABBIT).exists():
        _missing("rabbitmq-server")
    kind = "" if consumer_timeout is None else f"-{consumer_timeout:g}"
    directory = Path(f"/tmp/semel-rabbit-{run_directory.name}{kind}")

    def start() -> dict[str, Any]:
        port = free_port()
        environment = _write_rabbit(directory, port, consumer_timeout)
        after = ["epmd", "-port", environment["ERL_EPMD_PORT"], "-kill"]
        keep(leader, directory, [RABBIT], after=after, environment=environment)
        return {"port": port, "environment": environment}

    told = _once(directory, start)
    wait_for_port(told["port"], directory)
    return Rabbit(told["port"], directory, {**os.environ, **told["environment"]})


def _write_rabbit(directory: Path, port: int, consumer_timeout: float | None) -> dict[str, str]:
    lines = [f"listeners.tcp.1 = 127.0.0.1:{port}", "loopback_users = none", "log.file.level = warning"]
    if consumer_timeout is not None:
        lines.append(f"consumer_timeout = {int(consumer_timeout * 1000)}")
        # It looks for overdue deliveries once a minute, unless told otherwise.
        (directory / "advanced.config").write_text("[{rabbit,[{channel_tick_interval,500}]}].\n")
    (directory / "rabbitmq.conf").write_text("".join(f"{line}\n" for line in lines))
    (directory / "plugins").write_text("[].\n")
    return {
        "HOME": str(directory),
        "RABBITMQ_NODENAME": f"semel{port}@localhost",
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / "advanced.config"),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_PID_FILE": str(directory / "pid"),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(free_port()),
    }


def wait_for_port(port: int, directory: Path, patience: float = 120.0) -> None:
    """Return when somebody listens there."""
    ends = time.monotonic() + patience
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > ends:
                raise RuntimeError(f"nothing listens on {port}:\n{read_output(directory)}") from None
            time.sleep(0.05)
        else:
            return


def _once(directory: Path, start: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``start`` told the first process of the run that asked."""
    directory.mkdir(mode=0o755, exist_ok=True)
    with (directory / "told.json").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        if not text:
            text = json.dumps(start())
            file.write(text)
        found: dict[str, Any] = json.loads(text)
        return found


def _missing(package: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{package} is not installed: apt-get install {package}")
    pytest.skip(f"{package} is not installed (Debian: apt-get install {package})")
