"""What MariaDB does to the caller's transaction: time-outs that keep it, deadlocks that end it, and its settings."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pymysql.constants import CLIENT
from tests.guard.conftest import make_request
from tests.guard.places import MAKERS, Place

from semel.core.effects import Row
from semel.core.operations import Reply
from semel.errors import RetryTransaction
from semel.sql import Catalogue
from semel.store.guard_begin import begin_known, begin_new, begin_row
from semel.store.guard_end import complete_row
from semel.store.run import run
from semel.store.sessions import sync_session_for


@pytest.fixture(scope="module")
def place(make_database: Callable[[str], Any]) -> Any:
    made: Place = MAKERS["pymysql"][1](make_database("mysql"))
    yield made
    made.close()


def connect(place: Place, **options: Any) -> Any:
    server, name = place.where
    return server.connect(name, **options)


def session_on(connection: Any) -> Any:
    return sync_session_for(connection, Catalogue("semel", "mysql"))


def wait_of(connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@innodb_lock_wait_timeout")
        return int(cursor.fetchone()[0])


def test_the_callers_own_time_to_wait_is_restored(place: Place) -> None:
    request = make_request("mysql", effect=Row())
    rival = replace(request, token="r" * 32)
    winner, loser = connect(place), connect(place)
    with loser.cursor() as cursor:
        cursor.execute("SET innodb_lock_wait_timeout = 37")
    assert run(begin_row(request), session_on(winner)).reply is Reply.ACT
    assert run(begin_row(rival), session_on(loser)) is None
    assert wait_of(loser) == 37
    winner.rollback()
    assert run(begin_row(rival), session_on(loser)).reply is Reply.ACT
    assert wait_of(loser) == 37
    for each in (winner, loser):
        each.close()


@pytest.mark.parametrize("flag", [0, CLIENT.FOUND_ROWS])
def test_a_new_row_is_known_by_its_token_whatever_is_counted(place: Place, flag: int) -> None:
    connection = connect(place, client_flag=flag, autocommit=True)
    session = session_on(connection)
    request = make_request("mysql")
    assert run(begin_new(request), session) is not None
    assert run(begin_new(replace(request, token="r" * 32)), session) is None
    connection.autocommit(False)
    row = make_request("mysql", effect=Row())
    assert run(begin_row(row), session).reply is Reply.ACT
    connection.commit()
    assert run(begin_row(replace(row, token="r" * 32)), session).reply is Reply.IN_PROGRESS
    connection.rollback()
    connection.close()


def test_a_ddl_statement_commits_midway(place: Place) -> None:
    connection = connect(place)
    session = session_on(connection)
    request = make_request("mysql", effect=Row())
    assert run(begin_row(request), session).reply is Reply.ACT
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS surprise (id integer)")
    assert run(complete_row(request, result=None, result_dropped=False), session) is False
    connection.close()


def test_a_deadlock_says_that_the_transaction_is_gone(place: Place) -> None:
    """Two transactions claim two operations in opposite order; the one that InnoDB ends hears it."""
    first, second = (make_request("mysql", effect=Row()) for _ in range(2))
    for each in (first, second):
        place.ask(begin_new(each))
    one, other = connect(place), connect(place)
    barrier = threading.Barrier(2)
    answers: list[Any] = []

    def claim(connection: Any, order: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET innodb_lock_wait_timeout = 10")
            cursor.execute(
                "SELECT id FROM semel_operations WHERE scope = '' AND job_type = 'charge'"
                " AND `key` = UNHEX(%s) FOR UPDATE",
                (order[0].key,),
            )
        barrier.wait()
        try:
            answers.append(run(begin_row(replace(order[1], token="r" * 32)), session_on(connection)))
        except RetryTransaction as error:
            answers.append(error)
        finally:
            connection.rollback()

    threads = [
        threading.Thread(target=claim, args=(one, (first, second))),
        threading.Thread(target=claim, args=(other, (second, first))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    errors = [each for each in answers if isinstance(each, RetryTransaction)]
    assert len(errors) == 1, answers
    assert "The transaction is gone" in str(errors[0])
    assert wait_of(one) == wait_of(other) == 10
    one.close()
    other.close()


@pytest.mark.parametrize("known", [True, False])
def test_a_stale_snapshot_says_that_the_transaction_is_gone(place: Place, known: bool) -> None:
    """MariaDB's innodb_snapshot_isolation: error 1020 for a row that has changed since the snapshot, or is new."""
    request = make_request("mysql", effect=Row())
    winner, loser = connect(place), connect(place)
    if known:
        place.ask(begin_new(request))
    try:
        with loser.cursor() as cursor:
            cursor.execute("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'")
            if not cursor.fetchall():
                pytest.skip("this server has no innodb_snapshot_isolation (MariaDB has it from 10.6.18 on)")
            cursor.execute("SET SESSION innodb_snapshot_isolation = ON")
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            loser.rollback()
            cursor.execute("SELECT count(*) FROM semel_operations")  # takes the snapshot
        session = session_on(winner)
        assert run(begin_known(request) if known else begin_row(request), session).reply is Reply.ACT
        winner.commit()
        with pytest.raises(RetryTransaction, match="The transaction is gone"):
            run(begin_row(replace(request, token="r" * 32)), session_on(loser))
        loser.rollback()
        assert run(begin_row(replace(request, token="r" * 32)), session_on(loser)).reply is Reply.IN_PROGRESS
    finally:
        for each in (winner, loser):
            each.rollback()
            each.close()


def test_where_a_time_out_ends_the_transaction_it_says_so(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """innodb_rollback_on_timeout can only be set at the server's start: its answer is played here."""
    request = make_request("mysql", effect=Row())
    winner, loser = connect(place), connect(place)
    run(begin_row(request), session_on(winner))
    session = session_on(loser)
    real = session.execute

    def execute(statement: Any) -> Any:
        return [(1,)] if statement.name == "guard/ends_with_wait" else real(statement)

    monkeypatch.setattr(session, "execute", execute)
    with pytest.raises(RetryTransaction, match="rollback_on_timeout"):
        run(begin_row(replace(request, token="r" * 32)), session)
    for each in (winner, loser):
        each.rollback()
        each.close()
