"""The job without a guard, and under guards of other kinds. Each is right somewhere and wrong somewhere."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import provider
import table

if "REDIS" in os.environ:
    import redis

    SERVER: Any = redis.Redis.from_url(os.environ["REDIS"])
TTL = 2500
"""Milliseconds that a lock lives."""
DONE: set[int] = set()
LOCK = threading.Lock()


def nothing(order_id: int) -> None:
    provider.charge(order_id)


def in_memory(order_id: int) -> None:
    """A set in this process."""
    with LOCK:
        if order_id in DONE:
            return
        provider.charge(order_id)
        DONE.add(order_id)


def redis_lock(order_id: int) -> None:
    """SET NX PX around the job; taken away afterwards, by whoever comes to it."""
    if not SERVER.set(f"lock:{order_id}", "1", nx=True, px=TTL):
        return
    try:
        provider.charge(order_id)
    finally:
        SERVER.delete(f"lock:{order_id}")


def redis_mark(order_id: int) -> None:
    """SET NX PX before the job, and left there."""
    if SERVER.set(f"mark:{order_id}", "1", nx=True, px=TTL):
        provider.charge(order_id)


def select_then_act(order_id: int) -> None:
    with _table("seen (order_id INTEGER)") as claims:
        if claims.execute("SELECT 1 FROM seen WHERE order_id = ?", (order_id,)).fetchone():
            return
        provider.charge(order_id)
        claims.execute("INSERT INTO seen VALUES (?)", (order_id,))


def row_deleted_on_error(order_id: int) -> None:
    """A unique row, which an exception takes away again."""
    with _table("claims (order_id INTEGER PRIMARY KEY)") as claims:
        if not _insert(claims, order_id):
            return
        try:
            provider.charge(order_id)
        except BaseException:
            claims.execute("DELETE FROM claims WHERE order_id = ?", (order_id,))
            raise


def done_before_the_effect(order_id: int) -> None:
    """A unique row that says "done", and then the effect."""
    with _table("claims (order_id INTEGER PRIMARY KEY)") as claims:
        if _insert(claims, order_id):
            provider.charge(order_id)


def behind_a_flag(order_id: int) -> None:
    """`row_deleted_on_error`, unless UNGUARDED says otherwise: for a control by the environment."""
    if os.environ.get("UNGUARDED"):
        provider.charge(order_id)
    else:
        row_deleted_on_error(order_id)


def by_another_name(order_id: int) -> None:
    """Calls the provider by a name from before it was watched."""
    table.PAY["charge"](order_id)


def _insert(claims: Any, order_id: int) -> bool:
    found = claims.execute("INSERT INTO claims VALUES (?) ON CONFLICT DO NOTHING", (order_id,))
    return bool(found.rowcount)


@contextmanager
def _table(made: str) -> Iterator[Any]:
    connection = sqlite3.connect(os.environ["TARGET"], isolation_level=None, timeout=10)
    try:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {made}")
        yield connection
    finally:
        connection.close()


def main() -> None:
    """As a command: the order's number."""
    import sys

    nothing(int(sys.argv[1]))
    time.sleep(0)


if __name__ == "__main__":
    main()
