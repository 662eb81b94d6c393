"""A small program among the user's code, on the other end of two pipes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from semel.errors import WorkerDidNotStart


class AsideFailed(Exception):
    """The program answered with an error, which is the text."""


class Aside:
    """A program of ``semel.replay.inside``, started in the code's folder. Safe to share between threads."""

    def __init__(
        self, module: str, arguments: Sequence[str], *, code: Path, environment: Mapping[str, str], log: Path
    ) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._lock = threading.Lock()
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(  # noqa: S603  # a module of semel's own
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=code,
                env=dict(environment),
                start_new_session=True,
            )

    def ask(self, what: str, **told: Any) -> Any:
        """One request and its answer. Raises AsideFailed, and WorkerDidNotStart where the program has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            try:
                self._process.stdin.write(json.dumps({"ask": what, **told}).encode() + b"\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except OSError:
                line = b""
        if not line:
            log = self._log.read_text("utf-8", errors="replace")
            raise WorkerDidNotStart(self._command, log[-2000:])
        answer = json.loads(line)
        if "error" in answer:
            raise AsideFailed(answer["error"])
        return answer["answer"]

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait(20)
        self._process.stdin.close()
        self._process.stdout.close()
