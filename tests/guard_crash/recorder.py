"""The outside system: a small payment provider over HTTP on loopback. Effects are counted here, where they arrive."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support import json_server
from tests.support.json_server import serve


class Recorder:
    """What arrived. A charge with ``honours`` and a reference that is known is answered without a second effect."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_reference: dict[str, str] = {}
        self.charges: Counter[str] = Counter()
        """Effects by name."""
        self.calls: Counter[str] = Counter()
        self.references: dict[str, list[str]] = defaultdict(list)

    def charge(self, told: dict[str, Any]) -> dict[str, Any]:
        name, reference = told["name"], told["reference"]
        with self._lock:
            self.calls[name] += 1
            self.references[name].append(reference)
            known = self._by_reference.get(reference)
            if known is None or not told["honours"]:
                self.charges[name] += 1
                known = f"charge-{name}-{self.charges[name]}"
                self._by_reference[reference] = known
        time.sleep(told.get("dwell", 0.0))
        return {"id": known}

    def find(self, told: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            return {"id": self._by_reference.get(told["reference"])}


@contextmanager
def run_recorder() -> Iterator[tuple[Recorder, int]]:
    """The recorder and its port."""
    recorder = Recorder()
    with serve({"charge": recorder.charge, "find": recorder.find}) as port:
        yield recorder, port


def post(port: int, path: str, **told: Any) -> Any:
    """One call to it."""
    return json_server.post(port, path, told)
