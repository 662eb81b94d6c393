"""The outside system: a small payment provider over HTTP on loopback. Effects are counted here, where they arrive."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        recorder: Recorder = self.server.recorder  # type: ignore[attr-defined]
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = getattr(recorder, self.path.strip("/"))(told)
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that was killed while it waited for its answer is what these tests are about."""


@contextmanager
def run_recorder() -> Iterator[tuple[Recorder, int]]:
    """The recorder and its port."""
    recorder = Recorder()
    server = _Server(("127.0.0.1", 0), _Handler)
    server.recorder = recorder  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield recorder, server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def post(port: int, path: str, **told: Any) -> Any:
    """One call to it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", f"/{path}", json.dumps(told))
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()
