"""Relays under test: processes that can be killed, paused, and told to die at a statement."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any, Self

from tests.support.waiting import until

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "tests.relay.application",
        "semel.relay.service",
        "redis",
        "nats",
        "pika.adapters.asyncio_connection",
        "boto3",
        "celery",
    ]
)
"""A relay starts in milliseconds: what it imports is there already."""


class RelayProcess:
    """``run_relay`` in a process of its own. ``death`` is (moment, statement, turn): it kills itself there.

    ``early``: it is wrong, and sends a message so long after it called it confirmed.
    """

    def __init__(
        self,
        url: str,
        directory: Path,
        target: dict[str, Any],
        *,
        name: str = "relay",
        drain: bool = False,
        lease: float = 1.0,
        death: tuple[str, str, int] | None = None,
        early: float = 0.0,
        **route: Any,
    ) -> None:
        self.log_path = directory / f"{name}.log"
        self.figures_path = directory / f"{name}-{os.urandom(4).hex()}.json"
        self.log_path.touch()
        told = {
            "url": url,
            "target": target,
            "route": route,
            "lease": lease,
            "drain": drain,
            "death": death,
            "early": early,
            "log": str(self.log_path),
            "figures": str(self.figures_path),
        }
        self._begins_at = len(self.log)
        self.process = PROCESSES.Process(target=serve, args=(json.dumps(told),), daemon=True)
        self.process.start()

    @property
    def log(self) -> str:
        return self.log_path.read_text("utf-8")

    @property
    def ended(self) -> bool:
        return not self.process.is_alive()

    def started(self) -> Self:
        until(lambda: "relay started" in self.log[self._begins_at :] or self.ended, "the relay started")
        assert not self.ended, self.log
        return self

    def send(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def stop(self, limit: float = 60.0) -> dict[str, Any]:
        """SIGTERM; what it has done."""
        self.process.terminate()
        return self.finish(limit)

    def finish(self, limit: float = 60.0) -> dict[str, Any]:
        """Wait for its end; what it has done."""
        self.process.join(limit)
        assert self.process.exitcode == 0, f"{self.process.exitcode}: {self.log[-5000:]}"
        found: dict[str, Any] = json.loads(self.figures_path.read_text("utf-8"))
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.ended:
            self.kill()


def serve(text: str) -> None:
    """What the process runs."""
    from tests.relay.application import app, make_target
    from tests.relay.broken import Early

    from semel.queue.worker.logs import configure_logging
    from semel.relay import Relay, Route
    from semel.relay.service import run_relay

    told = json.loads(text)
    log = os.open(told["log"], os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 2)
    configure_logging("text", "info")
    app.point_to(told["url"])
    if told["death"] is not None:
        app.database.watch = _watch(*told["death"])
    target = make_target(told["target"])
    if told["early"]:
        target = Early(target, told["early"])
    relay = Relay(app, {"out": Route(target, **told["route"])}, lease=told["lease"])
    figures = run_relay(relay, drain=told["drain"])
    Path(told["figures"]).write_text(json.dumps(figures["out"].report()), "utf-8")


def _watch(moment: str, statement: str, turn: int) -> Any:
    passed = 0

    def watch(at: str, name: str) -> None:
        nonlocal passed
        if (at, name) == (moment, statement):
            passed += 1
            if passed == turn:
                os.kill(os.getpid(), signal.SIGKILL)

    return watch
