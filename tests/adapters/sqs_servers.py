"""SQS servers on loopback: ministack for the run, shared by all its processes, and fauxqs as the second opinion.

`scripts/sqs-servers.sh` makes both beside the environment. Each is started by the first process that needs it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import boto3
import pytest
from botocore.config import Config
from tests.support.keeping import free_port, keep, read_output

Name = Literal["ministack", "fauxqs"]

ENVIRONMENT: Mapping[str, str] = {
    "AWS_ACCESS_KEY_ID": "000000000000",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass(frozen=True)
class SqsServer:
    """A running server."""

    name: Name
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """For processes that are to speak to it by boto3."""
        return {**ENVIRONMENT, "AWS_ENDPOINT_URL_SQS": self.url}

    def client(self) -> Any:
        config = Config(retries={"total_max_attempts": 3}, max_pool_connections=40)
        return boto3.client(
            "sqs",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="000000000000",
            aws_secret_access_key="test",
            config=config,
        )

    def create_queue(self, *, fifo: bool = False, **attributes: Any) -> str:
        """The URL of a new queue."""
        given = {name: str(value) for name, value in attributes.items()}
        name = f"test-{uuid.uuid4().hex[:16]}"
        if fifo:
            name, given = f"{name}.fifo", {"FifoQueue": "true", **given}
        return str(self.client().create_queue(QueueName=name, Attributes=given)["QueueUrl"])


@dataclass
class Counts:
    """How many messages a queue has, by its own attributes."""

    client: Any
    url: str
    names: tuple[str, ...] = field(
        default=(
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        )
    )

    def all(self) -> int:
        told = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])["Attributes"]
        return sum(int(told.get(name, 0)) for name in self.names)


def _command(name: Name) -> list[str] | None:
    beside = Path(sys.prefix)
    if name == "ministack":
        program = beside / "ministack" / "bin" / "ministack"
        return [str(program)] if program.exists() else None
    script, node = beside / "fauxqs/node_modules/fauxqs/dist/cli.js", shutil.which("node")
    return [node, str(script)] if node and script.exists() else None


def shared(name: Name, run_directory: Path, leader: int) -> SqsServer:
    """The server of the whole run. Skips where it is not made; under CI that is a failure."""
    command = _command(name)
    if command is None:
        told = f"{name} is not there: scripts/sqs-servers.sh {sys.prefix} makes it"
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
    directory = Path(f"/tmp/semel-{name}-{run_directory.name}")
    directory.mkdir(mode=0o700, exist_ok=True)
    with (directory / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        port_file = directory / "port"
        if not port_file.exists():
            port = free_port()
            _start(name, command, port, directory, leader)
            _wait(SqsServer(name, port), directory)
            port_file.write_text(str(port), "utf-8")
        return SqsServer(name, int(port_file.read_text("utf-8")))


def _start(name: Name, command: list[str], port: int, directory: Path, leader: int) -> None:
    settings = {
        "ministack": {"GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "TMPDIR": str(directory)},
        "fauxqs": {"FAUXQS_PORT": str(port), "FAUXQS_HOST": "127.0.0.1", "FAUXQS_LOGGER": "false"},
    }[name]
    keep(leader, directory, command, environment={**settings, "HOME": str(directory)})


def _wait(server: SqsServer, directory: Path) -> None:
    ends = time.monotonic() + 90
    client = server.client()
    while True:
        try:
            client.list_queues()
        except Exception as error:
            if time.monotonic() > ends:
                told = read_output(directory)
                raise RuntimeError(f"{server.name} did not start: {error}\n{told}") from None
            time.sleep(0.05)
        else:
            return
