"""The application's own table. It knows nothing of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import class_row

Connection = psycopg.Connection[Any]


@dataclass(frozen=True)
class User:
    id: int
    name: str
    email: str


def create_tables(connection: Connection) -> None:
    connection.execute(Path(__file__).with_name("schema.sql").read_bytes())


def add_user(connection: Connection, name: str, email: str) -> User:
    with connection.cursor(row_factory=class_row(User)) as cursor:
        cursor.execute(
            "INSERT INTO users (name, email) VALUES (%s, %s) RETURNING id, name, email", (name, email)
        )
        user = cursor.fetchone()
    assert user is not None
    return user


def find_user(connection: Connection, user_id: int) -> User | None:
    with connection.cursor(row_factory=class_row(User)) as cursor:
        return cursor.execute("SELECT id, name, email FROM users WHERE id = %s", (user_id,)).fetchone()


def list_users(connection: Connection) -> list[User]:
    with connection.cursor(row_factory=class_row(User)) as cursor:
        return cursor.execute("SELECT id, name, email FROM users ORDER BY id").fetchall()
