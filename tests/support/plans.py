"""The plan that the server chooses for a statement of semel's, run and rolled back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from semel.sql import Catalogue
from semel.store.statement import Operation, Statement

JIT_ABOVE = 100_000
"""The estimate from which the server compiles a plan, unless set otherwise."""


@dataclass(frozen=True)
class Plan:
    text: str
    cost: float
    buffers: int


def explain(url: str, operation: Operation[Any]) -> Plan:
    """The generic plan of an operation's first statement, run and rolled back."""
    statement = next(operation.steps())
    assert isinstance(statement, Statement)
    return explain_statement(url, statement)


def explain_statement(url: str, statement: Statement) -> Plan:
    text, names = Catalogue("semel").text(statement.name, **statement.literals).numbered
    with psycopg.connect(url, row_factory=dict_row) as connection:
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.execute(f"PREPARE asked AS {text}".encode())
        values = ", ".join(literal(connection, statement.parameters[name]) for name in names)
        call = f"EXECUTE asked({values})" if names else "EXECUTE asked"
        shown = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {call}".encode()).fetchall()
        found = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {call}".encode()).fetchone()
        connection.rollback()
    assert found is not None
    plan = found["QUERY PLAN"][0]["Plan"]
    lines = "\n".join(row["QUERY PLAN"] for row in shown)
    return Plan(lines, plan["Total Cost"], plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def literal(connection: psycopg.Connection[Any], value: object) -> str:
    return psycopg.sql.Literal(value).as_string(connection)
