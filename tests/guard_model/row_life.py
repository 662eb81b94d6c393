"""A `Row()` in the state machine: each delivery is one transaction of the caller's, with what people do to theirs in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.guard.stored import Stored
from tests.guard_model.machine import Bug, Life

from semel import Once
from semel.errors import Abandoned, Busy, ClaimLost, Held, InProgress

WAYS = (
    "committed",
    "committed, unheard",
    "rolled back",
    "connection lost",
    "a bug",
    "committed midway",
    "committed midway, then a bug",
    "committed before its effect",
    "rolled back midway",
)
RIVAL = "a rival comes"


class RowLife(Life):
    """One operation whose effect is a row; the model counts the rows that were committed."""

    def __init__(self, once: Once, stored: Stored, begin: Callable[[], Any]) -> None:
        super().__init__(once, stored, "row", explicit=False)
        self.begin = begin
        self.way = WAYS[0]
        self.guarded = once.operation("machine", key="name", effect=self.effect, lease="1 h")(self._handle)

    def deliver(self, lookup: str) -> None:
        self.deliver_row(WAYS[0])

    def deliver_row(self, way: str) -> None:
        before, self.way = self.record(), way
        acts = before is None or before["state"] == "released"
        self.connection = self.begin()
        try:
            self._deliver(before, acts)
        finally:
            self.connection.close()
        if acts and way in ("rolled back", "connection lost", "a bug", "rolled back midway"):
            assert self.record_without_age() == self.without_age(before), "a rollback leaves nothing"

    def _deliver(self, before: dict[str, Any] | None, acts: bool) -> None:
        state = None if before is None else before["state"]
        try:
            told = self.guarded.on(self.connection)(self.name)
        except InProgress as later:
            assert not isinstance(later, Busy)  # noqa: PT017
            assert state == "claimed"
            assert before is not None
            assert before["lease_until"] < 0
        except Held:
            self.connection.commit()
            assert state == "held" or (
                state == "claimed" and before is not None and before["lease_until"] >= 0
            )
            assert self.record()["state"] == "held"  # type: ignore[index]
        except Abandoned:
            assert before is not None
            assert before["outcome"] == "abandoned"
        except ClaimLost:
            assert acts
            assert self.way in ("committed midway", "committed before its effect", "rolled back midway")
            self.connection.rollback()
        except Bug:
            assert acts
            self.connection.rollback()
        else:
            self._returned(told, state, acts)

    def _returned(self, told: Any, state: str | None, acts: bool) -> None:
        if not acts:
            assert state == "completed"
            assert told in (None, *self.results)
            return
        match self.way:
            case "rolled back":
                self.connection.rollback()
            case "connection lost":
                self.connection.close()
                self.connection = self.begin()
            case _:  # unheard or not, it is there
                self.connection.commit()
                self.effects.append(self.name)
                self.results.add(told)

    def _handle(self, op: Any, name: str) -> str:
        match self.way:
            case "committed before its effect":
                op.connection.commit()
                self._write(op)
            case "rolled back midway":
                self._write(op)
                op.connection.rollback()
            case "committed midway" | "committed midway, then a bug":
                self._write(op)
                op.connection.commit()
                self.effects.append(self.name)
            case _:
                self._write(op)
        if self.way == RIVAL:
            self._rival()
        if self.way.endswith("a bug"):
            raise Bug
        return f"row {name}"

    def _write(self, op: Any) -> None:
        cursor = op.connection.cursor()
        if self.stored.dialect == "sqlite" and not op.connection.in_transaction:
            cursor.execute("BEGIN IMMEDIATE")
        cursor.execute(f"INSERT INTO effects (name) VALUES ('{self.name}')")
        cursor.close()

    def _rival(self) -> None:
        """Another delivery while the transaction is open."""
        try:
            other = self.begin()
        except Exception as error:
            assert "locked" in str(error)  # noqa: PT017 - SQLite: a file has one writer
            return
        try:
            self.guarded.on(other)(self.name)
        except Busy:
            pass
        else:
            raise AssertionError("a rival was not told that the key is busy")
        finally:
            other.rollback()
            other.close()

    def record_without_age(self) -> dict[str, Any] | None:
        return self.without_age(self.record())

    @staticmethod
    def without_age(record: dict[str, Any] | None) -> dict[str, Any] | None:
        return record and {
            name: value for name, value in record.items() if not name.endswith(("_at", "_until"))
        }

    def retention(self) -> None:
        super().retention()
        if not self.effects:
            self.stored.ask(f"DELETE FROM effects WHERE name = '{self.name}'")

    def the_promises_hold(self) -> dict[str, Any] | None:
        record = super().the_promises_hold()
        ((rows,),) = self.stored.ask(f"SELECT count(*) FROM effects WHERE name = '{self.name}'")
        assert rows == len(self.effects), "the rows are the ones of committed transactions"
        if record is not None and record["outcome"] == "acted":
            assert rows == 1
        return record
