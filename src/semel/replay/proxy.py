"""The recording proxy: what a job asks of an outside system passes here, is noted, counted, held and cut off.

Workers find it under the description's ``variable`` in the outside system's place, and what they ask goes on to that system
by http or https. Without a variable it is their HTTP proxy; then only ``http://`` can be looked into. The request of a
process that was killed at its entry goes nowhere.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from semel.core.durations import to_timedelta
from semel.errors import ConfigurationError
from semel.replay import peers
from semel.replay.control import ControlRoom
from semel.replay.description import Description
from semel.replay.events import Do, Event, Point
from semel.replay.processes import descendants, state_of

_WITHOUT_EFFECT: Final = ("GET", "HEAD", "OPTIONS")
_OF_ONE_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade", "content-length"),
    }
)
_UPSTREAM_WITHIN: Final = 60.0
_LOOK: Final = 0.01


@dataclass(frozen=True)
class Rule:
    """What is proxied, and what of it has the effect."""

    upstream: str
    variable: str | None = None
    answer: Mapping[str, Any] | None = None
    only: str | None = None
    dwell: float = 0.0
    """Seconds that an effect takes at least."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.upstream)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"watch.http is no address of a web server: {self.upstream!r}.")
        if parts.scheme == "https" and self.variable is None:
            raise ConfigurationError(
                "https cannot be looked into on its way through a proxy.",
                remedy="Name the variable that the job reads the address from: watch.variable.",
            )

    def has_effect(self, method: str, path: str) -> bool:
        """Whether a request is counted."""
        if self.only is None:
            return method not in _WITHOUT_EFFECT
        return re.search(self.only, f"{method} {path.partition('?')[0]}") is not None


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def digest(self) -> str:
        """Of what is asked, not of how it is labelled."""
        parts = (self.method.encode(), self.path.encode(), self.body)
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


@dataclass(frozen=True)
class Answered:
    """One answer."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    is_known: bool = True
    """Whether the outside system answered, or the description for it; else nobody knows."""


class Proxy:
    """One that runs."""

    def __init__(self, rule: Rule, room: ControlRoom, port: int) -> None:
        self.rule = rule
        self.room = room
        self.port = port

    @property
    def environment(self) -> dict[str, str]:
        """For the workers; an upstream's own path is kept."""
        here = f"http://127.0.0.1:{self.port}"
        if self.rule.variable is None:
            return {"HTTP_PROXY": here, "http_proxy": here}
        return {self.rule.variable: here + urlsplit(self.rule.upstream).path}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def handle_one_request(self) -> None:
        """Every method is the same here."""
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline:
            self.close_connection = True
            return
        if self.parse_request():
            self._pass()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def _pass(self) -> None:
        rule = self.server.proxy.rule
        if self.command == "CONNECT":
            self._give(_refused(501, "replay's proxy does not tunnel https: name watch.variable"))
            return
        asked = Asked(self.command, _path(self.path), list(self.headers.items()), self._read_body())
        watched = self._target()
        is_watched = watched == _origin(urlsplit(rule.upstream))
        if is_watched and rule.has_effect(asked.method, asked.path):
            self._pass_effect(asked, watched)
        else:
            self._give(self._ask(asked, watched, is_watched=is_watched))

    def _pass_effect(self, asked: Asked, target: SplitResult) -> None:
        """Entry, the effect, its return; each may end the request, and the first before it went anywhere."""
        pid = self._pid()
        do = self._arrive(Point.ENTRY, asked, pid, {})
        if do is Do.RAISE:
            self._give(_refused(503, "replay raises at the entry"))
            return
        if not self._goes_on(do, pid):
            self.close_connection = True
            return
        began = time.monotonic()
        answer = self._ask(asked, target, is_watched=True)
        time.sleep(max(0.0, self.server.proxy.rule.dwell - (time.monotonic() - began)))
        point = Point.RETURN if answer.is_known else Point.RAISED
        do = self._arrive(point, asked, pid, {"status": answer.status})
        if do is Do.RAISE or not self._goes_on(do, pid):
            self.close_connection = True
            return
        self._give(answer)

    def _arrive(self, point: Point, asked: Asked, pid: int, detail: Mapping[str, Any]) -> Do:
        room = self.server.proxy.room
        delivery, operation = _delivery_of(room, pid)
        return room.arrive(
            Event(
                point=point,
                pid=pid,
                at=time.monotonic(),
                thread=threading.get_ident(),
                delivery=delivery,
                operation=operation,
                digest=asked.digest,
                detail={"request": f"{asked.method} {asked.path}", **detail},
            )
        )

    def _goes_on(self, do: Do, pid: int) -> bool:
        """Do it to the process that asked; whether the request goes on."""
        if do is Do.CUT:
            return False
        if do in (Do.KILL, Do.STOP) and not pid:
            return False
        if do is Do.KILL:
            os.kill(pid, signal.SIGKILL)
            return False
        if do is Do.STOP:
            os.kill(pid, signal.SIGSTOP)
            _wait_woken(pid)
        return self._is_there()

    def _is_there(self) -> bool:
        """Whether somebody still waits for the answer: a killed process's connection is closed."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return not readable or self.connection.recv(1, socket.MSG_PEEK) != b""
        except OSError:
            return False

    def _ask(self, asked: Asked, target: SplitResult, *, is_watched: bool) -> Answered:
        """What the upstream answers, or what the description says in its place."""
        rule = self.server.proxy.rule
        if is_watched and rule.answer is not None and rule.has_effect(asked.method, asked.path):
            return _made(rule.answer)
        kind = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
        upstream = kind(target.netloc, timeout=_UPSTREAM_WITHIN)
        try:
            upstream.putrequest(asked.method, asked.path, skip_host=True, skip_accept_encoding=True)
            usual = ":443" if target.scheme == "https" else ":80"
            upstream.putheader("Host", target.netloc.removesuffix(usual))
            for name, value in asked.headers:
                if name.lower() not in _OF_ONE_HOP and name.lower() not in ("host", "expect"):
                    upstream.putheader(name, value)
            if asked.body or asked.method not in _WITHOUT_EFFECT:
                upstream.putheader("Content-Length", str(len(asked.body)))
            upstream.endheaders(asked.body or None)
            told = upstream.getresponse()
            return Answered(told.status, told.getheaders(), told.read())
        except (OSError, http.client.HTTPException) as error:
            return _refused(502, f"replay's proxy got no answer from {target.netloc}: {error}")
        finally:
            upstream.close()

    def _give(self, answer: Answered) -> None:
        try:
            self.send_response_only(answer.status)
            for name, value in answer.headers:
                if name.lower() not in _OF_ONE_HOP:
                    self.send_header(name, value)
            if answer.status >= 200 and answer.status not in (204, 304):
                length = {name.lower(): value for name, value in answer.headers}.get("content-length")
                without = self.command == "HEAD" and length is not None
                self.send_header("Content-Length", str(length) if without else str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)
        except OSError:  # it was killed while it waited
            self.close_connection = True

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(1024).partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline(8)
        while self.rfile.readline(65537).strip():
            pass  # trailers

    def _target(self) -> SplitResult:
        """Where it goes on to: as the HTTP proxy that it may be, to whom the request names."""
        parts = urlsplit(self.path)
        named = parts if parts.scheme and parts.netloc else urlsplit(self.server.proxy.rule.upstream)
        return _origin(named)

    def _pid(self) -> int:
        """Of the workers', who asks; 0 where nobody can tell."""
        port, here = self.client_address[1], self.server.proxy.port
        return peers.process_of(port, here, reversed(descendants(os.getpid()))) or peers.process_of(
            port, here, [os.getpid()]
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    proxy: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A worker that was killed while it asked is what this is for."""


@contextmanager
def open_proxy(rule: Rule, room: ControlRoom) -> Iterator[Proxy]:
    """Run one on loopback."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.proxy = Proxy(rule, room, int(server.server_address[1]))
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server.proxy
        finally:
            server.shutdown()


@contextmanager
def proxied(description: Description, room: ControlRoom) -> Iterator[Mapping[str, str]]:
    """What the workers' environment says of a proxy while it runs: nothing where no address is watched."""
    watch = description.watch
    if watch.http is None:
        yield {}
        return
    dwell = to_timedelta(watch.dwell, name="watch.dwell").total_seconds()
    rule = Rule(watch.http, watch.variable, watch.answer, watch.only, dwell)
    with open_proxy(rule, room) as proxy:
        yield proxy.environment


def _delivery_of(room: ControlRoom, pid: int) -> tuple[str, int | None]:
    """What the process is at, by its wrapper's word, where it is at one thing."""
    under_way: dict[str, int | None] = {}
    for event in room.events() if pid else ():
        if event.pid == pid and event.point is Point.BEGIN:
            under_way[event.delivery] = event.operation
        elif event.pid == pid and event.point is Point.END:
            under_way.pop(event.delivery, None)
    return next(iter(under_way.items())) if len(under_way) == 1 else ("", None)


def _wait_woken(pid: int) -> None:
    """Until it runs again, or has ended."""
    time.sleep(_LOOK)
    while state_of(pid) == "T":
        time.sleep(_LOOK)


def _made(answer: Mapping[str, Any]) -> Answered:
    body = answer.get("body", "")
    headers = {str(name): str(value) for name, value in (answer.get("headers") or {}).items()}
    if not isinstance(body, str):
        body = json.dumps(body)
        headers = {"Content-Type": "application/json", **headers}
    return Answered(int(answer.get("status", 200)), list(headers.items()), body.encode())


def _refused(status: int, why: str) -> Answered:
    return Answered(status, [], f"{why}\n".encode(), is_known=False)


def _path(target: str) -> str:
    """What the origin is asked: of a proxy's request, without the origin."""
    parts = urlsplit(target)
    if not parts.scheme or not parts.netloc:
        return target
    return parts._replace(scheme="", netloc="", fragment="").geturl() or "/"


def _origin(parts: SplitResult) -> SplitResult:
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return SplitResult(parts.scheme, f"{host}:{port}", "", "", "")
