"""What a connection is asked to know whether it leads to the database that has the guard's records."""

from __future__ import annotations

from semel.store.statement import Operation, Statement, Steps


def identify() -> Operation[tuple[str, ...]]:
    """PostgreSQL: the database and its server, the name first. MySQL: the database alone, empty where there is none."""

    def steps() -> Steps[tuple[str, ...]]:
        rows = yield Statement("guard/identify")
        return tuple("" if value is None else str(value) for value in rows[0])

    return Operation("guard_identify", steps, alone=True)


def find_main_file() -> Operation[str]:
    """SQLite: the path of the connection's main file; empty for one in memory."""

    def steps() -> Steps[str]:
        rows = yield Statement("guard/identify")
        return next((str(file or "") for _, name, file in rows if name == "main"), "")

    return Operation("guard_find_main_file", steps, alone=True)


def find_file_with_tables() -> Operation[str | None]:
    """SQLite: the file whose tables a statement means, where several are attached; None where none has any."""

    def steps() -> Steps[str | None]:
        rows = yield Statement("guard/find_tables")
        return str(rows[0][0] or "") if rows else None

    return Operation("guard_find_file_with_tables", steps, alone=True)


def take_sign(sign: str) -> Operation[bool]:
    """MySQL: take a lock of this name on the server, until `drop_sign`. False: it could not be taken."""
    return _sign("take_sign", sign)


def find_sign(sign: str) -> Operation[bool]:
    """MySQL: whether somebody has the lock of this name, on the server that is asked."""
    return _sign("find_sign", sign)


def drop_sign(sign: str) -> Operation[bool]:
    """MySQL: give the lock back."""
    return _sign("drop_sign", sign)


def _sign(name: str, sign: str) -> Operation[bool]:
    def steps() -> Steps[bool]:
        rows = yield Statement(f"guard/{name}", {"sign": sign})
        return bool(rows[0][0])

    return Operation(f"guard_{name}", steps, alone=True)
