"""What the database holds, looked at and arranged on a plain connection of the test's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pymysql

TIMES = ("claimed_at", "lease_until", "acting_at", "unsure_until", "reference_at", "completed_at")
PLAIN = (
    *(
        "state",
        "outcome",
        "revision",
        "claim",
        "claims",
        "token",
        "unsure",
        "takeovers",
        "looks",
        "extra_used",
    ),
    *("reference", "generation", "fingerprint", "effect", "transaction_id", "result", "result_dropped"),
    *("last_error", "held_reason", "message", "label", "key_version"),
)


@dataclass(frozen=True)
class Ago:
    """A time, in seconds before the database's now; negative for one to come."""

    seconds: float


@dataclass(frozen=True)
class Dialect:
    """How one database writes the few things that tests need."""

    operations: str
    events: str
    key: str
    age: Callable[[str], str]
    ago: Callable[[float], str]


DIALECTS = {
    "postgresql": Dialect(
        "semel.operations",
        "semel.operation_events",
        "encode(key, 'hex')",
        lambda column: f"CAST(extract(epoch FROM clock_timestamp() - {column}) AS double precision)",
        lambda seconds: f"clock_timestamp() - make_interval(secs => {seconds})",
    ),
    "mysql": Dialect(
        "semel_operations",
        "semel_operation_events",
        "lower(hex(`key`))",
        lambda column: f"TIMESTAMPDIFF(MICROSECOND, {column}, UTC_TIMESTAMP(6)) / 1000000",
        lambda seconds: f"UTC_TIMESTAMP(6) - INTERVAL {seconds} SECOND",
    ),
    "sqlite": Dialect(
        "semel_operations",
        "semel_operation_events",
        "CAST(key AS TEXT)",
        lambda column: f"(julianday('now') - 2440587.5) * 86400.0 - {column}",
        lambda seconds: f"(julianday('now') - 2440587.5) * 86400.0 - ({seconds})",
    ),
}


class Stored:
    """The records of one database."""

    def __init__(self, dialect: str, connect: Callable[[], Any]) -> None:
        self.dialect = dialect
        self._words = DIALECTS[dialect]
        self._connection = connect()

    @classmethod
    def at(cls, dialect: str, place: Any) -> Stored:
        connect = {
            "postgresql": lambda: psycopg.connect(place, autocommit=True),
            "mysql": lambda: place[0].connect(place[1], autocommit=True),
            "sqlite": lambda: sqlite3.connect(
                place, isolation_level=None, timeout=30, check_same_thread=False
            ),
        }
        return cls(dialect, connect[dialect])

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.cursor()
        try:
            cursor.execute(text)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            cursor.close()

    def change(self, key: str, **columns: Any) -> None:
        """Set columns of one record: None, text, numbers, or `Ago`."""
        if not columns:
            return
        sets = ", ".join(f"{name} = {self._literal(value)}" for name, value in columns.items())
        self.ask(f"UPDATE {self._words.operations} SET {sets} WHERE {self._words.key} = '{key}'")

    def record(self, key: str) -> dict[str, Any] | None:
        """One record; its times as seconds ago."""
        ages = ", ".join(self._words.age(name) for name in TIMES)
        rows = self.ask(
            f"SELECT {', '.join(PLAIN)}, {ages} FROM {self._words.operations} WHERE {self._words.key} = '{key}'"
        )
        if not rows:
            return None
        assert len(rows) == 1
        values = [value.decode() if isinstance(value, bytes) else value for value in rows[0]]
        record = dict(zip((*PLAIN, *TIMES), values, strict=True))
        return record | {name: None if record[name] is None else float(record[name]) for name in TIMES}

    def id_of(self, key: str) -> int:
        ((found,),) = self.ask(f"SELECT id FROM {self._words.operations} WHERE {self._words.key} = '{key}'")
        return int(found)

    def events(self, key: str) -> list[tuple[str, int, str | None, Any]]:
        """What its history tells: (event, claim, why, detail)."""
        words = self._words
        return self.ask(
            f"SELECT event, claim, why, detail FROM {words.events} WHERE operation_id ="
            f" (SELECT id FROM {words.operations} WHERE {words.key} = '{key}') ORDER BY id"
        )

    def count(self) -> int:
        return int(self.ask(f"SELECT count(*) FROM {self._words.operations}")[0][0])

    def close(self) -> None:
        self._connection.close()

    def _literal(self, value: Any) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, Ago):
            return self._words.ago(value.seconds)
        return f"'{value}'" if isinstance(value, str) else str(value)


__all__ = ["Ago", "Stored", "pymysql"]
