"""Why a caller's connection is not taken."""

from __future__ import annotations

from semel.errors import ConnectionRefused


def closed(tx: object) -> ConnectionRefused:
    """It is closed."""
    return ConnectionRefused(
        f"tx= is a {type(tx).__qualname__} that is closed.",
        holds="Nothing was stored.",
        remedy="Enqueue before the connection is closed or given back.",
    )


def wrong_database(tx: object, what: str, wanted: str = "postgresql") -> ConnectionRefused:
    """It leads to another database than the one that is asked on it."""
    if wanted != "postgresql":
        return ConnectionRefused(
            f"tx= is a {type(tx).__qualname__} to {what}; the guard's records are in {wanted}.",
            holds="Nothing was stored.",
            remedy="Give a connection to the database that has them.",
        )
    return ConnectionRefused(
        f"tx= is a {type(tx).__qualname__} to {what}; the queue is in PostgreSQL.",
        holds="Nothing was stored.",
        remedy="Give a connection to the PostgreSQL database that has semel's tables.",
    )
