"""The recording proxy, between real processes that ask and a real server that answers."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import until

from semel.errors import ConfigurationError
from semel.replay.control import ControlRoom
from semel.replay.events import Do, Event, Point
from semel.replay.proxy import Proxy, Rule, open_proxy

ASK = """
import sys, urllib.request
method, url, body = sys.argv[1:]
request = urllib.request.Request(url, data=body.encode() or None, method=method)
with urllib.request.urlopen(request) as answer:
    print(answer.status, answer.read().decode())
"""


@dataclass
class Upstream:
    """The outside system: what it was asked."""

    url: str = ""
    asked: list[tuple[str, str, bytes, dict[str, str]]] = field(default_factory=list)
    status: int = 200
    body: bytes = b""
    """What is answered; empty: how many were asked before."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        upstream: Upstream = self.server.upstream  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        upstream.asked.append((self.command, self.path, body, dict(self.headers.items())))
        answer = upstream.body or json.dumps({"id": len(upstream.asked)}).encode()
        self.send_response(upstream.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_HEAD = do_PUT = do_POST  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def run_upstream(context: ssl.SSLContext | None = None) -> Iterator[Upstream]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    upstream = Upstream()
    server.upstream = upstream  # type: ignore[attr-defined]
    scheme = "http"
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    upstream.url = f"{scheme}://localhost:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield upstream
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with run_upstream() as made:
        yield made


@pytest.fixture
def room() -> Iterator[ControlRoom]:
    made = ControlRoom()
    made.expect(1)
    yield made
    made.close()


@pytest.fixture
def run(upstream: Upstream, room: ControlRoom) -> Iterator[Callable[..., Proxy]]:
    """Makes a proxy before the upstream."""
    with ExitStack() as ended:

        def make(**options: Any) -> Proxy:
            rule = Rule(**{"upstream": f"{upstream.url}/v1", "variable": "PROVIDER"} | options)
            return ended.enter_context(open_proxy(rule, room))

        yield make


def start(proxy: Proxy, method: str, path: str, body: str = "") -> subprocess.Popen[str]:
    """A process that asks once."""
    url = f"{proxy.environment['PROVIDER']}{path}"
    return subprocess.Popen(
        [sys.executable, "-c", ASK, method, url, body],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
    )


def points(room: ControlRoom) -> list[str]:
    return [str(each.point) for each in room.events()]


def test_a_request_passes_and_is_noted(
    run: Callable[..., Proxy], upstream: Upstream, room: ControlRoom
) -> None:
    proxy = run(dwell=0.1)
    process = start(proxy, "POST", "/charges?x=1", "order-1")
    told, _ = process.communicate(timeout=30)
    assert told == '200 {"id": 1}\n'
    ((method, path, body, headers),) = upstream.asked
    assert (method, path, body) == ("POST", "/v1/charges?x=1", b"order-1")
    assert headers["Host"] == upstream.url.removeprefix("http://")
    entry, answer = room.events(1)
    assert (entry.point, answer.point) == (Point.ENTRY, Point.RETURN)
    assert entry.pid == answer.pid == process.pid
    assert entry.digest == answer.digest
    assert answer.at - entry.at >= 0.1
    assert answer.detail == {"request": "POST /v1/charges?x=1", "status": 200}


@pytest.mark.parametrize(("point", "asked"), [(Point.ENTRY, 0), (Point.RETURN, 1)])
def test_who_asks_is_killed_before_or_after_the_effect(
    run: Callable[..., Proxy], upstream: Upstream, room: ControlRoom, point: Point, asked: int
) -> None:
    proxy = run()
    room.tell(1, point, Do.KILL)
    process = start(proxy, "POST", "/charges", "order-1")
    assert process.wait(30) == -signal.SIGKILL
    assert len(upstream.asked) == asked
    assert points(room)[-1] == point


def test_what_was_asked_by_a_process_that_was_killed_from_outside_goes_nowhere(
    run: Callable[..., Proxy], upstream: Upstream, room: ControlRoom
) -> None:
    proxy = run()
    room.hold(1, Point.ENTRY)
    process = start(proxy, "POST", "/charges", "order-1")
    room.wait_for(1, Point.ENTRY, 1, 30)
    process.kill()
    process.wait(30)
    room.release(1, Point.ENTRY)
    told, _ = start(proxy, "POST", "/charges", "order-2").communicate(timeout=30)
    assert told.startswith("200")
    assert [body for _, _, body, _ in upstream.asked] == [b"order-2"]


def test_who_is_stopped_asks_when_it_is_woken(
    run: Callable[..., Proxy], upstream: Upstream, room: ControlRoom
) -> None:
    proxy = run()
    room.tell(1, Point.ENTRY, Do.STOP)
    process = start(proxy, "POST", "/charges", "order-1")
    stat = Path(f"/proc/{process.pid}/stat")
    until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "it is stopped")
    assert upstream.asked == []
    os.kill(process.pid, signal.SIGCONT)
    assert process.communicate(timeout=30)[0].startswith("200")
    assert len(upstream.asked) == 1


@pytest.mark.parametrize(
    ("point", "do", "asked"),
    [
        (Point.ENTRY, Do.RAISE, 0),
        (Point.RETURN, Do.RAISE, 1),
        (Point.ENTRY, Do.CUT, 0),
        (Point.RETURN, Do.CUT, 1),
    ],
)
def test_who_asks_is_told_nothing_good(
    run: Callable[..., Proxy], upstream: Upstream, room: ControlRoom, point: Point, do: Do, asked: int
) -> None:
    proxy = run()
    room.tell(1, point, do)
    process = start(proxy, "POST", "/charges", "order-1")
    process.communicate(timeout=30)
    assert process.returncode == 1
    assert len(upstream.asked) == asked


def test_only_effects_are_noted(run: Callable[..., Proxy], upstream: Upstream, room: ControlRoom) -> None:
    proxy = run()
    assert start(proxy, "GET", "/charges").communicate(timeout=30)[0] == '200 {"id": 1}\n'
    assert start(proxy, "HEAD", "/charges").communicate(timeout=30)[0] == "200 \n"
    assert points(room) == []
    only = run(only="^POST /v1/charges$")
    for path in ("/charges?a=b", "/customers"):
        start(only, "POST", path, "x").communicate(timeout=30)
    assert [each.detail["request"] for each in room.events(1, Point.ENTRY)] == ["POST /v1/charges?a=b"]
    assert len(upstream.asked) == 4


def test_it_answers_by_itself(run: Callable[..., Proxy], upstream: Upstream, room: ControlRoom) -> None:
    proxy = run(answer={"status": 201, "body": {"id": 7}})
    assert start(proxy, "POST", "/charges", "x").communicate(timeout=30)[0] == '201 {"id": 7}\n'
    assert points(room) == ["entry", "return"]
    assert upstream.asked == []


def test_equal_requests_have_one_digest(run: Callable[..., Proxy], room: ControlRoom) -> None:
    proxy = run()
    for body in ("order-1", "order-1", "order-2"):
        start(proxy, "POST", "/charges", body).communicate(timeout=30)
    first, same, other = (each.digest for each in room.events(1, Point.ENTRY))
    assert first == same != other


def test_chunks_and_a_kept_connection(
    run: Callable[..., Proxy], upstream: Upstream, room: ControlRoom
) -> None:
    proxy = run()
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=30)
    for number in range(2):
        connection.request("PUT", f"/v1/charges/{number}", iter([b"one", b"two"]), encode_chunked=True)
        assert json.loads(connection.getresponse().read()) == {"id": number + 1}
    connection.close()
    assert [body for _, _, body, _ in upstream.asked] == [b"onetwo"] * 2
    assert {each.pid for each in room.events()} == {os.getpid()}


def test_a_refusal_is_an_answer_and_silence_is_none(
    run: Callable[..., Proxy], upstream: Upstream, room: ControlRoom
) -> None:
    upstream.status = 409
    proxy = run()
    assert start(proxy, "POST", "/charges", "x").wait(30) == 1
    assert room.events(1, Point.RETURN)[0].detail["status"] == 409
    nobody = run(upstream="http://127.0.0.1:1")
    assert start(nobody, "POST", "/charges", "x").wait(30) == 1
    assert points(room) == ["entry", "return", "entry", "raised"]


def test_the_delivery_is_the_one_that_the_process_is_at(run: Callable[..., Proxy], room: ControlRoom) -> None:
    proxy = run()
    room.expect(None)
    room.know("message-5", 5)
    room.arrive(Event(point=Point.BEGIN, pid=os.getpid(), at=1.0, delivery="message-5"))
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=30)
    connection.request("POST", "/v1/charges", b"x")
    connection.getresponse().read()
    assert [str(each.point) for each in room.events(5)] == ["begin", "entry", "return"]
    room.arrive(Event(point=Point.END, pid=os.getpid(), at=2.0, delivery="message-5"))
    connection.request("POST", "/v1/charges", b"x")
    connection.getresponse().read()
    connection.close()
    assert len(room.events(5)) == 4
    assert len(room.events()) == 6


def test_it_is_an_http_proxy_where_there_is_no_variable(
    run: Callable[..., Proxy], upstream: Upstream, room: ControlRoom
) -> None:
    proxy = run(variable=None)
    assert set(proxy.environment) == {"HTTP_PROXY", "http_proxy"}
    with run_upstream() as other:
        for url in (f"{upstream.url}/v1/charges", f"{other.url}/mails"):
            done = subprocess.run(
                [sys.executable, "-c", ASK, "POST", url, "x"],
                env={"PATH": os.environ["PATH"], **proxy.environment},
                check=True,
                capture_output=True,
                text=True,
            )
            assert done.stdout.startswith("200")
        assert len(other.asked) == 1
    assert [each.detail["request"] for each in room.events(1, Point.ENTRY)] == ["POST /v1/charges"]
    with pytest.raises(ConfigurationError, match="https cannot be looked into"):
        Rule("https://api.example.com")


def test_an_upstream_by_https(room: ControlRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with run_upstream(context) as upstream, open_proxy(Rule(upstream.url, "PROVIDER"), room) as proxy:
        assert start(proxy, "POST", "/charges", "x").wait(30) == 1
        assert upstream.asked == [], "nobody vouches for it"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert start(proxy, "POST", "/charges", "x").communicate(timeout=30)[0] == '200 {"id": 1}\n'
    assert points(room) == ["entry", "raised", "entry", "return"]
