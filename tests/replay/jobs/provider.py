"""The outside system: it writes down what it received, one line a call, where the test can read it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

RECEIVED = Path(os.environ.get("RECEIVED", "received"))


def charge(order_id: int, key: str | None = None) -> None:
    """One effect; under a key that it knows already, none."""
    if key is not None and f"{order_id} {key}" in received():
        return
    _write(f"{order_id} {key or ''}".strip())


async def charge_async(order_id: int, key: str | None = None) -> None:
    charge(order_id, key)


def insert(connection: Any, order_id: int) -> None:
    """The effect of a `Row()`: a row of the transaction's."""
    cursor = connection.cursor()
    mark = "?" if type(connection).__module__.startswith("sqlite3") else "%s"
    cursor.execute(f"INSERT INTO effects (order_id) VALUES ({mark})", (order_id,))


def is_known(order_id: int) -> bool:
    """Whether it has this order."""
    return any(line.split()[0] == str(order_id) for line in received())


def received() -> list[str]:
    return RECEIVED.read_text().splitlines() if RECEIVED.exists() else []


def _write(line: str) -> None:
    file = os.open(RECEIVED, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)
