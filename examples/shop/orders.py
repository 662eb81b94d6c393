"""The application's own table. It knows nothing of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import class_row

Connection = psycopg.Connection[Any]


@dataclass(frozen=True)
class Order:
    id: int
    card: str
    amount: int


def create_tables(connection: Connection) -> None:
    connection.execute(Path(__file__).with_name("schema.sql").read_bytes())


def add_order(connection: Connection, card: str, amount: int) -> Order:
    with connection.cursor(row_factory=class_row(Order)) as cursor:
        cursor.execute(
            "INSERT INTO orders (card, amount) VALUES (%s, %s) RETURNING id, card, amount", (card, amount)
        )
        order = cursor.fetchone()
    assert order is not None
    return order


def find_order(connection: Connection, order_id: int) -> Order:
    with connection.cursor(row_factory=class_row(Order)) as cursor:
        order = cursor.execute("SELECT id, card, amount FROM orders WHERE id = %s", (order_id,)).fetchone()
    if order is None:
        raise LookupError(f"there is no order {order_id}")
    return order
