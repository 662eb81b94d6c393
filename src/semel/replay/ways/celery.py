"""A Celery task: sent as its application sends it, and run by ``celery worker`` of the application's code."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from semel.errors import ConfigurationError
from semel.replay.description import CeleryTask, Message
from semel.replay.processes import Victim, Worker, start_worker
from semel.replay.ways.way import Sent, Surroundings

_QUIET: Final = ("--without-gossip", "--without-mingle", "--without-heartbeat")
_READY: Final = " ready."
_ASK_AFTER: Final = 3.0
"""Seconds until a worker whose log does not say that it is ready is asked; an application may log as it likes."""


class CeleryWay:
    """Workers have a node name of their own and one process for their jobs, unless the description's options say else."""

    def __init__(self, deliver: CeleryTask, surroundings: Surroundings) -> None:
        self._deliver = deliver
        self._token = secrets.token_hex(4)
        self._sender = _SenderProcess(deliver, surroundings, self._token)
        self._workers: dict[str, Worker] = {}
        try:
            told = self._sender.ask("describe")
            self._queue = str(told["queue"])
            self._targets: dict[str, str] = told["targets"]
            self._eager: str | None = told["eager"]
            self._pool = option_of(deliver.options, "-P", "--pool") or str(told["pool"])
            self._alone = self._eager is not None or not self._ask_nodes("others_messages")
            """Nothing was there at the start: all that is there later is this run's."""
        except BaseException:
            self._sender.close()
            raise

    @property
    def victims(self) -> tuple[Victim, ...]:
        """Where jobs run in processes of their own, one of those too."""
        return ("child", "parent", "group") if self._pool in ("prefork", "processes") else ("parent", "group")

    def targets(self) -> Mapping[str, str]:
        """The broker, and where results go."""
        return self._targets

    def foreign(self) -> list[str]:
        """Messages in the application's queues, and other workers of the application that answer a ping."""
        return [*self._ask_nodes("others_messages"), *self._ask_nodes("others_workers")]

    def start(self, surroundings: Surroundings, *, concurrency: int = 1) -> Worker:
        """A worker of the task's queue alone; ready when its log says so, or when it answers."""
        name = f"{self._token}-{len(self._workers)}"
        node = f"semel-replay-{name}@localhost"
        options = self._deliver.options
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            self._deliver.app,
            "worker",
            "-n",
            node,
            "-l",
            "INFO",
        ]
        command += ["-c", str(concurrency), *_QUIET]
        if option_of(options, "-Q", "--queues") is None:
            command += ["-Q", self._queue]
        ask_at = time.monotonic() + _ASK_AFTER

        def ready(worker: Worker) -> bool:
            if _READY in worker.read_log():
                return True
            return time.monotonic() > ask_at and bool(self._sender.ask("answers", node=node))

        worker = start_worker(
            [*command, *options],
            environment={"C_FORCE_ROOT": "1", **surroundings.environment},
            directory=surroundings.code,
            log=surroundings.directory / f"celery-{name}.log",
            ready=ready,
        )
        self._workers[node] = worker
        return worker

    def send(self, message: Message, number: int) -> Sent:
        """Send it by the application's own means, under an id of ours."""
        if self._eager is not None:
            raise ConfigurationError(f"Nothing was sent: {self._eager}.")
        delivery = self._sender.ask("send", id=f"semel-replay-{secrets.token_hex(12)}", kwargs=message)
        return Sent(str(delivery), message)

    def send_again(self, sent: Sent) -> Sent:
        """Publish the same once more, under the same id; what the task does when it is sent is passed by."""
        self._sender.ask("send_again", id=sent.delivery)
        return sent

    def pending(self) -> int:
        """Waiting, not acknowledged, or in a worker of ours."""
        return int(self._sender.ask("pending", nodes=self._alive()))

    def clear(self) -> None:
        """Take this run's messages and results out; where nothing was there at the start, the whole queue."""
        self._sender.ask("clear", alone=self._alone)

    def eager(self) -> str | None:
        return self._eager

    def close(self) -> None:
        """End the workers and the sender."""
        for worker in self._workers.values():
            worker.end()
        self._sender.close()

    def _ask_nodes(self, do: str) -> list[str]:
        found: list[str] = self._sender.ask(do, nodes=self._alive())
        return found

    def _alive(self) -> list[str]:
        return [node for node, worker in self._workers.items() if worker.is_alive()]


class _SenderProcess:
    """The process that has the application loaded; see `semel.replay.ways.celery_sender`."""

    def __init__(self, deliver: CeleryTask, surroundings: Surroundings, token: str) -> None:
        self._name = deliver.app
        self._log: Path = surroundings.directory / f"celery-sender-{token}.log"
        command = [sys.executable, "-m", "semel.replay.ways.celery_sender", deliver.app, deliver.task]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # the application is the description's
                [*command, *([deliver.queue] if deliver.queue else [])],
                cwd=surroundings.code,
                env={
                    name: value for name, value in surroundings.environment.items() if name != "SEMEL_REPLAY"
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def ask(self, do: str, **arguments: Any) -> Any:
        """What the application answers."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise self._gone() from None
        return self._answer()

    def close(self) -> None:
        self._process.kill()
        self._process.wait(20)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # what was not flushed yet
                    pass

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._gone()
        told = json.loads(line)
        if "error" in told:
            raise ConfigurationError(
                f"The Celery application {self._name} could not be used: {told['error']}.",
                remedy="Check its broker, and the app and the task of the description.",
            )
        return told["ok"]

    def _gone(self) -> ConfigurationError:
        log = self._log.read_text("utf-8", errors="replace").strip()
        return ConfigurationError(
            f"The Celery application {self._name} could not be loaded.",
            remedy=f"The end of what it said:\n{log[-2000:] or '(nothing)'}",
        )


def option_of(options: Sequence[str], short: str, long: str) -> str | None:
    """The value that a command's options give, in any of the ways that they can be written; None: not given."""
    found = None
    for place, each in enumerate(options):
        if each in (short, long):
            found = options[place + 1] if place + 1 < len(options) else None
        elif each.startswith(f"{long}="):
            found = each.partition("=")[2]
        elif each.startswith(short) and not each.startswith("--"):
            found = each.removeprefix(short).removeprefix("=")
    return found
