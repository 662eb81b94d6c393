"""A worker as people start it: `semel worker` in processes of its own, its log read line by line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.worker.helpers import LIMIT, wait_until

ROOT = Path(__file__).parents[2]
APPLICATION = "tests.worker.application:app"


class WorkerProcess:
    """The supervisor's process and what it and its children have logged."""

    def __init__(self, url: str, *arguments: str, app: str = APPLICATION) -> None:
        command = [
            sys.executable,
            "-m",
            "semel.cli",
            "worker",
            app,
            "--database",
            url,
            "--log-format",
            "json",
        ]
        self.process = subprocess.Popen(
            [*command, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in list(self.lines)]

    def children(self) -> list[int]:
        """The children's process ids."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii")
        return [int(pid) for pid in listed.split()]

    def wait_for(self, condition: Callable[[dict[str, Any]], bool], what: str = "") -> dict[str, Any]:
        """The first line of the log that fits."""
        return wait_until(lambda: next(filter(condition, self.log), None), what or "a line of the log")

    def wait_for_message(self, text: str) -> dict[str, Any]:
        return self.wait_for(lambda line: text in line["message"], text)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait; answers the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(LIMIT)
        self._reader.join(LIMIT)
        return code

    def kill(self) -> None:
        """End it and its children at once."""
        with suppress(FileNotFoundError, ProcessLookupError):
            children = self.children()
            self.process.kill()
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)


def has_started(worker: WorkerProcess) -> bool:
    """Whether it says so."""
    return any("worker started" in line["message"] for line in worker.log)


@contextmanager
def running(
    url: str,
    *arguments: str,
    app: str = APPLICATION,
    ready: Callable[[WorkerProcess], object] = has_started,
) -> Iterator[WorkerProcess]:
    """A worker that is ready; whatever is left of it ends with the block."""
    worker = WorkerProcess(url, *arguments, app=app)
    try:
        wait_until(lambda: ready(worker), "the worker to start")
        yield worker
    finally:
        worker.kill()
        worker.process.wait(LIMIT)
