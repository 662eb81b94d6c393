"""A bank for trying things out: an HTTP server on loopback that pays whatever it is told, also what it has paid before.

    BANK_URL=http://127.0.0.1:8100 python -m bank --ledger bank.db

POST /payments {payee, amount, note, reference} pays; GET /payments?note=… or ?reference=… lists what was paid.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sqlite3
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TABLE = "CREATE TABLE IF NOT EXISTS payments (id TEXT, payee TEXT, amount INTEGER, note TEXT, reference TEXT)"
PAY = "INSERT INTO payments VALUES (:id, :payee, :amount, :note, :reference)"
FIND = """SELECT id, payee, amount, note, reference FROM payments
           WHERE note = coalesce(:note, note) AND reference = coalesce(:reference, reference)"""


class Teller(BaseHTTPRequestHandler):
    """One request."""

    ledger: str

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        payment = {"id": f"pay_{secrets.token_hex(4)}", "note": "", "reference": "", **told}
        with sqlite3.connect(self.ledger, timeout=20) as ledger:
            ledger.execute(PAY, payment)
        self.answer(201, {"id": payment["id"]})

    def do_GET(self) -> None:
        wanted = {"note": None, "reference": None, **dict(parse_qsl(urlsplit(self.path).query))}
        with sqlite3.connect(self.ledger, timeout=20) as ledger:
            rows = ledger.execute(FIND, wanted).fetchall()
        names = ("id", "payee", "amount", "note", "reference")
        self.answer(200, {"payments": [dict(zip(names, row, strict=True)) for row in rows]})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        sent = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="bank")
    parser.add_argument("--port", type=int, default=urlsplit(os.environ.get("BANK_URL", "")).port or 8100)
    parser.add_argument("--ledger", default="bank.db")
    told = parser.parse_args()
    with sqlite3.connect(told.ledger) as ledger:
        ledger.execute("PRAGMA journal_mode = WAL")
        ledger.execute(TABLE)
    Teller.ledger = told.ledger
    with ThreadingHTTPServer(("127.0.0.1", told.port), Teller) as server:
        print(f"the bank is open on port {server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
