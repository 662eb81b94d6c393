"""One query of somebody else's that answers a number, asked as often as needed and never able to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from semel.errors import ConfigurationError, DatabaseUnreachable
from semel.sql import Catalogue, Text
from semel.store.own_sessions import OwnSession
from semel.store.own_sources import find_source
from semel.store.statement import Rows, Statement

Count = Callable[[Mapping[str, Any]], int]

_NAME: Final = "replay/count"
_READ_ONLY: Final = MappingProxyType(
    {
        "postgresql": "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
        "mysql": "START TRANSACTION READ ONLY",
        "sqlite": "BEGIN",
    }
)
_BARE: Final = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class _OneQuery(Catalogue):
    """A catalogue that has one statement more."""

    query: str = ""

    def text(self, name: str, **literals: str) -> Text:
        return Text(_NAME, self.query) if name == _NAME else super().text(name, **literals)


@contextmanager
def open_count(target: str, query: str) -> Iterator[Count]:
    """Ask ``query`` on a connection to ``target``; ``:name`` in it is a parameter, by its name in what is given.

    Each answer is of what is committed by then. A query that writes is refused by the database. Raises
    ConfigurationError for a query that the database does not take, or that answers no number.
    """
    source = find_source(_plain(target))
    if source.open is None:
        raise ConfigurationError("Effects are counted over a sync driver.", remedy="Give a DSN.")
    if source.home.file is not None and not Path(source.home.file).is_file():
        raise ConfigurationError(f"There is no SQLite database {source.home.file} to count effects in.")
    catalogue = _OneQuery(dialect=source.dialect, query=query.strip().rstrip(";"))
    names = frozenset(Text(_NAME, catalogue.query).numbered[1])
    session = source.open(catalogue)
    try:
        if source.dialect == "sqlite":
            session.run_text("PRAGMA query_only = ON")
        yield lambda values: _number(query, _ask(session, query, _parameters(query, names, values)))
    finally:
        session.close()


def _ask(session: OwnSession, query: str, parameters: Mapping[str, Any]) -> Rows:
    session.run_text(_READ_ONLY[session.dialect])
    try:
        return session.execute(Statement(_NAME, parameters))
    except DatabaseUnreachable:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"The query that counts effects failed: {error}", remedy=f"It is: {query.strip()}"
        ) from error
    finally:
        session.run_text("ROLLBACK")


def _parameters(query: str, names: frozenset[str], values: Mapping[str, Any]) -> dict[str, Any]:
    missing = sorted(names - set(values))
    if missing:
        raise ConfigurationError(
            f"The query that counts effects asks for :{missing[0]}, which is no field of the message.",
            remedy=f"There are: {', '.join(sorted(values))}. The query is: {query.strip()}",
        )
    return {name: _bare(values[name]) for name in names}


def _bare(value: Any) -> Any:
    """Drivers have no parameters for lists and mappings: those are JSON."""
    return msgspec.json.encode(value).decode() if not isinstance(value, _BARE) else value


def _number(query: str, rows: Rows) -> int:
    """The sum of nothing is none."""
    if len(rows) == 1 and len(rows[0]) == 1:
        found = rows[0][0]
        if found is None:
            return 0
        try:
            return int(found)
        except (TypeError, ValueError):
            pass
    raise ConfigurationError(
        f"The query that counts effects answered {len(rows)} rows, not one number.",
        remedy=f"Write it as SELECT count(*) …; it is: {query.strip()}",
    )


def _plain(target: str) -> str:
    """SQLAlchemy's names of drivers mean nothing to psycopg."""
    return re.sub(r"^(postgres(?:ql)?)\+\w+://", r"\1://", target)
