"""A Celery task: sent as its application sends it, and run by ``celery worker`` of the application's code."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from semel.errors import ConfigurationError
from semel.replay.aside import Aside, AsideFailed
from semel.replay.description import CeleryTask, Message
from semel.replay.processes import Victim, Worker, start_worker
from semel.replay.ways.way import Sent, Surroundings

_QUIET: Final = ("--without-gossip", "--without-mingle", "--without-heartbeat")
_READY: Final = " ready."
_DEDUPLICATED: Final = "deduplicated"
_ASK_AFTER: Final = 3.0
"""Seconds until a worker whose log does not say that it is ready is asked; an application may log as it likes."""


class CeleryWay:
    """Workers have a node name of their own and one process for their jobs, unless the description's options say else."""

    victims: tuple[Victim, ...] = ("child", "parent", "group")

    def __init__(self, deliver: CeleryTask, plain: Surroundings) -> None:
        """``plain`` is without the wrapper: for the program that sends."""
        self._deliver = deliver
        self._token = secrets.token_hex(4)
        self._workers: dict[str, Worker] = {}
        self._app = Aside(
            "semel.replay.inside.celery_task",
            [deliver.app, deliver.task, *([deliver.queue] if deliver.queue else [])],
            code=plain.code,
            environment=plain.environment,
            log=plain.directory / f"celery-sending-{self._token}.log",
        )
        try:
            told = self._ask("describe")
            self._queue = str(told["queue"])
            self._targets: dict[str, str] = told["targets"]
            self._eager: str | None = told["eager"]
            self._again: dict[str, float] = told["again"]
            pool = option_of(deliver.options, "-P", "--pool") or str(told["pool"])
            if pool not in ("prefork", "processes"):
                self.victims = ("parent", "group")
            self._alone = self._eager is not None or not self._ask_nodes("others_messages")
            """Nothing was there at the start: all that is there later is this run's."""
        except BaseException:
            self._app.close()
            raise

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
            return time.monotonic() > ask_at and bool(self._ask("answers", node=node))

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
        """Send it by the application's own means, under an id of ours. An eager task is not sent: it would run here."""
        delivery = f"semel-replay-{secrets.token_hex(12)}"
        if self._eager is not None:
            return Sent(delivery, message, {_DEDUPLICATED: f"nothing was sent: {self._eager}"})
        positional = self._deliver.positional
        args, kwargs = (list(message.values()), {}) if positional else ([], dict(message))
        found = self._ask("send", id=delivery, args=args, kwargs=kwargs)
        if found is None:
            kept_back = f"{self._deliver.task}.apply_async published nothing: the task keeps its message back"
            return Sent(delivery, message, {_DEDUPLICATED: kept_back})
        return Sent(str(found), message)

    def send_again(self, sent: Sent) -> Sent:
        """Publish the same once more, under the same id; what the task does when it is sent is passed by."""
        if _DEDUPLICATED not in sent.extra:
            self._ask("send_again", id=sent.delivery)
        return sent

    def pending(self) -> int:
        """Waiting, not acknowledged, or in a worker of ours."""
        return int(self._ask("pending", nodes=self._alive()))

    def redelivers_within(self, victim: Victim) -> float:
        """By when it acknowledges: what is acknowledged when it begins is gone with its worker."""
        return self._again[victim]

    def clear(self) -> None:
        """Take this run's messages and results out; where nothing was there at the start, the whole queue."""
        self._ask("clear", alone=self._alone)

    def eager(self) -> str | None:
        return self._eager

    def close(self) -> None:
        """End the workers and the sender."""
        for worker in self._workers.values():
            worker.end()
        self._app.close()

    def _ask_nodes(self, do: str) -> list[str]:
        found: list[str] = self._ask(do, nodes=self._alive())
        return found

    def _ask(self, what: str, **told: Any) -> Any:
        try:
            return self._app.ask(what, **told)
        except AsideFailed as failed:
            raise ConfigurationError(
                f"The Celery application {self._deliver.app} could not be used: {failed}.",
                remedy="Check its broker, and the app and the task of the description.",
            ) from failed

    def _alive(self) -> list[str]:
        return [node for node, worker in self._workers.items() if worker.is_alive()]


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
