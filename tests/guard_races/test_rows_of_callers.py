"""The caller's own rows in the transaction of a `Row()`; and who finds it busy, and how soon."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

import psycopg
import pytest
from tests.guard_crash.actors import Delivery, deliver, do_effect
from tests.guard_crash.world import World

import semel

STRICTER = ("repeatable read", "serializable")


def connect(world: World, isolation: str | None = None) -> Any:
    """The caller's connection, with a transaction that begins with its first statement."""
    if world.dialect == "sqlite":
        return sqlite3.connect(world.where, timeout=0.2)
    if world.dialect == "mysql":
        connection = world.where[0].connect(world.where[1])
        if isolation is not None:
            execute(connection, f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation.upper()}")
        return connection
    connection = psycopg.connect(world.where)
    if isolation is not None:
        connection.isolation_level = psycopg.IsolationLevel[isolation.upper().replace(" ", "_")]
    return connection


def execute(connection: Any, text: str) -> None:
    cursor = connection.cursor()
    cursor.execute(text)
    cursor.close()


def add(world: World, tx: Any, delivery: Delivery, amount: int = 1) -> str:
    @world.once.operation("charge", key="name", payload=("amount",), effect=semel.Row())
    def charge(op: semel.Operation, name: str, amount: int) -> str:
        return do_effect(op, delivery, name)

    execute(tx, f"INSERT INTO effects (name) VALUES ('own-{delivery.name}')")
    return str(charge.on(tx)(delivery.name, amount))


def own_rows(world: World, delivery: Delivery) -> int:
    return int(world.ask(f"SELECT count(*) FROM effects WHERE name = 'own-{delivery.name}'")[0][0])


def levels(world: World) -> list[str | None]:
    return {"postgresql": ["read committed"], "mysql": ["read committed", *STRICTER], "sqlite": [None]}[
        world.dialect
    ]  # type: ignore[return-value]


def test_7_the_callers_rows_survive_a_repeat_and_a_refusal(world: World) -> None:
    for isolation in levels(world):
        delivery = world.delivery("row")
        for amount, refused in ((1, False), (1, False), (2, True)):
            connection = connect(world, isolation)
            if refused:
                with pytest.raises(semel.PayloadMismatch):
                    add(world, connection, delivery, amount)
            else:
                assert add(world, connection, delivery, amount) == f"row-{delivery.name}"
            connection.commit()
            connection.close()
        assert own_rows(world, delivery) == 3
        assert world.effects(delivery) == 1
        assert world.state(delivery) == "completed acted"


def test_7_the_callers_rows_survive_a_conflict_and_busy_comes_at_once(world: World) -> None:
    if world.dialect == "sqlite":
        pytest.skip("SQLite has one writer: while a Row() is open, the caller has no rows of its own to lose")
    for isolation in levels(world):
        delivery = world.delivery("row")
        winner, loser = connect(world), connect(world, isolation)
        add(world, winner, delivery)
        times = []
        tries = 3 if world.dialect == "postgresql" else 1
        for _ in range(tries):
            begun = time.monotonic()
            with pytest.raises(semel.Busy):
                add(world, loser, delivery)
            times.append(time.monotonic() - begun)
        print(f"{world.dialect}, {isolation}: busy within {min(times) * 1000:.0f} ms")
        assert min(times) < (0.1 if world.dialect == "postgresql" else 2.0)
        winner.commit()
        loser.commit()
        winner.close()
        loser.close()
        assert own_rows(world, delivery) == 1 + tries
        assert world.effects(delivery) == 1


@pytest.mark.parametrize("isolation", STRICTER)
def test_7_a_stricter_isolation_says_run_it_again(world: World, isolation: str) -> None:
    """The caller's snapshot is older than the rival's commit: PostgreSQL claims in a savepoint; the rows survive."""
    if world.dialect != "postgresql":
        pytest.skip("of PostgreSQL; the next two are MariaDB's and SQLite's")
    delivery = world.delivery("row")
    loser = connect(world, isolation)
    execute(loser, "SELECT count(*) FROM effects")
    winner = connect(world)
    add(world, winner, delivery)
    winner.commit()
    with pytest.raises(semel.RetryTransaction):
        add(world, loser, delivery)
    execute(loser, f"INSERT INTO effects (name) VALUES ('own-{delivery.name}')")
    loser.commit()
    assert own_rows(world, delivery) == 3
    assert add(world, loser, delivery) == f"row-{delivery.name}"
    loser.commit()
    assert own_rows(world, delivery) == 4
    assert world.effects(delivery) == 1
    winner.close()
    loser.close()


@pytest.mark.parametrize("known", [True, False], ids=["released before", "new"])
def test_7_where_mariadb_ends_the_transaction_the_answer_says_so(world: World, known: bool) -> None:
    """Error 1020: with innodb_snapshot_isolation a locking read meets what its snapshot does not show."""
    if world.dialect != "mysql":
        pytest.skip("of MariaDB's innodb_snapshot_isolation")
    delivery = world.delivery("row")
    if known:
        claim = world.once.claim("charge", delivery.name, acting="explicit")
        with pytest.raises(ZeroDivisionError), claim:
            raise ZeroDivisionError
    loser, winner = connect(world, "repeatable read"), connect(world)
    execute(loser, "SET SESSION innodb_snapshot_isolation = ON")
    execute(loser, "SELECT count(*) FROM semel_operations")
    add(world, winner, delivery)
    winner.commit()
    with pytest.raises(semel.RetryTransaction, match="The transaction is gone"):
        add(world, loser, delivery)
    loser.commit()
    assert own_rows(world, delivery) == 1, "the loser's own row went with it"
    assert add(world, loser, delivery) == f"row-{delivery.name}"
    loser.commit()
    assert own_rows(world, delivery) == 2
    assert world.effects(delivery) == 1
    winner.close()
    loser.close()


def test_7_a_read_before_anothers_write_says_run_it_again(world: World) -> None:
    """SQLite's one conflict: BEGIN, a read, and somebody else's commit; the transaction can write no more."""
    if world.dialect != "sqlite":
        pytest.skip("of SQLite's snapshots")
    delivery = world.delivery("row")

    @world.once.operation("charge", key="name", payload=(), effect=semel.Row())
    def charge(op: semel.Operation, name: str) -> str:
        return do_effect(op, delivery, name)

    connection = sqlite3.connect(world.where, timeout=0.2, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM effects").fetchall()
    deliver(world.once, world.delivery("row"))
    with pytest.raises(semel.RetryTransaction, match="can write no more"):
        charge.on(connection)(delivery.name)
    connection.execute("ROLLBACK")
    assert world.effects(delivery) == 0
    connection.execute("BEGIN IMMEDIATE")
    assert charge.on(connection)(delivery.name) == f"row-{delivery.name}"
    connection.execute("COMMIT")
    connection.close()
    assert world.effects(delivery) == 1


def test_7_a_commit_midway_is_held(world: World) -> None:
    delivery = world.delivery("row")
    connection = connect(world)
    guarded = world.once.operation("charge", key="name", effect=semel.Row(), lease="1 ms")

    @guarded
    def charge(op: semel.Operation, name: str) -> str:
        do_effect(op, delivery, name)
        op.connection.commit()
        return "done"

    execute(connection, f"INSERT INTO effects (name) VALUES ('own-{delivery.name}')")
    with pytest.raises(semel.ClaimLost):
        charge.on(connection)(delivery.name)
    connection.rollback()
    connection.close()
    assert deliver(world.once, delivery).kind == "Held"
    assert world.effects(delivery) == 1


def test_an_outside_effect_completes_behind_a_lock_of_some_seconds(world: World) -> None:
    """Others that lock its row, or SQLite's file, longer than a statement waits do not make a done effect uncertain."""
    import threading

    delivery = world.delivery("hold", lease=60.0)
    connection = connect(world)
    released = threading.Timer(2.5, connection.rollback)
    if world.dialect == "sqlite":
        connection = sqlite3.connect(world.where, check_same_thread=False)
        released = threading.Timer(2.5, connection.rollback)

    @world.once.operation("charge", key="name", acting="explicit", lease="60 s")
    def charge(op: semel.Operation, name: str) -> str:
        with op.acting():
            table = "semel.operations" if world.dialect == "postgresql" else "semel_operations"
            execute(connection, f"UPDATE {table} SET label = label WHERE label = '{name}'")
            released.start()
        return "done"

    assert charge(delivery.name) == "done"
    released.join()
    connection.close()
    assert world.state(delivery) == "completed acted"
