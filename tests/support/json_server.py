"""A small server on loopback that tests and the processes under test speak JSON to."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Calls = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]
"""What answers each path."""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        calls: Calls = self.server.calls  # type: ignore[attr-defined]
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(calls[self.path.strip("/")](told)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that was killed while it waited for its answer is what these tests are about."""


@contextmanager
def serve(calls: Calls) -> Iterator[int]:
    """The port of a server that answers ``POST /name`` by ``calls[name]``."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.calls = calls  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def post(port: int, path: str, told: Mapping[str, Any], *, timeout: float = 20) -> Any:
    """One call to it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", f"/{path}", json.dumps(told))
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()
