"""The unique constraint of somebody's table: is it there, and a copy of the table without it in its place, for a while.

For replays, on staging. The table is only renamed; what is put in its place is dropped again.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from semel.errors import ConfigurationError, TableLeftAside
from semel.store.own_connections import open_own
from semel.store.run import run
from semel.store.statement import Operation, Rows, Statement, Steps

KEPT: Final = "_kept_by_semel_replay"
"""How the table is called while the copy has its name."""
_INSISTENT: Final = 3
"""So many signals mean it."""


@dataclass(frozen=True)
class Table:
    """A table of somebody's, as ``name`` or ``schema.name``."""

    name: str
    dialect: str

    @property
    def quoted(self) -> str:
        return ".".join(map(self._quote, self.name.split(".")))

    @property
    def last(self) -> str:
        """The name without the schema, quoted."""
        return self._quote(self.name.rpartition(".")[2])

    @property
    def kept(self) -> Table:
        """It while it is put aside."""
        return Table(self.name + KEPT, self.dialect)

    def _quote(self, part: str) -> str:
        mark = "`" if self.dialect == "mysql" else '"'
        return mark + part.replace(mark, mark * 2) + mark


Ask = Callable[[Statement], Rows]


class Constraints:
    """One table's unique constraints, over a connection of its own. ``target`` is as `open_own` takes it."""

    def __init__(self, target: object, table: str) -> None:
        self._own = open_own(target)
        self.table = Table(table, self._own.dialect)

    def find(self, columns: Sequence[str]) -> str | None:
        """The name of one over exactly these columns; None: there is none. Raises ConfigurationError: no such table."""
        return _over(self._uniques(self.table), columns)

    @contextmanager
    def put_aside(self, columns: Sequence[str]) -> Iterator[None]:
        """In the block, the table's name has an empty copy without the constraint; the table comes back at its end.

        Raises TableLeftAside where it does not. A crash leaves both; `bring_back` mends that.
        """
        try:
            self._make_copy(columns)
            yield
        finally:
            with uninterrupted():
                self._bring_back_or_say(columns)

    def bring_back(self, columns: Sequence[str]) -> bool:
        """Put the table back, where an earlier run left it aside; whether it did.

        Raises TableLeftAside where somebody has made a table of that name since, and uses it.
        """
        if not self._exists(self.table.kept):
            return False
        if self._exists(self.table):
            if self.find(columns) is not None and self._has_rows():
                raise TableLeftAside(
                    self.table.name, self.table.kept.name, "there is another one now, with rows", ()
                )
            self._ask(Statement("replay/drop_copy", literals={"copy": self.table.quoted}))
        self._rename(self.table.kept, self.table)
        return True

    def _bring_back_or_say(self, columns: Sequence[str]) -> None:
        try:
            self.bring_back(columns)
        except TableLeftAside:
            raise
        except BaseException as error:
            by_hand = (
                f"DROP TABLE {self.table.quoted}",
                f"ALTER TABLE {self.table.kept.quoted} RENAME TO {self.table.last}",
            )
            why = str(error) or type(error).__name__
            raise TableLeftAside(self.table.name, self.table.kept.name, why, by_hand) from error

    def close(self) -> None:
        """Close the connections."""
        self._own.close()

    def _make_copy(self, columns: Sequence[str]) -> None:
        uniques = self._uniques(self.table)
        self._rename(self.table, self.table.kept)
        literals = {"copy": self.table.quoted, "table": self.table.kept.quoted}
        if self.table.dialect == "sqlite":
            literals["columns"] = self._sqlite_columns(columns)
        self._ask(Statement("replay/make_copy", literals=literals))
        if self.table.dialect == "mysql":
            for name, over in uniques.items():
                if set(over) == set(columns):
                    index = {"copy": self.table.quoted, "index": f"`{name}`"}
                    self._ask(Statement("replay/drop_index", literals=index))

    def _sqlite_columns(self, columns: Sequence[str]) -> str:
        """Names and types; the number that counts up stays one, unless it is the constraint."""
        rows = self._ask(Statement("replay/columns", {"table": self.table.kept.name}))
        parts = []
        for name, kind, key, default, _ in rows:
            part = f"{Table(name, 'sqlite').last} {kind}"
            if key == 1 and str(kind).upper() == "INTEGER" and [name] != list(columns):
                part += " PRIMARY KEY"
            if default:
                part += f" DEFAULT ({default})"
            parts.append(part)
        return ", ".join(parts)

    def _rename(self, table: Table, to: Table) -> None:
        self._ask(Statement("replay/rename", literals={"table": table.quoted, "to": to.last}))

    def _has_rows(self) -> bool:
        return bool(self._ask(Statement("replay/first_row", literals={"table": self.table.quoted})))

    def _exists(self, table: Table) -> bool:
        return bool(self._unique_rows(table))

    def _uniques(self, table: Table) -> dict[str, list[str]]:
        rows = self._unique_rows(table)
        if not rows:
            raise ConfigurationError(
                f"There is no table {table.name}.", remedy="Say guard.table as schema.name."
            )
        found: dict[str, list[str]] = {}
        for name, column in rows:
            if name:
                found.setdefault(name, []).append(column)
        if table.dialect == "sqlite":
            found |= _rowid(self._ask(Statement("replay/columns", {"table": table.name})))
        return found

    def _unique_rows(self, table: Table) -> Rows:
        name = table.quoted if table.dialect == "postgresql" else table.name
        return self._ask(Statement("replay/unique_columns", {"table": name}))

    def _ask(self, statement: Statement) -> Rows:
        def steps() -> Steps[Any]:
            return (yield statement)

        with self._own.session() as session:
            rows: Rows = run(Operation(statement.name, steps, alone=True), session)
        return rows


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait for the end of the block; the third of them does not."""
    if threading.current_thread() is not threading.main_thread():
        yield  # they interrupt the main thread only
        return
    waiting: list[int] = []

    def note(number: int, _: object) -> None:
        waiting.append(number)
        if len(waiting) >= _INSISTENT:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if waiting:
        signal.raise_signal(waiting[0])


def _over(uniques: dict[str, list[str]], columns: Sequence[str]) -> str | None:
    """The one over just these, in any order."""
    return next((name for name, over in uniques.items() if set(over) == set(columns)), None)


def _rowid(rows: Rows) -> dict[str, list[str]]:
    """An INTEGER PRIMARY KEY of SQLite's has no index: it is the row's own number."""
    keys = [name for name, kind, key, *_ in rows if key and str(kind).upper() == "INTEGER"]
    return {"primary key": keys} if len(keys) == 1 else {}
