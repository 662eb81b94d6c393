"""The guard's tables by themselves, for an application that does not use the queue, and for MySQL and SQLite."""

from __future__ import annotations

from semel.errors import ConfigurationError
from semel.sql import Catalogue, read
from semel.sql.script import split, without_comments
from semel.store.own_connections import open_own
from semel.store.statement import Statement

DIALECTS = ("postgresql", "mysql", "sqlite")
_POSTGRESQL = "migrations/0002_guard.pre.sql"


def create_statements(dialect: str, schema: str = "semel") -> list[str]:
    """The statements that make the guard's tables; on MySQL and SQLite safe to run again. ``schema`` is PostgreSQL's."""
    catalogue = _catalogue(dialect, schema)
    if dialect == "postgresql":
        return [
            catalogue.fill("CREATE SCHEMA IF NOT EXISTS {schema}"),
            *_bare(catalogue.fill(read(_POSTGRESQL))),
        ]
    return _bare(read(f"guard/{dialect}/tables.sql"))


def drop_statements(dialect: str, schema: str = "semel") -> list[str]:
    """The statements that remove them, with every record; the code without its tables refuses to claim."""
    catalogue = _catalogue(dialect, schema)
    if dialect == "postgresql":
        names = ("{schema}.operation_events", "{schema}.operations")
    else:
        names = ("semel_operation_events", "semel_operations")
    return [catalogue.fill(f"DROP TABLE IF EXISTS {name}") for name in names]


def create_tables(target: object, *, schema: str = "semel") -> None:
    """Make the guard's tables where ``target`` leads, unless they are there."""
    own = open_own(target, schema=schema)
    try:
        with own.session() as session:
            if own.dialect == "postgresql" and session.execute(
                Statement("guard/has_tables", {"schema": schema})
            ):
                return
            with session.transaction():
                for statement in create_statements(own.dialect, schema):
                    session.run_text(statement)
    finally:
        own.close()


def _catalogue(dialect: str, schema: str) -> Catalogue:
    if dialect not in DIALECTS:
        raise ConfigurationError(
            f"{dialect!r} is not a database that the guard keeps records in.",
            remedy=f"One of: {', '.join(DIALECTS)}.",
        )
    return Catalogue(schema, dialect)


def _bare(script: str) -> list[str]:
    return [without_comments(statement) for statement in split(script)]
