"""Jobs without a queue: a function or a command, delivered by a broker of replay's own that delivers at least once.

A worker is a process that takes one delivery at a time. What it had when it died is delivered again, as soon as there is
another worker: so a kill needs nothing from replay itself.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socketserver
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from semel.replay.description import CalledFunction, Command, Message
from semel.replay.processes import Victim, Worker, start_worker
from semel.replay.ways.way import Sent, Surroundings

_AT_ONCE: Final = 10.0


class CalledWay:
    """A function's or a command's deliveries."""

    def __init__(self, deliver: CalledFunction | Command, socket: Path) -> None:
        self._deliver = deliver
        self.victims: tuple[Victim, ...] = (
            ("parent",) if isinstance(deliver, CalledFunction) else ("child", "group")
        )
        self._broker = _Broker()
        self._server = _Server(str(socket), _Handler)
        self._server.broker = self._broker
        self._socket = socket
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self._workers: list[Worker] = []

    def targets(self) -> Mapping[str, str]:
        """None of its own: what the function writes to is among the description's databases."""
        return {}

    def foreign(self) -> list[str]:
        return []

    def start(self, surroundings: Surroundings, *, concurrency: int = 1) -> Worker:
        match self._deliver:
            case CalledFunction(function=function, positional=positional):
                kind, what = "positional" if positional else "function", function
            case Command(command=command):
                kind, what = "command", json.dumps(command)
        number = len(self._workers)
        before = self._broker.workers
        worker = start_worker(
            [sys.executable, "-m", "semel_faults.calling", str(self._socket), kind, what],
            environment=surroundings.environment,
            directory=surroundings.code,
            log=surroundings.directory / f"worker-{secrets.token_hex(3)}-{number}.log",
            ready=lambda _: self._broker.workers > before,
        )
        self._workers.append(worker)
        return worker

    def send(self, message: Message, number: int) -> Sent:
        return self.send_again(Sent(secrets.token_hex(8), message))

    def send_again(self, sent: Sent) -> Sent:
        self._broker.put(sent)
        return sent

    def pending(self) -> int:
        return self._broker.pending()

    def clear(self) -> None:
        self._broker.clear()

    def eager(self) -> str | None:
        return None

    def redelivers_within(self, victim: Victim) -> float:
        return 0.0 if victim == "child" else _AT_ONCE

    def close(self) -> None:
        self._broker.close()
        for worker in self._workers:
            worker.end()
        self._server.shutdown()
        self._server.server_close()
        self._socket.unlink(missing_ok=True)


class _Broker:
    """Deliveries that wait, and those in a worker."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Sent] = deque()
        self._taken: dict[int, Sent] = {}
        self._open = True
        self.workers = 0

    def put(self, sent: Sent) -> None:
        with self._changed:
            self._waiting.append(sent)
            self._changed.notify_all()

    def take(self, worker: int) -> Sent | None:
        """The next one; None when there will be none."""
        with self._changed:
            while self._open and not self._waiting:
                self._changed.wait(0.5)
            if not self._open:
                return None
            self._taken[worker] = self._waiting.popleft()
            return self._taken[worker]

    def done(self, worker: int) -> None:
        with self._changed:
            self._taken.pop(worker, None)

    def died(self, worker: int) -> None:
        """What it had is delivered again, first."""
        with self._changed:
            had = self._taken.pop(worker, None)
            if had is not None and self._open:
                self._waiting.appendleft(had)
                self._changed.notify_all()

    def pending(self) -> int:
        with self._changed:
            return len(self._waiting) + len(self._taken)

    def clear(self) -> None:
        with self._changed:
            self._waiting.clear()

    def close(self) -> None:
        with self._changed:
            self._open = False
            self._changed.notify_all()


@dataclass
class _Line:
    """One worker's connection."""

    file: Any

    def say(self, told: Mapping[str, Any]) -> None:
        self.file.write(json.dumps(told).encode() + b"\n")

    def hear(self, lines: Any) -> dict[str, Any] | None:
        line = lines.readline()
        heard: dict[str, Any] | None = json.loads(line) if line else None
        return heard


class _Handler(socketserver.StreamRequestHandler):
    """One worker, from its greeting to its end."""

    def handle(self) -> None:
        broker: _Broker = self.server.broker  # type: ignore[attr-defined]
        line = _Line(self.wfile)
        hello = line.hear(self.rfile)
        if hello is None:
            return
        worker = id(self)
        broker.workers += 1
        try:
            with contextlib.suppress(OSError):
                self._serve(broker, worker, line)
        finally:
            broker.died(worker)

    def _serve(self, broker: _Broker, worker: int, line: _Line) -> None:
        while (sent := broker.take(worker)) is not None:
            line.say({"delivery": sent.delivery, "message": dict(sent.message)})
            if line.hear(self.rfile) is None:
                return
            broker.done(worker)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    broker: _Broker
