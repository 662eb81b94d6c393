"""Brokers of a test's own, which it may kill and start again, and what has arrived there, in order."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.adapters.brokers import RABBIT, _write_rabbit, wait_for_port
from tests.support.keeping import free_port


class Arrived(NamedTuple):
    """One message as the broker has it."""

    id: str
    key: str | None
    number: int


class Broker(ABC):
    """One server, a child of the test's process, that keeps what it has confirmed over a kill."""

    name: str
    program: str

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    @abstractmethod
    def target(self) -> dict[str, Any]:
        """How the relay of `tests.relay.application` is told where to send."""

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def prepare(self) -> None:
        """Make the queue, once the server is there for the first time."""

    @abstractmethod
    def read(self) -> list[Arrived]:
        """All that has arrived since the last read, the oldest first."""

    def environment(self) -> dict[str, str]:
        return {}

    def start(self) -> None:
        out = (self.directory / "out").open("ab")
        with out:
            self.process = subprocess.Popen(
                self.command(),
                cwd="/",
                env={**os.environ, **self.environment()},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        wait_for_port(self.port, self.directory)

    def kill(self) -> None:
        """SIGKILL to the server and all that it started."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


def _end_with_parent() -> None:
    """Linux: this process gets SIGKILL when the one that started it dies."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Redis(Broker):
    """As Sidekiq uses it; each write on disk before the reply."""

    name = "redis"
    program = "redis-server"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def target(self) -> dict[str, Any]:
        return {"kind": "sidekiq", "url": self.url}

    def command(self) -> list[str]:
        return [
            *("redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.directory)),
            *("--save", "", "--appendonly", "yes", "--appendfsync", "always"),
        ]

    def prepare(self) -> None:
        pass

    def read(self) -> list[Arrived]:
        import redis

        with redis.Redis(port=self.port) as client, client.pipeline(transaction=True) as both:
            both.lrange("queue:default", 0, -1)
            both.delete("queue:default")
            jobs = [json.loads(each) for each in reversed(both.execute()[0])]
        return [Arrived(job["jid"], (job["args"] + [None])[1], job["args"][0]) for job in jobs]


class RabbitMQ(Broker):
    """One durable queue."""

    name = "rabbitmq"
    program = RABBIT

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._environment = _write_rabbit(directory, self.port, None)

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    @property
    def target(self) -> dict[str, Any]:
        return {"kind": "rabbitmq", "url": self.url}

    def command(self) -> list[str]:
        return [RABBIT]

    def environment(self) -> dict[str, str]:
        return self._environment

    def kill(self) -> None:
        super().kill()
        command = ["epmd", "-port", self._environment["ERL_EPMD_PORT"], "-kill"]
        ends = time.monotonic() + 10
        while not nobody_listens(int(self._environment["ERL_EPMD_PORT"])) and time.monotonic() < ends:
            # It refuses as long as it lists the dead node, whose name would stay taken.
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            time.sleep(0.05)

    def prepare(self) -> None:
        with self.channel() as channel:
            channel.queue_declare("out", durable=True)

    def channel(self) -> Any:
        import pika

        ends = time.monotonic() + 60
        while True:  # the port is open before users can log in
            try:
                connection = pika.BlockingConnection(pika.URLParameters(self.url))
            except (pika.exceptions.AMQPError, OSError):
                assert time.monotonic() < ends
                time.sleep(0.1)
            else:
                return _closing(connection)

    def read(self) -> list[Arrived]:
        found = []
        with self.channel() as channel:
            while (got := channel.basic_get("out", auto_ack=True))[0] is not None:
                _, properties, body = got
                key = properties.headers.get("semel-ordering-key")
                found.append(Arrived(properties.message_id, key, json.loads(body)["number"]))
        return found


class _closing:  # noqa: N801
    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def __enter__(self) -> Any:
        return self.connection.channel()

    def __exit__(self, *_: object) -> None:
        self.connection.close()


class NATS(Broker):
    """One stream on disk. Its window for duplicates is the shortest there is, so that they are seen."""

    name = "nats"
    program = "nats-server"

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def target(self) -> dict[str, Any]:
        return {"kind": "nats", "url": self.url}

    def command(self) -> list[str]:
        return [_nats(), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.directory / "store")]

    def prepare(self) -> None:
        async def make(stream: Any) -> None:
            from nats.js.api import StreamConfig

            await stream.add_stream(StreamConfig(name="OUT", subjects=["out.>"], duplicate_window=0.1))

        asyncio.run(self._with_stream(make))

    def read(self) -> list[Arrived]:
        found: list[Arrived] = []

        async def fetch(stream: Any) -> None:

            consumer = await stream.pull_subscribe("out.>", durable="reader")
            while True:
                try:
                    got = await consumer.fetch(500, timeout=0.5)
                except TimeoutError:
                    return
                for each in got:
                    key = each.headers.get("semel-ordering-key")
                    found.append(Arrived(each.headers["Nats-Msg-Id"], key, json.loads(each.data)["number"]))
                    await each.ack()

        asyncio.run(self._with_stream(fetch))
        return found

    async def _with_stream(self, do: Any) -> None:
        import nats

        connection = await nats.connect(self.url)
        try:
            await do(connection.jetstream())
        finally:
            await connection.close()


def _nats() -> str:
    """Debian keeps the server outside an ordinary PATH."""
    return shutil.which("nats-server", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "nats-server"


def make_broker(kind: type[Broker], directory: Path) -> Broker:
    """Started and prepared. Skips where it is not installed; under CI that is a failure."""
    if shutil.which(kind.program, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
        if os.environ.get("CI"):
            pytest.fail(f"{kind.program} is not installed")
        pytest.skip(f"{kind.program} is not installed")
    broker = kind(directory)
    broker.start()
    broker.prepare()
    return broker


def nobody_listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
