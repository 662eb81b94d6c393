"""A small payment provider, to run the shop against: real HTTP, on loopback.

    GET  /cards/CARD               whether a card can be charged
    POST /charges                  charge it; honours the header Idempotency-Key for a while
    GET  /charges?reference=…      the charges that were made with a reference

It charges what it is asked to charge, as often as it is asked. And it can lose its answers:

    python -m shop.provider --lose 0.3
"""

from __future__ import annotations

import argparse
import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

CHECKED = "a card was checked"
RECEIVED = "a charge was asked for, and not made yet"
CHARGED = "a charge was made, and not answered yet"

# Told where a request is, and for which card. False: the caller gets no answer, but "504 Gateway Timeout".
Fault = Callable[[str, str], bool]


@dataclass(frozen=True)
class Charge:
    id: str
    order: int
    card: str
    amount: int
    reference: str
    idempotency_key: str | None


class Provider:
    """A context manager; it listens on ``port`` of 127.0.0.1 inside. ``charges`` are all that it ever made."""

    def __init__(
        self, *, port: int = 0, remembers: float = 24 * 3600, fault: Fault = lambda point, card: True
    ) -> None:
        self.charges: list[Charge] = []
        self.fault = fault
        self._remembers = remembers
        self._keys: dict[str, tuple[Charge, float]] = {}
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self.port = int(self._server.server_address[1])

    def charge(self, order: int, card: str, amount: int, reference: str, key: str | None) -> Charge:
        """Charge, unless this key was charged within the time that keys are remembered."""
        with self._lock:
            if key is not None and key in self._keys:
                charge, at = self._keys[key]
                if time.monotonic() - at < self._remembers:
                    return charge
            charge = Charge(f"ch_{len(self.charges) + 1}", order, card, amount, reference, key)
            self.charges.append(charge)
            if key is not None:
                self._keys[key] = (charge, time.monotonic())
            return charge

    def find(self, reference: str) -> list[Charge]:
        with self._lock:
            return [charge for charge in self.charges if charge.reference == reference]

    def __enter__(self) -> Provider:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # one may wait inside a fault
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Callers die; that is what the shop is about."""


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if url.path == "/charges":
                reference = parse_qs(url.query).get("reference", [""])[0]
                self.answer(200, {"charges": [asdict(charge) for charge in provider.find(reference)]})
            elif url.path.startswith("/cards/"):
                card = unquote(url.path.removeprefix("/cards/"))
                self.answer_unless_lost(CHECKED, card, 200, {"card": card})
            else:
                self.answer(404, {"error": "there is nothing here"})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            card = str(asked["card"])
            if not provider.fault(RECEIVED, card):
                self.answer(504, {"error": "the provider did not answer in time"})
                return
            if card.startswith("empty"):
                self.answer(402, {"error": "the card has no money on it"})
                return
            key = self.headers.get("Idempotency-Key")
            charge = provider.charge(asked["order"], card, asked["amount"], asked["reference"], key)
            self.answer_unless_lost(CHARGED, card, 201, asdict(charge))

        def answer_unless_lost(self, point: str, card: str, status: int, body: Any) -> None:
            if provider.fault(point, card):
                self.answer(status, body)
            else:
                self.answer(504, {"error": "the provider did not answer in time"})

        def answer(self, status: int, body: Any) -> None:
            content = json.dumps(body).encode()
            with suppress(OSError):  # the caller may be gone
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Nothing: what counts are the charges."""

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description="A payment provider that loses answers.")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--lose", type=float, default=0.3, help="share of charges whose answer is lost")
    options = parser.parse_args()

    def lose(point: str, card: str) -> bool:
        if point == CHARGED:
            lost = random.random() < options.lose
            print(f"charged {card}{', and the answer is lost' if lost else ''}", flush=True)
            return not lost
        return True

    with Provider(port=options.port, fault=lose) as provider:
        print(f"a payment provider on 127.0.0.1:{provider.port}; Ctrl-C ends it", flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
        print(f"{len(provider.charges)} charges of {len({each.order for each in provider.charges})} orders")


if __name__ == "__main__":
    main()
